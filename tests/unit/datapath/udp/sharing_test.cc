// SPDX-License-Identifier: BSD-2-Clause
// Several engines on one port: each gets what is for its own QPs, whoever joins, leaves, dies or is
// stopped.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "datapath/udp/group_file.h"
#include "endpoint.h"

namespace uroce::datapath::test {
namespace {

// Time as the engine would pass it: every turn a little later.
Instant next_turn() {
  static Instant now;
  now = now + milliseconds(30);
  return now;
}

void send_to(Endpoint& from, Qpn destination, Psn psn = Psn(1)) {
  Path path = from.path_to(ipv4_loopback(), ipv4_loopback());
  TxFrame frame =
      make_frame(path, destination, {.opcode = wire::Opcode::kRcSendOnly, .psn = psn}, {});
  EXPECT_EQ(from.link->tx_burst({&frame, 1}), 0u);
  from.link->close_path(path);
}

class Sharing : public testing::Test {
 protected:
  Endpoint& join() { return members_.emplace_back(folder_.path()); }

  // A packet to each, and each has exactly that; nobody had to pass anything on.
  void expect_each_gets_its_own() {
    for (Endpoint& member : members_) send_to(members_.front(), member.qpn());
    for (Endpoint& member : members_) {
      const auto arrivals = receive(*member.link, 1);
      ASSERT_EQ(arrivals.size(), 1u);
      EXPECT_EQ(arrivals[0].parsed().bth.destination, member.qpn());
      EXPECT_EQ(receive_pending(member), 0u);
    }
  }

  static std::size_t receive_pending(Endpoint& member) {
    std::array<RxPacket, 32> packets;
    return member.link->rx_burst(packets);
  }

  TemporaryFolder folder_;
  std::deque<Endpoint> members_;
};

TEST_F(Sharing, SixteenMembersEachGetTheirOwn) {
  for (int i = 0; i < 16; ++i) join();
  expect_each_gets_its_own();
}

TEST_F(Sharing, WhoeverLeavesTheOthersGoOn) {
  for (int i = 0; i < 9; ++i) join();
  for (const std::ptrdiff_t leaving :
       {3, 0, 6, 1}) {  // the middle, the first, the last, the middle
    members_.erase(members_.begin() + leaving);
    expect_each_gets_its_own();
    join();
    expect_each_gets_its_own();
  }
}

TEST_F(Sharing, PacketsInTheSocketOfALeavingMemberAreNotLost) {
  for (int i = 0; i < 3; ++i) join();
  // As an outdated program would have it: what is for the last member goes to the first.
  const udp::OwnedBlock outdated = {static_cast<std::uint16_t>(members_[2].block), 0};
  ASSERT_EQ(udp::attach_steering_program(members_[0].link->wakeup_descriptor(), {&outdated, 1}), 0);
  send_to(members_[1], members_[2].qpn());
  members_[0].link.reset();
  EXPECT_EQ(receive(*members_[2].link, 1).size(), 1u);
}

TEST_F(Sharing, ANewBlockIsSteeredFromTheNextTurnOn) {
  Endpoint& first = join();
  Endpoint& second = join();
  const std::uint32_t block = first.directory->claim_block().value();
  second.link->on_turn(next_turn());  // whoever comes first does it for all
  send_to(second, {block * kQpnsPerBlock + 9});
  EXPECT_EQ(receive(*first.link, 1).size(), 1u);
  EXPECT_EQ(receive_pending(second), 0u);
}

// Of two blocks that are not in the program the kernel gives one to the wrong socket.
TEST_F(Sharing, NewBlocksAreSteeredAtOnceHoweverShortlyAfterATurn) {
  join();
  join();
  ASSERT_TRUE(members_[0].directory->claim_block());
  const Instant now = next_turn();
  members_[0].link->on_turn(now);
  std::vector<Qpn> numbers;
  for (Endpoint& member : members_) {
    numbers.push_back({member.directory->claim_block().value() * kQpnsPerBlock});
  }
  members_[0].link->on_turn(now + Duration{1});
  for (const Qpn number : numbers) send_to(members_[0], number);
  for (Endpoint& member : members_) {
    EXPECT_EQ(receive(*member.link, 1).size(), 1u);
    EXPECT_EQ(receive_pending(member), 0u);
  }
}

// A file that tells the wrong order is what simultaneous deaths can leave behind.
TEST_F(Sharing, AWrongOrderIsNoticedPassedOnAndCorrected) {
  for (int i = 0; i < 4; ++i) join();
  auto file = udp::GroupFile::open(folder_.path(), test_port());
  ASSERT_TRUE(file);
  const auto right_order = (*file)->members();
  auto wrong_order = right_order;
  std::rotate(wrong_order.begin(), wrong_order.begin() + 1, wrong_order.end());
  (*file)->set_members(wrong_order);
  (*file)->set_attached_epoch(0);
  ASSERT_TRUE(members_[0].directory->claim_block());
  members_[0].link->on_turn(next_turn());  // installs the wrong program
  for (int round = 0; round < 20 && (*file)->members() != right_order; ++round) {
    for (Endpoint& member : members_) send_to(members_[0], member.qpn());
    for (Endpoint& member : members_) {
      receive_pending(member);
      member.link->on_turn(next_turn());
    }
  }
  EXPECT_EQ((*file)->members(), right_order);
  for (Endpoint& member : members_) {
    while (receive_pending(member) != 0) {
    }
  }
  expect_each_gets_its_own();
}

TEST_F(Sharing, AChildThatAbandonsItsCopyHoldsNoSocket) {
  Endpoint& member = join();
  send_to(member, member.qpn());
  const pid_t child = fork();
  if (child == 0) {
    member.link->abandon_in_child();
    int sockets = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;
      const auto target = std::filesystem::read_symlink(entry.path(), ignored).string();
      if (target.starts_with("socket:") || target.find("/udp-") != std::string::npos) ++sockets;
    }
    _exit(sockets);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(receive(*member.link, 1).size(), 1u);
}

// A process that answers every packet with one to the sender's QP, which is in the payload.
class Echo {
 public:
  explicit Echo(
      const std::string& folder, const std::function<void()>& when_joined = [] {}) {
    int ready[2];
    if (pipe(ready) != 0) throw std::runtime_error("pipe");
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // also if the test itself is killed
      serve(folder, ready[1], when_joined);
    }
    close(ready[1]);
    if (read(ready[0], &qpn_, sizeof qpn_) != sizeof qpn_) throw std::runtime_error("no echo");
    close(ready[0]);
  }
  ~Echo() { kill(); }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;

