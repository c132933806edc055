// SPDX-License-Identifier: BSD-2-Clause
// ibv_modify_qp: a new address vector opens a path before the core sees it, so that a peer which
// cannot be reached is an errno with nothing changed; the former path is closed after the core has
// let go of it.
#include "verbs/modify_qp.h"

#include <cerrno>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "verbs/translate.h"

namespace uroce::verbs {
namespace {

using engine::Engine;
using engine::PeerEntry;
namespace attribute = transport::qp_attribute;

// Memory that a change may use or leave over; freed after the section.
struct PeerMemory {
  PeerEntry* spare = nullptr;
  PeerEntry* unused = nullptr;
  ~PeerMemory() {
    delete spare;
    delete unused;
  }
};

// With an address vector among the attributes.
int move_to_path(Engine::Section& section, Qp& qp, transport::QpAttributes& wanted,
                 std::uint32_t mask, PeerMemory& memory) {
  // In SQD the destination stays the one the QP has.
  const Qpn destination = (mask & attribute::kDestinationQpn) != 0
                              ? wanted.destination_qpn
                              : qp.core.attributes.destination_qpn;
  if (int e = section.open_path(wanted.path, destination, wanted.link); e != 0) return e;
  transport::Peer* peer = section.use_peer(wanted.path, wanted.link, destination, memory.spare);
  Path former = qp.core.attributes.path;
  const std::uint8_t former_link = qp.core.attributes.link;
  const int error = section.hca().modify_qp(section.now(), qp.core, wanted, mask, peer);
  if (error != 0) {
    memory.unused = section.release_peer(peer);
    section.close_path(wanted.path, wanted.link);
    return error;
  }
  if (qp.has_path) section.close_path(former, former_link);
  memory.unused = section.release_peer(std::exchange(qp.peer, peer));
  qp.has_path = true;
  return 0;
}

int change(Engine::Section& section, Qp& qp, transport::QpAttributes& wanted, std::uint32_t mask,
           PeerMemory& memory) {
  if ((mask & attribute::kAddressVector) != 0) {
    return move_to_path(section, qp, wanted, mask, memory);
  }
  if (int e = section.hca().modify_qp(section.now(), qp.core, wanted, mask, nullptr); e != 0) {
    return e;
  }
  if ((mask & attribute::kState) != 0 && wanted.state == transport::QpState::kReset) {
    purge_completions(qp);
    memory.unused = let_go_of_path(section, qp);
  }
  return 0;
}

}  // namespace

int modify_qp(Qp& qp, const ibv_qp_attr& attributes, int mask) {
  Engine& engine = qp.context.engine();
  if (engine.is_abandoned()) return EIO;
  transport::QpAttributes wanted;
  const auto bits = static_cast<std::uint32_t>(mask);
  if (int e = to_qp_attributes(engine.port(), qp.core.number, attributes, bits, wanted); e != 0) {
    return e;
  }
  PeerMemory memory{.spare = new (std::nothrow) PeerEntry};
  if (memory.spare == nullptr) return ENOMEM;
  Engine::Section section(engine);
  return change(section, qp, wanted, bits, memory);
}

void purge_completions(Qp& qp) {
  std::atomic<std::uint32_t>* shared = qp.srq == nullptr ? nullptr : &qp.srq->core.queue.released();
  {
    const std::lock_guard consumers(qp.send_cq->lock);
    qp.send_cq->queue.purge(qp.core.number, shared);
  }
  if (qp.receive_cq == qp.send_cq) return;
  const std::lock_guard consumers(qp.receive_cq->lock);
  qp.receive_cq->queue.purge(qp.core.number, shared);
}

engine::PeerEntry* let_go_of_path(Engine::Section& section, Qp& qp) {
  if (qp.has_path) section.close_path(qp.core.attributes.path, qp.core.attributes.link);
  qp.has_path = false;
  return section.release_peer(std::exchange(qp.peer, nullptr));
}

}  // namespace uroce::verbs
