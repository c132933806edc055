// SPDX-License-Identifier: BSD-2-Clause
// ibv_modify_qp: a new address vector opens a path before the core sees it, so that a peer which
// cannot be reached is an errno with nothing changed; the former path is closed after the core has
// let go of it.
#include "verbs/modify_qp.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "posix/capability.h"
#include "verbs/translate.h"

namespace uroce::verbs {
namespace {

using engine::Engine;
using engine::PeerEntry;
namespace attribute = transport::qp_attribute;

// A Q_Key with the highest bit is controlled (IBTA 10.2.5): only who may send raw packets sets one.
bool may_set_qkey(const ibv_qp_attr& attributes, std::uint32_t mask) {
  constexpr std::uint32_t kControlled = 1U << 31;
  if ((mask & IBV_QP_QKEY) == 0 || (attributes.qkey & kControlled) == 0) return true;
  return posix::has_capability(CAP_NET_RAW);
}

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
    // Somebody may have polled some of them since the core emptied the queues.
    qp.core.send_queue.reset();
    qp.core.receive_queue.reset();
    memory.unused = let_go_of_path(section, qp);
  }
  return 0;
}

// What answers to READs and atomics are kept in. 128 of them are 8 KiB, and most queue pairs have a
// few, or none. False without memory.
bool make_replay(const Qp& qp, const transport::QpAttributes& wanted, std::uint32_t mask,
                 engine::ZeroedMemory& larger) {
  if ((mask & attribute::kMaxDestReadAtomic) == 0) return true;
  const std::size_t count =
      std::min<std::size_t>(wanted.max_dest_read_atomic, transport::kReplayMax);
  if (count <= qp.replay.as<transport::ReplayEntry>().size()) return true;
  larger = engine::ZeroedMemory(count * sizeof(transport::ReplayEntry));
  return static_cast<bool>(larger);
}

// After the change, which has forgotten what was kept.
void use_replay(Qp& qp, engine::ZeroedMemory& larger) {
  if (larger.bytes().size() <= qp.replay.bytes().size()) return;
  qp.core.responder.replay = larger.as<transport::ReplayEntry>();
  swap(qp.replay, larger);
}

// Programs give an end of XRC the attributes of both halves of RC, and the kernel does not mind.
std::uint32_t without_missing_half(transport::Service service, std::uint32_t mask) {
  switch (service) {
    case transport::Service::kXrcInitiator:
      return mask & ~(attribute::kMaxDestReadAtomic | attribute::kMinRnrTimer);
    case transport::Service::kXrcTarget:
      return mask & ~(attribute::kMaxReadAtomic | attribute::kRetryCount | attribute::kRnrRetry);
    case transport::Service::kRc:
    case transport::Service::kUc:
    case transport::Service::kUd:
    case transport::Service::kRawPacket:
      break;
  }
  return mask;
}

}  // namespace

int modify_qp(Qp& qp, const ibv_qp_attr& attributes, int mask) {
  Engine& engine = qp.context.engine();
  if (engine.is_abandoned()) return EIO;
  transport::QpAttributes wanted;
  const std::uint32_t bits = without_missing_half(qp.service, static_cast<std::uint32_t>(mask));
  if (!qp.parts.is_management && !may_set_qkey(attributes, bits)) return EPERM;
  if (int e = to_qp_attributes(engine.port(), qp.core.number, attributes, bits, wanted); e != 0) {
    return e;
  }
  PeerMemory memory{.spare = new (std::nothrow) PeerEntry};
  engine::ZeroedMemory replay;
  if (memory.spare == nullptr || !make_replay(qp, wanted, bits, replay)) return ENOMEM;
  Engine::Section section(engine);
  const int error = change(section, qp, wanted, bits, memory);
  if (error == 0) use_replay(qp, replay);
  return error;
}

void purge_completions(Qp& qp) {
  const QpParts& parts = qp.parts;
  std::atomic<std::uint32_t>* const shared =
      parts.srq == nullptr ? nullptr : &parts.srq->core.queue.released();
  const auto purge = [&qp, shared](Cq* cq) {
    if (cq == nullptr) return;
    const std::lock_guard consumers(cq->lock);
    cq->queue.purge(qp.core.number, shared);
  };
  purge(parts.send_cq);
  if (parts.receive_cq != parts.send_cq) purge(parts.receive_cq);
}

engine::PeerEntry* let_go_of_path(Engine::Section& section, Qp& qp) {
  if (qp.has_path) section.close_path(qp.core.attributes.path, qp.core.attributes.link);
  qp.has_path = false;
  return section.release_peer(std::exchange(qp.peer, nullptr));
}

}  // namespace uroce::verbs
