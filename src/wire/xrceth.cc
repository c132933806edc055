// SPDX-License-Identifier: BSD-2-Clause
#include "wire/xrceth.h"

#include <cstring>

#include "wire/bytes.h"

namespace uroce::wire {

void make_xrc(TxFrame& frame, const Xrceth& xrceth) {
  const auto rc = static_cast<Opcode>(frame.header[0]);
  frame.header[0] = static_cast<std::byte>(in_service(rc, Service::kXrc));
  std::byte* const extensions = frame.header.data() + kBthBytes;
  std::memmove(extensions + kXrcethBytes, extensions, frame.header_bytes - kBthBytes);
  store(extensions, to_wire(xrceth));
  frame.header_bytes = static_cast<std::uint8_t>(frame.header_bytes + kXrcethBytes);
}

}  // namespace uroce::wire