  [[nodiscard]] Qpn qpn() const { return qpn_; }
  [[nodiscard]] bool is_running() const { return pid_ > 0; }
  void signal(int number) const { ::kill(pid_, number); }
  void kill() {
    if (pid_ <= 0) return;
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  [[noreturn]] static void serve(const std::string& folder, int ready,
                                 const std::function<void()>& when_joined) {
    Endpoint endpoint(folder);
    when_joined();
    const Qpn own = endpoint.qpn();
    if (write(ready, &own, sizeof own) != sizeof own) _exit(1);
    for (;;) {
      pollfd waiting = {endpoint.link->wakeup_descriptor(), POLLIN, 0};
      poll(&waiting, 1, 10);
      endpoint.link->on_turn(next_turn());
      for (const Arrival& arrival : receive_now(endpoint)) {
        const auto view = arrival.parsed();
        Qpn sender;
        if (view.payload.size() != sizeof sender) continue;
        std::memcpy(&sender, view.payload.data(), sizeof sender);
        send_to(endpoint, sender, view.bth.psn);
      }
    }
  }

  static std::vector<Arrival> receive_now(Endpoint& endpoint) {
    std::vector<Arrival> arrivals;
    std::array<RxPacket, 32> packets;
    const std::size_t count = endpoint.link->rx_burst(packets);
    for (std::size_t i = 0; i < count; ++i) {
      arrivals.push_back({{packets[i].bytes.begin(), packets[i].bytes.end()}, {}, {}});
    }
    return arrivals;
  }

  pid_t pid_ = -1;
  Qpn qpn_;
};

class Processes : public testing::Test {
 protected:
  void start(int count) {
    for (int i = 0; i < count; ++i) echoes_.emplace_back(folder_.path());
    own_.emplace(folder_.path());
  }

  // How many answers come to `attempts` packets; an attempt waits for its answer.
  int answers(const Echo& echo, int attempts, int patience_ms) {
    int count = 0;
    for (int i = 0; i < attempts; ++i) {
      const Qpn back = own_->qpn();
      const ConstBytes payload = std::as_bytes(std::span(&back, 1));
      Path path = own_->path_to(ipv4_loopback(), ipv4_loopback());
      const WriteRun send = {.opcode = wire::Opcode::kRcSendOnly,
                             .payload_bytes = sizeof back,
                             .psn = Psn(psn_ = psn_ + 1)};
      TxFrame frame = make_frame(path, echo.qpn(), send, payload);
      EXPECT_EQ(own_->link->tx_burst({&frame, 1}), 0u);
      own_->link->close_path(path);
      count += wait_for_answer(psn_, patience_ms) ? 1 : 0;
    }
    return count;
  }

