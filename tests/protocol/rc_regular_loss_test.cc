// SPDX-License-Identifier: BSD-2-Clause
// A path that loses packets at a regular distance, as a queue that overflows in step with its
// senders does. A retransmission that is as long as some of these distances loses the same packet
// each time, so this is about retransmissions that differ from each other. Whatever is under way,
// it is completed, if of the packets two in a row get through each time: a request and its answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>

#include "support/pair.h"

namespace uroce::test {
namespace {

using namespace transport;

constexpr std::uint16_t kMtu = 256;

struct Mix {
  const char* name;
  std::string_view operations;  // Read, Write, Send, Add
  std::uint32_t packets;        // of each but the Adds

  [[nodiscard]] std::size_t place_of(std::size_t i) const { return i * packets * kMtu; }
  // Behind those of all requests.
  [[nodiscard]] std::size_t counter() const { return place_of(operations.size()); }
};
constexpr Mix kMixes[] = {
    {"AReadOfMany", "R", 64},
    {"ReadsOfOne", "RRRRRRRR", 1},
    {"Reads", "RRRR", 16},
    {"Adds", "AAAAAAAA", 1},
    {"WritesOfOne", "WWWWWWWW", 1},
    {"Writes", "WWWW", 16},
    {"Sends", "SSSS", 16},
    {"Everything", "WSRAA", 64},
    {"EverythingTwice", "RARWARSRWA", 7},
    {"ReadsAndAdds", "RARARA", 5},
};
enum class Peer { kOurs, kPlain };

struct Loss {
  unsigned period, run, phase;
  [[nodiscard]] bool befalls(unsigned packet) const { return (packet + phase) % period < run; }
};

class Exchange {
 public:
  Exchange(const Mix& mix, Peer peer)
      : mix_(mix),
        pair_({.max_run_packets = 1, .max_run_bytes = kMtu}, {.path_mtu = kMtu, .timeout = 8},
              mix.counter() + sizeof(std::uint64_t)) {
    if (peer == Peer::kPlain) pair_.b.hca.stash().set_memory({}, {});
    fill(pair_.a, 1);
    fill(pair_.b, 2);
    for (std::size_t i = 0; i < mix.operations.size(); ++i) post(i);
  }

  // True: everything was completed, and nothing else is different.
  bool survives(const Loss& loss) {
    const auto fate = [&](unsigned index, const Packet&) { return loss.befalls(index) ? 0 : 1; };
    if (!pair_.run(fate, 2'000)) return false;
    const auto done = pair_.a.poll_all();
    const auto succeeded = [](const Cqe& entry) { return entry.status == WcStatus::kSuccess; };
    return done.size() == mix_.operations.size() && std::ranges::all_of(done, succeeded) &&
           is_right();
  }

 private:
  void fill(Endpoint& endpoint, unsigned seed) const {
    for (std::size_t i = 0; i < mix_.counter(); ++i) {
      endpoint.buffer[i] = static_cast<std::byte>((i * seed) ^ (i >> 8));
    }
  }
  [[nodiscard]] std::uint32_t bytes(char operation) const {
    return operation == 'A' ? 8 : mix_.packets * kMtu - 3;
  }

  void post(std::size_t i) {
    const char operation = mix_.operations[i];
    const std::size_t offset = mix_.place_of(i);
    SendRequest request{
        .sges = {pair_.a.sge(offset, bytes(operation))},
        .remote_address = pair_.b.address(operation == 'A' ? mix_.counter() : offset),
        .rkey = {Endpoint::kKey},
        .compare_add = 1};
    if (operation == 'R') request.operation = SendOperation::kRead;
    if (operation == 'W') request.operation = SendOperation::kWrite;
    if (operation == 'A') request.operation = SendOperation::kFetchAdd;
    if (operation == 'S') {
      pair_.b.post_receive(pair_.qp_b, i, {pair_.b.sge(offset, bytes(operation))});
    }
    pair_.a.post_send(pair_.qp_a, request);
  }

  // Every request has moved its bytes, and every atomic has counted once, in its turn.
  [[nodiscard]] bool is_right() const {
    std::uint64_t added = 0;
    for (std::size_t i = 0; i < mix_.operations.size(); ++i) {
      const std::byte* a = pair_.a.buffer.data() + mix_.place_of(i);
      const std::byte* b = pair_.b.buffer.data() + mix_.place_of(i);
      if (mix_.operations[i] == 'A') {
        if (std::memcmp(a, &added, sizeof added) != 0) return false;
        ++added;
      } else if (std::memcmp(a, b, bytes(mix_.operations[i])) != 0) {
        return false;
      }
    }
    return std::memcmp(pair_.b.buffer.data() + mix_.counter(), &added, sizeof added) == 0;
  }

  const Mix& mix_;
  Pair pair_;
};

using Case = std::tuple<Mix, Peer>;

class RcRegularLoss : public ::testing::TestWithParam<Case> {};

TEST_P(RcRegularLoss, EverythingIsCompleted) {
  const auto& [mix, peer] = GetParam();
  for (unsigned run = 1; run <= 3; ++run) {
    for (unsigned period = run + 2; period <= 64; ++period) {
      for (unsigned phase = 0; phase < period; phase += period < 16 ? 1 : 13) {
        EXPECT_TRUE(Exchange(mix, peer).survives({period, run, phase}))
            << run << " of " << period << " packets, from " << phase << " on";
      }
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& tested) {
  const bool is_ours = std::get<Peer>(tested.param) == Peer::kOurs;
  return std::string(std::get<Mix>(tested.param).name) +
         (is_ours ? "WithOurs" : "WithOneThatGoesBack");
}

INSTANTIATE_TEST_SUITE_P(Mixes, RcRegularLoss,
                         ::testing::Combine(::testing::ValuesIn(kMixes),
                                            ::testing::Values(Peer::kOurs, Peer::kPlain)),
                         name_of);

}  // namespace
}  // namespace uroce::test
