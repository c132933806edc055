// SPDX-License-Identifier: BSD-2-Clause
// Floors of the shared-memory way, between two processes on two CPUs: a cache line handed to and
// fro, memcpy, and the datapath itself without any transport. Prints "name value unit" lines.
//
//   shm_bench floors                 the cache line and memcpy only
//   shm_bench [RING-KiB [RUN-KiB]]
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "datapath/shm/shm_datapath.h"

namespace uroce::datapath {
namespace {

constexpr int kRounds = 5;

double seconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Instant instant_now() { return {static_cast<std::int64_t>(seconds_now() * 1e9)}; }

cpu_set_t allowed_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  return allowed;
}

// To the first (0) or second (1) CPU that the program was started on, where there are two.
void pin_to(unsigned wanted) {
  static const cpu_set_t allowed = allowed_cpus();
  for (unsigned cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || seen++ != wanted) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

void print_median(const char* name, std::vector<double> values, const char* unit) {
  std::sort(values.begin(), values.end());
  std::printf("%-28s %10.3f %s\n", name, values[values.size() / 2], unit);
  std::fflush(stdout);
}

// A forked process on the second CPU; the caller is on the first.
template <typename Body>
pid_t start_on_second_cpu(Body body) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  pin_to(1);
  body();
  ::_exit(0);
}

struct alignas(64) Line {
  std::atomic<std::uint64_t> word;
};

void measure_line_hand_over() {
  void* shared = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  auto* lines = static_cast<Line*>(shared);
  constexpr std::uint64_t kTrips = 200'000;
  const pid_t child = start_on_second_cpu([&] {
    for (std::uint64_t i = 1; i <= kTrips * kRounds; ++i) {
      while (lines[0].word.load(std::memory_order_acquire) != i) {
      }
      lines[1].word.store(i, std::memory_order_release);
    }
  });
  std::vector<double> values;
  std::uint64_t i = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = seconds_now();
    for (std::uint64_t end = i + kTrips; i < end;) {
      lines[0].word.store(++i, std::memory_order_release);
      while (lines[1].word.load(std::memory_order_acquire) != i) {
      }
    }
    values.push_back((seconds_now() - begin) * 1e9 / (2.0 * kTrips));
  }
  ::waitpid(child, nullptr, 0);
  ::munmap(shared, 4096);
  print_median("cache_line_hand_over", values, "ns");
}

void measure_memcpy(std::size_t bytes, const char* name) {
  std::vector<char> from(bytes, 1), to(bytes);
  const std::size_t times = (std::size_t{2} << 30) / bytes;
  std::vector<double> values;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = seconds_now();
    for (std::size_t i = 0; i < times; ++i) {
      std::memcpy(to.data(), from.data(), bytes);
      asm volatile("" ::: "memory");
    }
    values.push_back(static_cast<double>(times * bytes) / (seconds_now() - begin) * 1e-9);
  }
  print_median(name, values, "GB/s");
}

// One end: an engine of its own with one path to the other.
class End {
 public:
  End(const std::string& folder, const ShmOptions& options) {
    auto joined = Directory::join({.folder = folder, .device = "bench"});
    if (!joined) fail(joined.error());
    directory_ = std::move(*joined);
    auto made = ShmDatapath::create(*directory_, options);
    if (!made) fail(made.error());
    link_ = std::move(*made);
    const auto block = directory_->claim_block();
    own_qpn_ = {block.value_or(0) * kQpnsPerBlock};
  }
  [[nodiscard]] Qpn own_qpn() const { return own_qpn_; }
  ShmDatapath& link() { return *link_; }
  void connect(Qpn peer) {
    peer_ = peer;
    while (link_->open_path(path_, peer) != 0) ::sched_yield();
  }
  TxFrame frame(ConstBytes* payload) {
    TxFrame made;
    made.path = &path_;
    made.destination_qpn = peer_;
    made.header_bytes = 28;  // BTH, RETH
    made.header = {};
    made.gather = payload;
    made.gather_count = 1;
    made.payload_bytes = static_cast<std::uint32_t>(payload->size());
    return made;
  }
  // Sends `count` frames in bursts of `burst`, as often refused as need be.
  void send(ConstBytes payload, std::uint64_t count, std::size_t burst) {
    std::vector<TxFrame> frames(burst, frame(&payload));
    for (std::uint64_t sent = 0; sent < count;) {
      const std::size_t now = std::min<std::uint64_t>(burst, count - sent);
      for (TxFrame& one : frames) one.refused = false;
      sent += now - link_->tx_burst(std::span(frames).first(now));
    }
  }
  // Receives `count` frames, copying the payload to `into` where there is one.
  void receive(std::uint64_t count, std::byte* into) {
    RxPacket packets[32];
    for (std::uint64_t got = 0; got < count;) {
      const std::size_t now = link_->rx_burst(packets);
      for (std::size_t i = 0; i < now && into != nullptr; ++i) {
        const ConstBytes payload = packets[i].detached_payload;
        std::memcpy(into, payload.data(), payload.size());
      }
      got += now;
    }
  }