  bool wait_for_answer(std::uint32_t psn, int patience_ms) {
    std::array<RxPacket, 32> packets;
    for (;;) {
      const std::size_t count = own_->link->rx_burst(packets);
      for (std::size_t i = 0; i < count; ++i) {
        wire::PacketView view;
        if (wire::parse(packets[i], view) != wire::DropReason::kNone) continue;
        if (view.bth.psn == Psn(psn)) return true;
      }
      own_->link->on_turn(next_turn());
      pollfd waiting = {own_->link->wakeup_descriptor(), POLLIN, 0};
      if (count == 0 && poll(&waiting, 1, patience_ms) == 0) return false;
    }
  }

  // As a transport does: again until it is answered.
  bool is_answered_at_last(const Echo& echo) {
    for (int i = 0; i < 100; ++i) {
      if (answers(echo, 1, 50) == 1) return true;
    }
    return false;
  }

  TemporaryFolder folder_;
  std::deque<Echo> echoes_;
  std::optional<Endpoint> own_;
  std::uint32_t psn_ = 0;
};

TEST_F(Processes, EachAnswersItsOwn) {
  start(4);
  for (const Echo& echo : echoes_) EXPECT_EQ(answers(echo, 20, 5'000), 20);
}

TEST_F(Processes, KilledOnesDoNotTakeTheOthersWithThem) {
  start(6);
  echoes_[0].signal(SIGKILL);
  echoes_[1].signal(SIGKILL);  // at once: in which order, nobody knows
  echoes_[4].signal(SIGKILL);
  for (const std::size_t dead : {0u, 1u, 4u}) echoes_[dead].kill();
  for (const std::size_t alive : {2u, 3u, 5u}) EXPECT_TRUE(is_answered_at_last(echoes_[alive]));
  for (const std::size_t alive : {2u, 3u, 5u}) {
    EXPECT_EQ(answers(echoes_[alive], 20, 5'000), 20) << alive;
  }
}

// A child cloned past every fork handler, and what it inherited; it ends with this object.
class Orphan {
 public:
  Orphan() {
    if (pipe(until_.data()) != 0) throw std::runtime_error("pipe");
  }
  ~Orphan() {
    close(until_[0]);
    close(until_[1]);
  }
  Orphan(const Orphan&) = delete;
  Orphan& operator=(const Orphan&) = delete;

  void start() const {
    if (syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr) != 0) return;
    close(until_[1]);
    char none = 0;
    while (read(until_[0], &none, 1) > 0) {
    }
    _exit(0);
  }

 private:
  std::array<int, 2> until_{};
};

TEST_F(Processes, ASocketThatAnOrphanHoldsIsNobodys) {
  std::optional<Orphan> orphan(std::in_place);
  for (int i = 0; i < 4; ++i) {
    const bool leaves_orphan = i == 1 || i == 3;
    echoes_.emplace_back(folder_.path(), [&] {
      if (leaves_orphan) orphan->start();
    });
  }
  own_.emplace(folder_.path());
  echoes_[1].kill();
  echoes_[3].kill();
  for (const std::size_t alive : {0u, 2u}) EXPECT_TRUE(is_answered_at_last(echoes_[alive]));
  const Echo& late = echoes_.emplace_back(folder_.path());
  EXPECT_TRUE(is_answered_at_last(late));
  for (const std::size_t alive : {0u, 2u, 4u}) EXPECT_EQ(answers(echoes_[alive], 20, 5'000), 20);
  orphan.reset();  // the kernel closes both sockets, and the last ones move into their places
  for (const std::size_t alive : {0u, 2u, 4u}) EXPECT_TRUE(is_answered_at_last(echoes_[alive]));
  for (const std::size_t alive : {0u, 2u, 4u}) EXPECT_EQ(answers(echoes_[alive], 20, 5'000), 20);
}

TEST_F(Processes, AStoppedOneLosesNothingAndTakesNothing) {
  start(4);
  echoes_[1].signal(SIGSTOP);
  EXPECT_EQ(answers(echoes_[1], 5, 1), 0);
  for (const std::size_t running : {0u, 2u, 3u}) {
    EXPECT_EQ(answers(echoes_[running], 20, 5'000), 20);
  }
  echoes_[0].kill();  // the order changes while it is stopped
  for (const std::size_t running : {2u, 3u}) EXPECT_TRUE(is_answered_at_last(echoes_[running]));
  for (const std::size_t running : {2u, 3u}) {
    EXPECT_EQ(answers(echoes_[running], 20, 5'000), 20);
  }
  echoes_[1].signal(SIGCONT);
  EXPECT_TRUE(wait_for_answer(5, 5'000));  // to the last of the five sent while it was stopped
  EXPECT_EQ(answers(echoes_[1], 5, 5'000), 5);
}

}  // namespace
}  // namespace uroce::datapath::test
