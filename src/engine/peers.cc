// SPDX-License-Identifier: BSD-2-Clause
#include "engine/peers.h"

#include <utility>

namespace uroce::engine {

transport::Peer& Peers::use(const Gid& address, std::uint32_t block, PeerEntry*& spare) {
  PeerEntry*& bucket = buckets_[bucket_of(address, block)];
  for (PeerEntry* entry = bucket; entry != nullptr; entry = entry->next) {
    if (entry->peer.block == block && entry->peer.address == address) {
      ++entry->peer.users;
      return entry->peer;
    }
  }
  PeerEntry* entry = std::exchange(spare, nullptr);
  entry->peer = {.address = address, .block = block, .users = 1};
  entry->next = std::exchange(bucket, entry);
  return entry->peer;
}

PeerEntry* Peers::release(transport::Peer& peer) {
  if (--peer.users != 0) return nullptr;
  PeerEntry** link = &buckets_[bucket_of(peer.address, peer.block)];
  while (&(*link)->peer != &peer) link = &(*link)->next;
  return std::exchange(*link, (*link)->next);
}

std::size_t Peers::bucket_of(const Gid& address, std::uint32_t block) {
  std::uint32_t hash = block * 0x9e37'79b1U;
  for (const std::uint8_t byte : address.bytes) hash = (hash ^ byte) * 0x0100'0193U;
  return (hash ^ hash >> 16) & 0xff;
}

}  // namespace uroce::engine
