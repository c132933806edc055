// SPDX-License-Identifier: BSD-2-Clause
// Several engines in one process.
#include "datapath/shm/shm_datapath.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "datapath/directory/process_state.h"
#include "support/cancelled.h"
#include "support/few_descriptors.h"
#include "support/temporary_folder.h"
#include "unit/datapath/shm/shm_end.h"

namespace uroce::datapath {
namespace {

using test::TemporaryFolder;

using testing::ElementsAre;
using testing::IsEmpty;

struct ShmTest : testing::Test {
  TemporaryFolder folder;
  ShmOptions small{.ring_bytes = 16384, .max_run_bytes = 4096};
};

TEST_F(ShmTest, SaysWhatItCan) {
  ShmEnd a(folder.path());
  const DatapathCapabilities& can = a.link().capabilities();
  EXPECT_STREQ(can.name, "shm");
  EXPECT_EQ(can.max_path_mtu, 4096);
  EXPECT_EQ(can.max_run_packets * 256u, can.max_run_bytes);
  EXPECT_EQ(can.peer_window_bytes, 0u);
  EXPECT_TRUE(can.trusted_memory);
}

TEST_F(ShmTest, FramesArriveInOrderAndWhole) {
  ShmEnd a(folder.path()), b(folder.path());
  const Path path = a.path_to(b.qpn());
  ASSERT_NE(path.route, 0u);
  for (std::uint32_t i = 1; i <= 3; ++i) EXPECT_TRUE(a.send(path, i, i * 1000));
  EXPECT_THAT(b.receive(), ElementsAre(1, 2, 3));
  EXPECT_THAT(b.receive(), IsEmpty());
  EXPECT_THAT(a.receive(), IsEmpty());
  EXPECT_EQ(a.link().counters().tx_packets, 3u);
  EXPECT_EQ(b.link().counters().rx_packets, 3u);
  EXPECT_EQ(a.link().counters().tx_bytes, b.link().counters().rx_bytes);
}

TEST_F(ShmTest, AQpTalksToAQpOfTheSameEngine) {
  ShmEnd a(folder.path());
  const Path path = a.path_to(a.qpn());
  EXPECT_TRUE(a.send(path, 1));
  EXPECT_THAT(a.receive(), ElementsAre(1));
}

TEST_F(ShmTest, ARunIsOneFrame) {
  ShmEnd a(folder.path()), b(folder.path());
  const Path path = a.path_to(b.qpn());
  NumberedFrame run(path, 9, 10'000);
  run.frame().packet_count = 40;
  run.frame().segment_bytes = 256;
  EXPECT_EQ(a.link().tx_burst({&run.frame(), 1}), 0u);
  RxPacket packets[4];
  ASSERT_EQ(b.link().rx_burst(packets), 1u);
  EXPECT_EQ(packets[0].packet_count, 40);
  EXPECT_TRUE(NumberedFrame::is_intact(packets[0]));
  EXPECT_EQ(packets[0].source, nullptr);
  EXPECT_EQ(b.link().counters().rx_packets, 40u);
}

TEST_F(ShmTest, AddressesArriveWhereTheyAreAskedFor) {
  ShmEnd a(folder.path()), b(folder.path());
  Path path = a.path_to(b.qpn());
  path.source.bytes[0] = 0xfe;
  path.destination.bytes[0] = 0x20;
  path.hop_limit = 9;
  NumberedFrame one(path, 1, 8), two(path, 2, 8);
  one.frame().carries_addresses = true;
  EXPECT_EQ(a.link().tx_burst({&one.frame(), 1}), 0u);
  EXPECT_EQ(a.link().tx_burst({&two.frame(), 1}), 0u);
  RxPacket packets[4];
  ASSERT_EQ(b.link().rx_burst(packets), 2u);
  ASSERT_NE(packets[0].source, nullptr);
  EXPECT_EQ(*packets[0].source, path.source);
  EXPECT_EQ(*packets[0].destination, path.destination);
  EXPECT_EQ(packets[0].hop_limit, 9);
  EXPECT_EQ(packets[1].source, nullptr);
}

TEST_F(ShmTest, AFullRingRefusesThisAndAllLaterFramesOfTheRouteAndNoOther) {
  ShmEnd a(folder.path(), small), b(folder.path(), small), c(folder.path(), small);
  const Path to_b = a.path_to(b.qpn()), to_c = a.path_to(c.qpn());
  std::uint32_t sent = 0;
  while (a.send(to_b, sent + 1, 4000)) ++sent;
  NumberedFrame large(to_b, 100, 4000), small_one(to_b, 101, 0), other(to_c, 102, 8);
  TxFrame burst[] = {large.frame(), small_one.frame(), other.frame()};
  EXPECT_EQ(a.link().tx_burst(burst), 2u);
  EXPECT_TRUE(burst[0].refused);
  EXPECT_TRUE(burst[1].refused);
  EXPECT_FALSE(burst[2].refused);
  EXPECT_EQ(a.link().counters().tx_refused, 3u);
  EXPECT_EQ(b.receive().size(), sent);
  EXPECT_THAT(c.receive(), ElementsAre(102));
  EXPECT_TRUE(a.send(to_b, sent + 1, 4000));
  EXPECT_THAT(b.receive(), ElementsAre(sent + 1));
}

TEST_F(ShmTest, LentPacketsStayUntilTheNextReceive) {
  ShmEnd a(folder.path(), small), b(folder.path(), small);
  const Path path = a.path_to(b.qpn());
  std::uint32_t sent = 0;
  while (a.send(path, sent + 1, 2000)) ++sent;
  RxPacket packets[32];
  ASSERT_EQ(b.link().rx_burst(packets), sent);
  EXPECT_FALSE(a.send(path, 99, 2000));
  for (std::uint32_t i = 0; i < sent; ++i) {
    EXPECT_TRUE(NumberedFrame::is_intact(packets[i]));
    EXPECT_EQ(NumberedFrame::number_of(packets[i]), i + 1);
  }
  EXPECT_THAT(b.receive(), IsEmpty());
  EXPECT_TRUE(a.send(path, 99, 2000));
}

TEST_F(ShmTest, ARingThatItsReaderHadNoDescriptorForIsOfferedAgain) {
  ShmEnd a(folder.path()), b(folder.path());
  Path path = a.path_to(b.qpn());
  ASSERT_TRUE(a.send(path, 1));
  EXPECT_THAT(a.receive(), IsEmpty());
  std::vector<std::uint32_t> received;
  {
    const test::FewDescriptors none(0);
    received = b.receive();
  }
  EXPECT_THAT(received, IsEmpty());
  a.link().on_turn({0});
  EXPECT_TRUE(a.link().arm_wakeup());
  EXPECT_NE(a.link().next_look(), Instant::never());  // its helper sees to that
  a.link().disarm_wakeup();
  for (std::int64_t us = 0; us < 100'000; us += 10) a.link().on_turn({us * 1'000});
  EXPECT_THAT(b.receive(), ElementsAre(1));
  EXPECT_THAT(b.receive(), IsEmpty());  // the other offers are of the same ring
  EXPECT_EQ(b.link().counters().rx_not_roce, 0u);
  ASSERT_TRUE(a.send(path, 2));
  EXPECT_THAT(b.receive(), ElementsAre(2));
}

// The shard's lock would stay taken (man 7 pthreads).
TEST_F(ShmTest, WhatIsDoneAboutASlowPeerIsNoCancellationPoint) {
  ShmEnd a(folder.path()), b(folder.path());
  ASSERT_TRUE(a.send(a.path_to(b.qpn()), 1));
  const auto offer_again = [&a] {
    for (std::int64_t us = 0; us < 100'000; us += 10) a.link().on_turn({us * 1'000});
  };
  EXPECT_TRUE(test::is_no_cancellation_point(offer_again));
  const auto look = [] { EXPECT_TRUE(read_process_state(static_cast<std::uint32_t>(::getpid()))); };
  EXPECT_TRUE(test::is_no_cancellation_point(look));
}

// Or its peers would wait for it for ever, whatever their time-outs are.
TEST_F(ShmTest, WhoNeverTakesARingIsStalledForAWhileOnly) {
  ShmEnd a(folder.path()), b(folder.path());
  Path path = a.path_to(b.qpn());
  ASSERT_TRUE(a.send(path, 1));
  a.link().on_turn({5'000'000'000});
  EXPECT_TRUE(a.link().peer_stalled(path));
  std::int64_t ms = 5'000;
  for (; ms < 6'000; ++ms) a.link().on_turn({ms * 1'000'000});
  EXPECT_TRUE(a.link().peer_stalled(path));
  for (; ms < 8'000; ++ms) a.link().on_turn({ms * 1'000'000});
  EXPECT_FALSE(a.link().peer_stalled(path));
}

TEST_F(ShmTest, AnOfferThatFoundTheQueueFullIsMadeAgain) {
  ShmEnd hub(folder.path(), small);
  std::vector<std::unique_ptr<ShmEnd>> peers;
  std::vector<Path> paths;
  for (int i = 0; i < 20; ++i) {
    peers.push_back(std::make_unique<ShmEnd>(folder.path(), small));
    paths.push_back(peers.back()->path_to(hub.qpn()));
  }
  for (std::uint32_t i = 0; i < 20; ++i) ASSERT_TRUE(peers[i]->send(paths[i], i));
  std::vector<std::uint32_t> got;
  EXPECT_THAT(peers.back()->receive(), IsEmpty());
  for (std::int64_t us = 0; us < 10'000 && got.size() < 20; us += 10) {
    for (const auto& peer : peers) {
      peer->link().on_turn({us * 1'000});
      if (us != 0 || peer != peers.back()) continue;
      EXPECT_TRUE(peer->link().arm_wakeup());
      EXPECT_NE(peer->link().next_look(), Instant::never());
      peer->link().disarm_wakeup();
    }
    for (const std::uint32_t number : hub.receive()) got.push_back(number);
  }
  EXPECT_THAT(got, testing::SizeIs(20));
}

void drop_capabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const std::array<__user_cap_data_struct, 2> none{};
  ASSERT_EQ(syscall(SYS_capset, &header, none.data()), 0);
}

// So many descriptors in a socket that an ordinary user may send no more.
void fill_with_descriptors(int socket) {
  constexpr int kCount = 200;
  rlimit few{.rlim_cur = kCount / 2, .rlim_max = kCount / 2};
  setrlimit(RLIMIT_NOFILE, &few);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kCount)> control{};
  char byte = 0;
  iovec piece{.iov_base = &byte, .iov_len = 1};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int) * kCount);
  const std::vector<int> descriptors(kCount, socket);
  std::memcpy(CMSG_DATA(part), descriptors.data(), sizeof(int) * kCount);
  ASSERT_EQ(sendmsg(socket, &message, 0), 1);
  ASSERT_EQ(sendmsg(socket, &message, 0), -1);
  ASSERT_EQ(errno, ETOOMANYREFS);
}

TEST_F(ShmTest, WhereTheUserMaySendNoDescriptorTheOfferIsMadeLater) {
  const pid_t child = fork();
  if (child == 0) {
    ShmEnd a(folder.path(), small), b(folder.path(), small);
    std::array<int, 2> pair{};
    drop_capabilities();
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
    fill_with_descriptors(pair[0]);
    const Path path = a.path_to(b.qpn());
    EXPECT_NE(path.route, 0u);
    EXPECT_TRUE(a.send(path, 1));
    EXPECT_THAT(b.receive(), IsEmpty());
    for (const int end : pair) close(end);  // and with them what they carry
    for (std::int64_t ms = 0; ms < 10; ++ms) a.link().on_turn({ms * 1'000'000});
    EXPECT_THAT(b.receive(), ElementsAre(1));
    _exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(ShmTest, AGroupReachesAlsoWhomNoDescriptorWasLeftFor) {
  ShmEnd a(folder.path()), b(folder.path());
  Path group;
  group.destination.bytes[0] = 0xff;
  {
    const test::FewDescriptors none(0);
    EXPECT_EQ(a.link().open_path(group, kMulticastQpn), 0);
  }
  a.link().on_turn(Instant{} + milliseconds(1));
  EXPECT_TRUE(a.send(group, 1));
  EXPECT_THAT(b.receive(), ElementsAre(1));
  EXPECT_THAT(a.receive(), ElementsAre(1));
}

TEST_F(ShmTest, SixteenPeersAllGetTheirShare) {
  ShmEnd hub(folder.path(), small);
  std::vector<std::unique_ptr<ShmEnd>> peers;
  std::vector<Path> paths;
  for (int i = 0; i < 20; ++i) {
    peers.push_back(std::make_unique<ShmEnd>(folder.path(), small));
    paths.push_back(peers.back()->path_to(hub.qpn()));
    (void)hub.receive();  // takes the offers: a socket's queue is short
  }
  for (std::uint32_t i = 0; i < 20; ++i) {
    for (std::uint32_t k = 0; k < 40; ++k) ASSERT_TRUE(peers[i]->send(paths[i], i * 100 + k));
  }
  std::vector<std::uint32_t> next(20, 0);
  std::vector<std::uint32_t> early(20, 0);
  RxPacket packets[32];
  for (std::size_t total = 0; total < 800;) {
    const std::size_t count = hub.link().rx_burst(packets);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t number = NumberedFrame::number_of(packets[i]);
      EXPECT_EQ(number % 100, next[number / 100]++);
      if (total + i < 640) ++early[number / 100];
    }
    total += count;
  }
  EXPECT_THAT(early, testing::Each(testing::Ge(32u)));
}

TEST_F(ShmTest, APathToNobodyIsUnreachable) {
  ShmEnd a(folder.path());
  Path path;
  EXPECT_EQ(a.link().open_path(path, Qpn{0xffff00 - 1}), EHOSTUNREACH);
  EXPECT_EQ(a.link().open_path(path, Qpn{1}), EHOSTUNREACH);
  EXPECT_EQ(path.route, 0u);
}

TEST_F(ShmTest, APathToAnEngineWithoutThisDatapathIsUnreachable) {
  ShmEnd a(folder.path());
  auto other = Directory::join({.folder = folder.path(), .device = "uroce1"});
  ASSERT_TRUE(other);
  const auto block = (*other)->claim_block();
  Path path;
  EXPECT_EQ(a.link().open_path(path, Qpn{*block * kQpnsPerBlock}), EHOSTUNREACH);
}

TEST_F(ShmTest, APeerThatLeftSwallowsFramesAndItsSuccessorGetsNone) {
  ShmEnd a(folder.path());
  auto b = std::make_unique<ShmEnd>(folder.path());
  Path path = a.path_to(b->qpn());
  const SlotHandle old = b->directory().own_slot();
  b = nullptr;
  b = std::make_unique<ShmEnd>(folder.path());
  EXPECT_EQ(b->directory().own_slot().index, old.index);
  EXPECT_TRUE(a.send(path, 1));
  EXPECT_EQ(a.link().counters().tx_errors, 1u);
  EXPECT_THAT(b->receive(), IsEmpty());
  a.link().on_turn({1});
  EXPECT_TRUE(a.send(path, 2));
  a.link().close_path(path);
  path = a.path_to(b->qpn());
  EXPECT_TRUE(a.send(path, 3));
  EXPECT_THAT(b->receive(), ElementsAre(3));
}

TEST_F(ShmTest, WhatWasSentBeforeLeavingIsDelivered) {
  auto a = std::make_unique<ShmEnd>(folder.path());
  ShmEnd b(folder.path());
  const Path path = a->path_to(b.qpn());
  for (std::uint32_t i = 1; i <= 50; ++i) ASSERT_TRUE(a->send(path, i));
  a = nullptr;
  EXPECT_EQ(b.receive(20).size(), 20u);
  b.link().on_turn({1});
  EXPECT_EQ(b.receive().size(), 30u);
  b.link().on_turn({2});
  EXPECT_THAT(b.receive(), IsEmpty());
}

TEST_F(ShmTest, EnginesComeAndGoWithoutEnd) {
  ShmEnd hub(folder.path(), small);
  for (std::uint32_t i = 0; i < 300; ++i) {
    ShmEnd guest(folder.path(), small);
    Path out = guest.path_to(hub.qpn()), back = hub.path_to(guest.qpn());
    ASSERT_TRUE(guest.send(out, i));
    ASSERT_TRUE(hub.send(back, i));
    ASSERT_THAT(hub.receive(), ElementsAre(i));
    ASSERT_THAT(guest.receive(), ElementsAre(i));
    hub.link().on_turn({i + 1});
    hub.link().close_path(back);
  }
}

TEST_F(ShmTest, StrangeDatagramsAreSwallowed) {
  ShmEnd a(folder.path()), b(folder.path());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = a.directory().socket_path(b.directory().own_slot(), "shm");
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  for (std::size_t bytes : {1u, 8u, 56u, 200u}) {
    const std::vector<char> junk(bytes, 'x');
    void* to = &address;
    EXPECT_EQ(::sendto(fd, junk.data(), bytes, 0, static_cast<sockaddr*>(to), sizeof address),
              static_cast<ssize_t>(bytes));
  }
  ::close(fd);
  EXPECT_THAT(b.receive(), IsEmpty());
  const Path good = a.path_to(b.qpn());
  EXPECT_TRUE(a.send(good, 1));
  EXPECT_THAT(b.receive(), ElementsAre(1));
}

TEST_F(ShmTest, ManyOffersAtOnceAllArriveInTheEnd) {
  ShmEnd hub(folder.path(), small);
  std::vector<std::unique_ptr<ShmEnd>> peers;
  std::vector<Path> paths;
  for (std::uint32_t i = 0; i < 40; ++i) {  // more than a socket's queue holds
    peers.push_back(std::make_unique<ShmEnd>(folder.path(), small));
    paths.push_back(peers.back()->path_to(hub.qpn()));
    ASSERT_NE(paths.back().route, 0u);
    ASSERT_TRUE(peers[i]->send(paths[i], i));
  }
  std::vector<std::uint32_t> all;
  for (std::int64_t turn = 1; turn < 1000 && all.size() < 40; ++turn) {
    for (const auto& peer : peers) peer->link().on_turn({turn * 100'000});
    for (std::uint32_t number : hub.receive()) all.push_back(number);
  }
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), 40u);
  EXPECT_EQ(all.back(), 39u);
}

TEST_F(ShmTest, OptionsThatCannotWorkAreAnError) {
  auto directory = Directory::join({.folder = folder.path(), .device = "uroce0"});
  EXPECT_FALSE(ShmDatapath::create(**directory, {.ring_bytes = 100'000}));
  EXPECT_FALSE(ShmDatapath::create(**directory, {.ring_bytes = 65536, .max_run_bytes = 65536}));
}

}  // namespace
}  // namespace uroce::datapath
