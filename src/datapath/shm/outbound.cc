// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/shm/outbound.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "datapath/directory/process_state.h"

namespace uroce::datapath::shm {
namespace {

// Longer than a program that polls needs for a message, and for a system call in between.
constexpr Duration kPutOffFor = microseconds(50);
constexpr Duration kLongestPause = milliseconds(100);
constexpr Duration kStuckForLong = milliseconds(1);  // from here on: does it live at all?
constexpr Duration kStallKnownFor = milliseconds(2);
constexpr Duration kAdoptsWithin = milliseconds(2'000);
constexpr Duration kPauseUnadopted = milliseconds(1'000);  // after that

}  // namespace

int Outbound::open(SlotHandle peer, std::uint32_t ring_bytes) {
  PeerSocket socket;
  if (!directory_.is_alive(peer)) return EHOSTUNREACH;
  if (const int error = socket.connect(directory_.socket_path(peer, "shm")); error != 0) {
    return error;
  }
  if (::getrandom(&key_, sizeof key_, 0) != sizeof key_) return errno;
  Result<RingMemory> memory = RingMemory::make(ring_bytes);
  if (!memory) return memory.error().code;
  peer_ = peer;
  socket_ = std::move(socket);
  memory_ = std::move(*memory);
  writer_ = RingWriter(memory_.control(), memory_.data(), ring_bytes, key_);
  sleeper_ = Sleeper(directory_.mailbox(peer.index), peer.generation);
  is_offered_ = is_gone_ = is_stalled_ = false;
  first_look_ = {};
  head_seen_ = woken_for_ = 0;
  const int error = offer();
  if (error == 0 || error == EAGAIN) return 0;
  close();
  return error == ECONNREFUSED ? EHOSTUNREACH : error;
}

void Outbound::close() {
  memory_ = RingMemory();
  socket_.close();
}

int Outbound::offer() {
  const RingOffer offer{
      .from = directory_.own_slot(), .to = peer_, .key = key_, .data_bytes = memory_.data_bytes()};
  const int error = socket_.offer(offer, memory_.descriptor());
  if (error == 0) {
    is_offered_ = true;
    ring_bell();
  }
  return error;
}

// The peer may have had no descriptor for it, or no memory: it is offered again.
void Outbound::see_to_adoption() {
  if (writer_.is_adopted()) return memory_.close_descriptor();
  if (first_look_ == Instant{}) first_look_ = now_;
  if (!is_offered_ || pause_ >= kStuckForLong) (void)offer();
}

bool Outbound::is_never_adopted() const {
  const bool was_looked_at = first_look_ != Instant{};
  return !writer_.is_adopted() && was_looked_at && now_ - first_look_ > kAdoptsWithin;
}

// Whoever does not take the ring, a stopped process perhaps, may be so for hours.
Duration Outbound::longest_pause() const {
  return is_never_adopted() ? kPauseUnadopted : kLongestPause;
}

bool Outbound::wake_if_asleep() {
  if (!is_offered_) (void)offer();
  if (!sleeper_.must_be_woken()) return false;
  woken_for_ = writer_.tail();
  send_wake_up();
  return true;
}

Outbound::Watched Outbound::watch(Instant now) {
  now_ = now;
  if (next_look_ == Instant{}) {
    pause_ = is_wake_up_put_off_ ? kPutOffFor : wake_after_;
    next_look_ = now + pause_;
  }
  if (now < next_look_ && !is_gone_) return {.is_unread = true};
  const std::uint64_t head = writer_.refresh_head();
  if (!is_gone_) see_to_adoption();
  if (is_gone_ || head == writer_.tail()) {
    is_watched_ = is_wake_up_put_off_ = false;
    return {};
  }
  const bool is_stuck = head == head_seen_;
  head_seen_ = head;
  if (is_stuck) {
    // Not before: whoever has armed its own wake-up meanwhile relies on ours (next_wake_up).
    is_wake_up_put_off_ = false;
    if (pause_ >= kStuckForLong) look_whether_alive();
    wake_anyway();
  }
  pause_ = is_stuck ? std::min(pause_ * 2, longest_pause()) : wake_after_;
  next_look_ = now + pause_;
  return {.is_unread = true, .has_woken = is_stuck};
}

void Outbound::wake_anyway() {
  if (!is_offered_) (void)offer();
  woken_for_ = writer_.tail();
  send_wake_up();
}

void Outbound::send_wake_up() {
  socket_.wake();
  ring_bell();
}

// After the datagram, not before: a peer that is polling takes datagrams out of its socket only
// when it hears the bell, and one that stays behind would keep its helper thread awake.
void Outbound::ring_bell() {
  directory_.mailbox(peer_.index).bell.fetch_add(1, std::memory_order_release);
}

// A ring that the peer has refused counts as a dead peer: nothing will be read from it again.
void Outbound::look_whether_alive() {
  is_gone_ = writer_.is_refused() || !directory_.is_alive(peer_);
  if (is_gone_) directory_.sweep();
}

bool Outbound::reads_by_itself() {
  const std::uint64_t turns =
      directory_.mailbox(peer_.index).application_turns.load(std::memory_order_relaxed);
  const bool has_polled = is_wake_up_put_off_ || turns != turns_seen_;
  turns_seen_ = turns;
  const bool was_put_off = is_wake_up_put_off_;
  is_wake_up_put_off_ = has_polled && turns % 2 == 0;
  // New time to read it; but to whom reads nothing only once.
  const std::uint64_t head = writer_.refresh_head();
  if (is_wake_up_put_off_ && (!was_put_off || head != head_seen_)) next_look_ = {};
  head_seen_ = head;
  return is_wake_up_put_off_;
}

Instant Outbound::next_wake_up() const {
  return is_wake_up_put_off_ || !writer_.is_adopted() ? next_look_ : Instant::never();
}

bool Outbound::wake_if_unread() {
  if (is_gone_ || is_wake_up_put_off_ || woken_for_ == writer_.tail() || is_all_read())
    return false;
  wake_anyway();
  return true;
}

bool Outbound::is_stalled() {
  if (is_gone_ || is_all_read()) return false;
  if (is_never_adopted()) return false;
  if (now_ >= stall_known_until_) {
    is_stalled_ = find_out_whether_stalled();
    stall_known_until_ = now_ + kStallKnownFor;
  }
  return is_stalled_;
}

// A stopped process is not stalled: nothing says that it will ever go on, so its peers' retries
// count. What /proc does not show (another PID namespace) is taken to run, since its lock is held.
bool Outbound::find_out_whether_stalled() {
  look_whether_alive();
  if (is_gone_) return false;
  const auto info = directory_.info(peer_);
  if (!info) return false;
  const auto state = read_process_state(info->pid);
  const bool is_it = state && state->start_time == info->start_time;
  return !is_it || !state->is_stopped();
}

}  // namespace uroce::datapath::shm
