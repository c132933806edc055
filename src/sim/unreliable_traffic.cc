// SPDX-License-Identifier: BSD-2-Clause
#include "sim/unreliable_traffic.h"

#include <algorithm>

namespace uroce::sim {

using namespace transport;

namespace {

inline constexpr std::uint32_t kMillion = Prng::kMillion;
inline constexpr QKey kQKey{0x1111'1111};

}  // namespace

UnreliableTraffic::UnreliableTraffic(World& world, Oracle& oracle, const Scenario& scenario,
                                     std::deque<Site>& sites, Prng prng)
    : world_(world), oracle_(oracle), scenario_(scenario), sites_(sites), prng_(prng) {
  for (unsigned i = 0; i < scenario.unreliable_connections; ++i) add_pair();
  add_datagrams();
}

QueuePairOptions UnreliableTraffic::draw_options(Service service) {
  QueuePairOptions options;
  options.service = service;
  options.link = prng_.chance(scenario_.memory_share) ? kLocalLink : kUplink;
  options.path_mtu = static_cast<std::uint16_t>(256U << prng_.below(5));
  options.capacity = scenario_.capacity;
  options.access = memory::Access::kRemoteWrite | memory::Access::kLocalWrite;
  options.qkey = kQKey;
  return options;
}

UnreliableEnd& UnreliableTraffic::add(QueuePairOptions options) {
  options.signal_all = prng_.chance(kMillion / 5);
  Site& site = sites_[prng_.below(static_cast<std::uint32_t>(sites_.size()))];
  const auto id = static_cast<std::uint32_t>(ends_.size());
  return ends_.emplace_back(world_, oracle_, arrivals_, scenario_, site, id, options,
                            prng_.split(id));
}

void UnreliableTraffic::add_pair() {
  const QueuePairOptions options = draw_options(Service::kUc);
  UnreliableEnd& a = add(options);
  UnreliableEnd& b = add(options);
  a.add_neighbour(b);
  b.add_neighbour(a);
}

void UnreliableTraffic::add_datagrams() {
  const QueuePairOptions options = draw_options(Service::kUd);
  const auto first = static_cast<std::ptrdiff_t>(ends_.size());
  for (unsigned i = 0; i < scenario_.datagram_ends; ++i) {
    if (UnreliableEnd& end = add(options); prng_.chance(kMillion / 2)) end.join_group();
  }
  for (auto a = ends_.begin() + first; a != ends_.end(); ++a) {
    for (auto b = ends_.begin() + first; b != ends_.end(); ++b) a->add_neighbour(*b);
  }
}

void UnreliableTraffic::open() {
  for (UnreliableEnd& end : ends_) end.connect();
}

bool UnreliableTraffic::is_done() const {
  return std::ranges::all_of(ends_, &UnreliableEnd::is_done);
}

void UnreliableTraffic::describe_unfinished() {
  for (const UnreliableEnd& end : ends_) {
    if (!end.is_done()) oracle_.violated("unreliable end %u does not come to its end", end.id());
  }
}

void UnreliableTraffic::heal() {
  for (UnreliableEnd& end : ends_) end.heal();
}

void UnreliableTraffic::stop() {
  for (UnreliableEnd& end : ends_) end.stop();
}

void UnreliableTraffic::check_at_end() {
  for (UnreliableEnd& end : ends_) end.check_at_end();
}

void UnreliableTraffic::destroy() {
  for (UnreliableEnd& end : ends_) end.destroy();
}

std::uint64_t UnreliableTraffic::succeeded() const {
  std::uint64_t sum = 0;
  for (const UnreliableEnd& end : ends_) sum += end.ledger().succeeded();
  return sum;
}

}  // namespace uroce::sim
