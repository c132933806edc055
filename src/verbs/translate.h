// SPDX-License-Identifier: BSD-2-Clause
// Between the types of <infiniband/verbs.h> and ours. Where the numbers are the same this is
// asserted, and a cast does.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "engine/port.h"
#include "transport/completion.h"
#include "transport/qp_attributes.h"

namespace uroce::verbs {

inline void to_ibv_wc(const transport::Cqe& entry, ibv_wc& wc) {
  wc.wr_id = entry.wr_id;
  wc.status = static_cast<ibv_wc_status>(entry.status);
  wc.opcode = static_cast<ibv_wc_opcode>(entry.opcode);
  wc.vendor_err = entry.vendor_error;
  wc.byte_len = entry.byte_count;
  wc.imm_data = entry.immediate;
  wc.qp_num = entry.qpn.value;
  wc.src_qp = entry.source_qpn.value;
  wc.wc_flags = entry.flags;
  wc.pkey_index = 0;
  wc.slid = 0;
  wc.sl = entry.service_level;
  wc.dlid_path_bits = 0;
}

[[nodiscard]] Gid to_gid(const union ibv_gid& raw);

// Only what `mask` names is looked at. 0, or EINVAL for what no device of ours takes: a GID index
// without an address, a path MTU above the port's, an address vector without GRH.
[[nodiscard]] int to_qp_attributes(const engine::Port& port, Qpn local, const ibv_qp_attr& from,
                                   std::uint32_t mask, transport::QpAttributes& to);
// The path of an address vector; 0, or EINVAL as above.
[[nodiscard]] int to_path(const engine::Port& port, Qpn local, Qpn remote, const ibv_ah_attr& from,
                          Path& to);
void to_ibv_qp_attr(const transport::QpAttributes& from, ibv_qp_attr& to);

// IBTA 9.2.3 in bytes; 0 for no such code.
[[nodiscard]] std::uint16_t bytes_of_mtu(ibv_mtu mtu);
[[nodiscard]] ibv_mtu mtu_of_bytes(std::uint16_t bytes);

}  // namespace uroce::verbs
