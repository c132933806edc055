// SPDX-License-Identifier: BSD-2-Clause
// An open XRC domain (man ibv_open_xrcd): connections that are made in it may deliver to each of
// its shared receive queues. Opened with the same file it is the same domain.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "engine/xrc_domains.h"
#include "verbs/context.h"

namespace uroce::verbs {

struct Xrcd final : Made {
  Xrcd(Context& where, engine::XrcDomain& opened) : Made(Kind::kXrcd, where), domain(opened) {}

  engine::XrcDomain& domain;
  std::atomic<std::uint32_t> users{0};  // queue pairs and shared receive queues made with it

 private:
  void leave_device() override;
};

// Null, and errno: EBADF for no file, EAGAIN without O_CREAT when there is no such domain, EINVAL
// with O_EXCL when there is one.
[[nodiscard]] Xrcd* open_xrcd(Context& context, const ibv_xrcd_init_attr& attributes);
// 0, or EBUSY while there is something that was made with it.
[[nodiscard]] int close_xrcd(Xrcd* xrcd);

}  // namespace uroce::verbs
