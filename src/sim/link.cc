// SPDX-License-Identifier: BSD-2-Clause
#include "sim/link.h"

#include <algorithm>
#include <cstring>

#include "base/byte_order.h"
#include "wire/icrc.h"

namespace uroce::sim {
namespace {

// Ethernet with its preamble, gap and check sequence, IPv4, UDP, and the ICRC.
inline constexpr std::uint32_t kOverheadBytes = 14 + 4 + 20 + 20 + 8 + 4;
inline constexpr std::uint32_t kIcrcBytes = wire::kIcrcBytes;

std::int64_t transmission_ns(std::uint64_t bytes, std::uint64_t bits_per_second) {
  return static_cast<std::int64_t>(bytes * 8 * 1'000'000'000 / bits_per_second);
}

Duration up_to(Prng& prng, Duration most) {
  return nanoseconds(prng.below(static_cast<std::uint32_t>(most.ns) + 1));
}

}  // namespace

Link::Link(World& world, const LinkOptions& options, Prng prng, unsigned from, unsigned to,
           EventSink& receiver)
    : world_(world),
      options_(options),
      loss_(prng.split(1)),
      delay_(prng.split(2)),
      damage_(prng.split(3)),
      from_(from),
      to_(to),
      receiver_(receiver) {}

void Link::heal() {
  options_.loss = options_.burst_begins = options_.burst_loss = options_.duplicate = 0;
  options_.reorder = options_.corrupt = 0;
  options_.packet_bytes_max = options_.switch_bytes_max = 0;
  options_.keeps_order = true;
  options_.blackout_every = {};
  is_in_burst_ = false;
}

bool Link::has_room() const {
  if (options_.is_memory) return sent_ - consumed_ < options_.ring_records;
  return bytes_until(free_at_) < options_.queue_bytes;
}

// What leaves between now and then.
std::uint64_t Link::bytes_until(Instant when) const {
  if (when <= world_.now()) return 0;
  return static_cast<std::uint64_t>((when - world_.now()).ns) * options_.bits_per_second /
         8'000'000'000;
}

Instant Link::leave(std::uint32_t bytes) {
  free_at_ = std::max(free_at_, world_.now());
  if (options_.bits_per_second != 0) {
    free_at_ = free_at_ + nanoseconds(transmission_ns(bytes, options_.bits_per_second));
  }
  return free_at_;
}

Instant Link::arrival_after(Instant left) {
  Instant arrival = left + options_.delay;
  if (options_.jitter.ns != 0) arrival = arrival + up_to(delay_, options_.jitter);
  if (options_.reorder != 0 && delay_.chance(options_.reorder)) {
    ++counters_.late;
    return arrival + up_to(delay_, options_.reorder_delay);
  }
  if (options_.keeps_order) arrival = last_arrival_ = std::max(arrival, last_arrival_);
  return arrival;
}

bool Link::is_lost() {
  if (options_.burst_begins != 0) {
    is_in_burst_ =
        is_in_burst_ ? !loss_.chance(options_.burst_ends) : loss_.chance(options_.burst_begins);
  }
  const std::uint32_t chance = is_in_burst_ ? options_.burst_loss : options_.loss;
  return chance != 0 && loss_.chance(chance);
}

bool Link::is_in_blackout(Instant at) const {
  return options_.blackout_every.ns != 0 &&
         at.ns % options_.blackout_every.ns < options_.blackout.ns;
}

// One bit of the sealed packet turns; the receiver's check has to see it. What it drops is shown as
// it was sent.
bool Link::survives_corruption(PacketId packet) {
  ++counters_.corrupted;
  const std::uint32_t bytes = world_.packets.info(packet).bytes;
  std::byte* const data = world_.packets.data(packet);
  const wire::IcrcFlow flow(address_of(from_), address_of(to_), kUdpSourcePort);
  const std::uint32_t start = flow.start(bytes + kIcrcBytes);
  const std::uint32_t sealed = wire::icrc_of(wire::crc32, start, {data, bytes});
  const std::uint32_t bit = damage_.below((bytes + kIcrcBytes) * 8);
  std::uint32_t arrived = sealed;
  if (bit >= bytes * 8) {
    arrived ^= 1U << (bit - bytes * 8);
  } else {
    data[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  const bool is_unseen = wire::icrc_of(wire::crc32, start, {data, bytes}) == arrived;
  if (!is_unseen && bit < bytes * 8) data[bit / 8] ^= std::byte{1} << (bit % 8);
  // The BTH byte of FECN and BECN is not covered: what turns there arrives as it is.
  const bool is_uncovered = bit / 8 == 4;
  if (is_unseen && !is_uncovered) ++counters_.undetected;
  return is_unseen;
}

const char* Link::fault_of(PacketId packet, Instant left) {
  const std::uint32_t bytes = world_.packets.info(packet).bytes;
  if (options_.packet_bytes_max != 0 && bytes > options_.packet_bytes_max) return "too large";
  if (options_.switch_bytes_max != 0 && bytes_until(left) > options_.switch_bytes_max) {
    ++counters_.overflowed;
    return "overflow";
  }
  if (is_in_blackout(left)) return "blackout";
  if (is_lost()) return "lost";
  if (options_.corrupt != 0 && damage_.chance(options_.corrupt) && !survives_corruption(packet)) {
    return "corrupt";
  }
  return nullptr;
}

void Link::drop(PacketId packet, const char* why) {
  ++counters_.lost;
  world_.trace.sent(world_.now(), from_, to_, world_.packets.received(packet), why);
  world_.packets.release(packet);
}

void Link::send_as_written(PacketId packet, Instant left) {
  Script& script = *options_.script;
  const unsigned index = script.next++;
  if (index < 64 && (script.losses >> index & 1) != 0) return drop(packet, "lost");
  world_.trace.sent(world_.now(), from_, to_, world_.packets.received(packet), nullptr);
  Instant arrival = left + options_.delay;
  if (index == script.late) arrival = arrival + script.late_by;
  world_.at(arrival, receiver_, packet);
  if (index != script.repeated) return;
  world_.packets.share(packet);
  world_.at(arrival, receiver_, packet);
}

void Link::send(PacketId packet) {
  PacketInfo& info = world_.packets.info(packet);
  info.via = this;
  ++sent_;
  ++counters_.packets;
  world_.packets_sent += info.packet_count;
  const Instant left = leave(info.bytes + info.payload_bytes + kOverheadBytes);
  if (options_.script != nullptr) return send_as_written(packet, left);
  if (!options_.is_memory) {
    if (const char* fault = fault_of(packet, left); fault != nullptr) return drop(packet, fault);
  }
  const bool is_twice = options_.duplicate != 0 && delay_.chance(options_.duplicate);
  world_.trace.sent(world_.now(), from_, to_, world_.packets.received(packet),
                    is_twice ? "twice" : nullptr);
  world_.at(arrival_after(left), receiver_, packet);
  if (!is_twice) return;
  ++counters_.duplicated;
  world_.packets.share(packet);
  const Instant second = arrival_after(left);
  world_.at(second + up_to(delay_, options_.delay), receiver_, packet);
}

}  // namespace uroce::sim