 private:
  [[noreturn]] static void fail(const Error& error) {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    ::_exit(1);
  }
  std::unique_ptr<Directory> directory_;
  std::unique_ptr<ShmDatapath> link_;
  Path path_;
  Qpn own_qpn_, peer_;
};

struct Meeting {
  std::atomic<std::uint32_t> first_qpn, second_qpn;
};

void meet(End& end, std::atomic<std::uint32_t>& own, std::atomic<std::uint32_t>& other) {
  own.store(end.own_qpn().value);
  while (other.load() == 0) {
  }
  end.connect(Qpn{other.load()});
}

// Runs `first` here and `second` in another process on the other CPU, with a path each way, and
// returns what `first` took.
template <typename First, typename Second>
double run_pair(const ShmOptions& options, First first, Second second) {
  std::string folder = (std::filesystem::temp_directory_path() / "uroce-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 0;
  void* shared = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* meeting = new (shared) Meeting{};
  const pid_t child = start_on_second_cpu([&] {
    End end(folder, options);
    meet(end, meeting->second_qpn, meeting->first_qpn);
    second(end);
  });
  double took = 0;
  {
    End end(folder, options);
    meet(end, meeting->first_qpn, meeting->second_qpn);
    const double begin = seconds_now();
    first(end);
    took = seconds_now() - begin;
  }
  ::waitpid(child, nullptr, 0);
  ::munmap(shared, 4096);
  std::filesystem::remove_all(folder);
  return took;
}

// One way, `count` frames of `bytes`, and one back at the end.
void measure_stream(const char* name, const ShmOptions& options, std::size_t bytes,
                    std::uint64_t count, std::size_t burst, bool in_bytes) {
  std::vector<std::byte> from(bytes * 4), into(bytes);
  const ConstBytes payload(from.data(), bytes);
  std::vector<double> values;
  for (int round = 0; round < kRounds; ++round) {
    const double took = run_pair(
        options,
        [&](End& end) {
          end.send(payload, count, burst);
          end.receive(1, nullptr);
        },
        [&](End& end) {
          end.receive(count, into.data());
          end.send(payload.first(0), 1, 1);
        });
    const double amount = static_cast<double>(in_bytes ? count * bytes : count);
    values.push_back(amount / took * (in_bytes ? 1e-9 : 1e-6));
  }
  print_median(name, values, in_bytes ? "GB/s" : "M/s");
}

// 8 bytes to and fro, with one turn's worth of calls around; half a round trip.
void measure_latency(const ShmOptions& options) {
  constexpr std::uint64_t kTrips = 100'000;
  std::byte word[8]{};
  std::vector<double> values;
  const auto ping = [&](End& end) {
    for (std::uint64_t i = 0; i < kTrips; ++i) {
      end.send(word, 1, 1);
      end.link().on_turn(instant_now());
      end.receive(1, word);
    }
  };
  const auto pong = [&](End& end) {
    for (std::uint64_t i = 0; i < kTrips; ++i) {
      end.receive(1, word);
      end.send(word, 1, 1);
      end.link().on_turn(instant_now());
    }
  };
  for (int round = 0; round < kRounds; ++round) {
    values.push_back(run_pair(options, ping, pong) * 1e9 / (2.0 * kTrips));
  }
  print_median("shm_8B_half_round_trip", values, "ns");
}

void measure_empty_poll(const ShmOptions& options) {
  constexpr int kPolls = 10'000'000;
  const double took = run_pair(
      options,
      [&](End& end) {
        RxPacket packets[32];
        for (int i = 0; i < kPolls; ++i) (void)end.link().rx_burst(packets);
        end.send({}, 1, 1);
      },
      [&](End& end) {
        end.send({}, 1, 1);
        end.receive(1, nullptr);
      });
  print_median("shm_empty_poll", {took * 1e9 / kPolls}, "ns");
}

void measure_floors() {
  pin_to(0);
  measure_line_hand_over();
  measure_memcpy(64 << 10, "memcpy_64KiB");
  measure_memcpy(1 << 20, "memcpy_1MiB");
  measure_memcpy(64 << 20, "memcpy_64MiB");
}

int run(int argc, char** argv) {
  measure_floors();
  if (argc > 1 && std::strcmp(argv[1], "floors") == 0) return 0;
  ShmOptions options;
  if (argc > 1) options.ring_bytes = static_cast<std::uint32_t>(std::atoi(argv[1])) << 10;
  if (argc > 2) options.max_run_bytes = static_cast<std::uint32_t>(std::atoi(argv[2])) << 10;
  measure_latency(options);
  measure_empty_poll(options);
  measure_stream("shm_8B_single", options, 8, 4'000'000, 1, false);
  measure_stream("shm_8B_bursts", options, 8, 4'000'000, 32, false);
  measure_stream("shm_4KiB_frames", options, 4096, 500'000, 16, true);
  measure_stream("shm_64KiB_frames", options, 64 << 10, 50'000, 4, true);
  return 0;
}

}  // namespace
}  // namespace uroce::datapath

int main(int argc, char** argv) { return uroce::datapath::run(argc, argv); }
