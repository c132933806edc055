// SPDX-License-Identifier: BSD-2-Clause
// The oracle's model of messages that may be lost: what one queue pair of an unreliable service has
// sent, and what of it each receiver may see. A message arrives whole or not at all, no more often
// than the network repeats packets, and in the order of sending where the network keeps that. Its
// sender hears of no loss: requests succeed, one after the other.
//
// Every byte of a message follows from who sends it and which one it is, so what arrives says what
// it should be.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/oracle.h"
#include "transport/completion.h"
#include "transport/work_request.h"
#include "uroce/packet.h"

namespace uroce::sim {

// To all members of the group; receivers have smaller numbers.
inline constexpr std::uint32_t kToGroup = ~std::uint32_t{0};

struct Parcel {
  transport::SendOperation operation = transport::SendOperation::kSend;
  std::uint32_t length = 0;
  std::uint32_t receiver = 0;
  std::uint32_t place = 0;  // of a WRITE: where in the receiver's memory
  bool is_signaled = false;
  bool is_refused = false;  // it must not arrive: a wrong key
  std::uint64_t wr_id = 0;

  [[nodiscard]] bool is_write() const { return transport::is_write(operation); }
  [[nodiscard]] bool has_immediate() const {
    return operation == transport::SendOperation::kSendWithImmediate ||
           operation == transport::SendOperation::kWriteWithImmediate;
  }
};

// What a receive completion says, and what lies in its buffer.
struct Arrival {
  bool has_immediate = false;
  bool is_write = false;
  bool is_to_group = false;
  std::uint32_t immediate = 0;
  std::uint32_t length = 0;
  ConstBytes data;  // none, of a WRITE
};

// So many have arrived, to be seen that they do.
struct Arrivals {
  std::uint64_t over_connections = 0;
  std::uint64_t datagrams = 0;
  std::uint64_t to_group = 0;            // of the datagrams
  std::uint64_t to_group_from_here = 0;  // of these, from the same node
};

struct NetworkRules {
  bool repeats = false;      // a packet may arrive twice
  bool keeps_order = false;  // none overtakes another
};

class Ledger {
 public:
  // Shorter ones say their number by immediate data only.
  static constexpr std::uint32_t kNumberBytes = 4;

  Ledger(Oracle& oracle, std::uint32_t sender, NetworkRules rules)
      : oracle_(oracle), sender_(sender), rules_(rules) {}

  // The next message's number, which is its immediate data too.
  [[nodiscard]] std::uint32_t next_number() const {
    return static_cast<std::uint32_t>(parcels_.size());
  }
  void write(std::uint32_t number, Bytes data) const;
  void post(const Parcel& parcel);

  // Of the sender. `may_flush`: it is in ERR.
  void on_sent(const transport::Cqe& entry, bool may_flush);
  [[nodiscard]] bool is_idle() const { return pending_.empty(); }
  // Behind the last completion; they had none to come.
  void flush_unsignaled();
  void abandon() { pending_.clear(); }

  // At `receiver`, whose `seen` this is of this sender.
  struct Seen {
    std::vector<std::uint8_t> times;
    std::uint32_t next = 0;
  };
  void on_received(std::uint32_t receiver, const Arrival& arrival, Seen& seen);

  // What lies in `memory` of `receiver` and may be from this sender is what is expected there.
  void accept_writes(std::uint32_t receiver, ConstBytes memory, Bytes expected);
  [[nodiscard]] std::uint64_t succeeded() const { return succeeded_; }
  [[nodiscard]] const Parcel& parcel(std::uint32_t number) const { return parcels_[number]; }

 private:
  // In `scratch_`, until the next.
  [[nodiscard]] Bytes written(std::uint32_t number, std::size_t bytes);
  [[nodiscard]] std::uint32_t number_of(const Arrival& arrival) const;
  void check_whole(std::uint32_t number, const Arrival& arrival);
  void check_turn(std::uint32_t number, Seen& seen);
  void succeed_front();

  Oracle& oracle_;
  std::uint32_t sender_;
  NetworkRules rules_;
  std::vector<Parcel> parcels_;
  std::deque<std::uint32_t> pending_;  // not completed
  std::vector<std::byte> scratch_;
  bool was_flushed_ = false;
  std::uint64_t succeeded_ = 0;
};

}  // namespace uroce::sim
