// SPDX-License-Identifier: BSD-2-Clause
// ibv_close_device with everything that was made still there, while another context of the device
// goes on. What was left is the process's until it ends, as with other providers.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "node.h"
#include "process.h"

namespace uroce::tests {
namespace {

// Nobody may destroy these any more; kept so that they are no leak of ours.
std::vector<const void*>& left_behind() {
  static auto* const all = new std::vector<const void*>;  // looked for after the last destructor
  return *all;
}

// Its objects stay when its context is closed.
Node& leave_behind(ibv_context* context) {
  auto* const node = new Node(4096, context);
  left_behind().push_back(node);
  return *node;
}

// More than one can have at once.
ibv_alloc_dm_attr all_device_memory() {
  return {.length = std::size_t{16} << 20, .log_align_req = 0, .comp_mask = 0};
}

class Closing : public testing::Test {
 protected:
  // After a test has forked: a child of a process with threads may start none under
  // ThreadSanitizer.
  void open() {
    closed_ = open_first_device();
    other_ = open_first_device();
  }
  void TearDown() override { EXPECT_EQ(ibv_close_device(other_), 0); }

  ibv_context* closed_ = nullptr;
  ibv_context* other_ = nullptr;
};

// The peer: writes to each of two addresses when it is told to, and says how that ended.
int write_to_both(const Line& line) {
  Node one, two;
  line.say(one.address());
  line.say(two.address());
  const auto first = line.hear<Address>();
  const auto second = line.hear<Address>();
  if (one.connect(first) != 0 || two.connect(second) != 0) return 1;
  line.say('c');
  while (line.hear<char>() == 'w') {
    if (one.write(first, 64, true) != 0 || two.write(second, 64) != 0) return 2;
    line.say(one.wait().status);
    line.say(two.wait().status);
  }
  return 0;
}

TEST_F(Closing, PeersFindNobodyAndOthersGoOn) {
  Process peer(write_to_both);
  open();
  const auto its_first = peer.line.hear<Address>();
  const auto its_second = peer.line.hear<Address>();
  Node& left = leave_behind(closed_);
  Node stays(4096, other_);
  peer.line.say(left.address());
  peer.line.say(stays.address());
  ASSERT_EQ(left.connect(its_first) | stays.connect(its_second), 0);
  ASSERT_EQ(left.receive() | left.receive(), 0);
  ASSERT_EQ(peer.line.hear<char>(), 'c');
  peer.line.say('w');
  EXPECT_EQ(peer.line.hear<ibv_wc_status>(), IBV_WC_SUCCESS);
  EXPECT_EQ(peer.line.hear<ibv_wc_status>(), IBV_WC_SUCCESS);
  ASSERT_EQ(ibv_close_device(closed_), 0);
  peer.line.say('w');
  EXPECT_EQ(peer.line.hear<ibv_wc_status>(), IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(peer.line.hear<ibv_wc_status>(), IBV_WC_SUCCESS);
  peer.line.say('e');
  EXPECT_EQ(peer.wait(), 0);
}

// What it fails of would be an event, and a completion that somebody waits for.
TEST_F(Closing, NobodyIsTold) {
  Process peer([](const Line& line) {
    Node node;
    line.say(node.address());
    auto to = line.hear<Address>();
    to.rkey ^= 0x5a5a5a00;
    if (node.connect(to) != 0) return 1;
    line.say('c');
    if (line.hear<char>() != 'w') return 2;
    if (node.write(to, 64) != 0) return 3;
    line.say(node.wait().status);
    return 0;
  });
  open();
  const auto its = peer.line.hear<Address>();
  Node& left = leave_behind(closed_);
  peer.line.say(left.address());
  ASSERT_EQ(left.connect(its), 0);
  ASSERT_EQ(left.receive(), 0);
  ASSERT_EQ(ibv_req_notify_cq(left.cq, 0), 0);
  ASSERT_EQ(peer.line.hear<char>(), 'c');
  ASSERT_EQ(ibv_close_device(closed_), 0);
  peer.line.say('w');
  EXPECT_EQ(peer.line.hear<ibv_wc_status>(), IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(peer.wait(), 0);
}

TEST_F(Closing, WhatItHadOfTheDeviceIsOthersToHave) {
  open();
  const int file = memfd_create("domain", MFD_CLOEXEC);
  ibv_xrcd_init_attr domain{.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                            .fd = file,
                            .oflags = O_CREAT | O_EXCL};
  ibv_alloc_dm_attr all = all_device_memory();
  left_behind().push_back(ibv_open_xrcd(closed_, &domain));
  left_behind().push_back(ibv_alloc_dm(closed_, &all));
  errno = 0;
  EXPECT_EQ(ibv_open_xrcd(other_, &domain), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_alloc_dm(other_, &all), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  ASSERT_EQ(ibv_close_device(closed_), 0);
  ibv_xrcd* const xrcd = ibv_open_xrcd(other_, &domain);
  ASSERT_NE(xrcd, nullptr);
  EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
  ibv_dm* const dm = ibv_alloc_dm(other_, &all);
  ASSERT_NE(dm, nullptr);
  EXPECT_EQ(ibv_free_dm(dm), 0);
  close(file);
}

// What was made through a descriptor goes on until the last context over it is closed.
TEST_F(Closing, WhatAnotherHasImportedGoesOn) {
  open();
  Node& left = leave_behind(closed_);
  Node peer(4096, other_);
  ibv_alloc_dm_attr all = all_device_memory();
  left_behind().push_back(ibv_alloc_dm(closed_, &all));
  ibv_context* const imported = ibv_import_device(dup(closed_->cmd_fd));
  ASSERT_NE(imported, nullptr);
  ibv_pd* const pd = ibv_import_pd(imported, left.pd->handle);
  ASSERT_NE(pd, nullptr);
  ibv_mr* const mr = ibv_import_mr(pd, left.mr->handle);
  ASSERT_NE(mr, nullptr);
  Address to = left.address();
  ASSERT_EQ(left.connect(peer.address()) | peer.connect(to), 0);
  ibv_unimport_mr(left.mr);
  ASSERT_EQ(ibv_close_device(closed_), 0);
  EXPECT_EQ(peer.write(to, 64), 0);
  EXPECT_EQ(peer.wait().status, IBV_WC_SUCCESS);
  // An event, which nobody hears.
  to.rkey ^= 0x5a5a5a00;
  EXPECT_EQ(peer.write(to, 64), 0);
  EXPECT_EQ(peer.wait().status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_alloc_dm(other_, &all), nullptr);
  ibv_unimport_mr(mr);
  ibv_unimport_pd(pd);
  ASSERT_EQ(ibv_close_device(imported), 0);
  ibv_dm* const dm = ibv_alloc_dm(other_, &all);
  ASSERT_NE(dm, nullptr);
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

}  // namespace
}  // namespace uroce::tests
