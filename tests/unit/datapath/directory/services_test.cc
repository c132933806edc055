// SPDX-License-Identifier: BSD-2-Clause
// Services of the communication manager in the directory: who may have one, who is found.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "datapath/directory/directory.h"
#include "support/child.h"
#include "support/temporary_folder.h"
#include "wire/network.h"

namespace uroce::datapath {
namespace {

using test::Child;
using test::TemporaryFolder;

constexpr std::uint64_t kId = 0x0106'1234;

ServiceAddress any(Family family = Family::kBoth) { return {.gid = {}, .family = family}; }
Gid ipv4(unsigned last) { return wire::gid_of_ipv4(0x0a00'0000 + last); }
Gid ipv6(std::uint8_t last) {
  Gid gid;
  gid.bytes[0] = 0xfd;
  gid.bytes[15] = last;
  return gid;
}

// What another process does with services, by words: claim, listen, leave. It answers each with a
// number.
class Other {
 public:
  enum Word : std::uint64_t { kClaim, kListen, kRelease, kFind };

  explicit Other(const std::string& folder)
      : child_([folder](Child& self) { obey(self, folder); }) {
    block_ = static_cast<std::uint32_t>(child_.hear());
  }
  int claim(const ServiceAddress& address, bool shares = false) {
    child_.tell(kClaim);
    tell(address.gid);
    child_.tell(static_cast<std::uint64_t>(address.family));
    child_.tell(shares ? 1 : 0);
    return static_cast<int>(child_.hear());
  }
  int listen() {
    child_.tell(kListen);
    return static_cast<int>(child_.hear());
  }
  void release() {
    child_.tell(kRelease);
    (void)child_.hear();
  }
  std::uint32_t find(const Gid& address) {
    child_.tell(kFind);
    tell(address);
    return static_cast<std::uint32_t>(child_.hear());
  }
  [[nodiscard]] std::uint32_t block() const { return block_; }
  void die() { child_.kill_and_reap(); }

 private:
  void tell(const Gid& gid) {
    std::uint64_t words[2];
    std::memcpy(words, gid.bytes.data(), sizeof words);
    for (const std::uint64_t word : words) child_.tell(word);
  }
  static Gid hear_gid(Child& self) {
    const std::uint64_t words[2] = {self.hear(), self.hear()};
    Gid gid;
    std::memcpy(gid.bytes.data(), words, sizeof words);
    return gid;
  }
  static void obey(Child& self, const std::string& folder) {
    auto joined = Directory::join({.folder = folder, .device = "uroce0"});
    if (!joined) return;
    Directory& directory = **joined;
    const std::uint32_t block = directory.claim_block().value_or(0);
    self.tell(block);
    std::uint32_t index = 0;
    for (std::uint64_t word = self.hear(); word != Child::kGone; word = self.hear()) {
      if (word == kClaim) {
        Directory::ServiceClaim claim{.id = kId, .address = {}, .block = block};
        claim.address.gid = hear_gid(self);
        claim.address.family = static_cast<Family>(self.hear());
        claim.shares = self.hear() != 0;
        self.tell(static_cast<std::uint64_t>(directory.claim_service(claim, index)));
      } else if (word == kListen) {
        self.tell(static_cast<std::uint64_t>(directory.listen_to_service(index)));
      } else if (word == kRelease) {
        directory.release_service(index);
        self.tell(0);
      } else {
        self.tell(directory.service_block(kId, hear_gid(self)).value_or(0));
      }
    }
  }

  Child child_;
  std::uint32_t block_ = 0;
};

struct ServicesTest : testing::Test {
  void SetUp() override {
    auto joined = Directory::join({.folder = folder.path(), .device = "uroce0"});
    ASSERT_TRUE(joined) << joined.error().message;
    own = std::move(*joined);
    block = own->claim_block().value_or(0);
  }
  int claim(const ServiceAddress& address, bool shares = false, std::uint64_t id = kId) {
    return own->claim_service({.id = id, .address = address, .shares = shares, .block = block},
                              index);
  }
  TemporaryFolder folder;
  std::unique_ptr<Directory> own;
  std::uint32_t block = 0;
  std::uint32_t index = 0;
};

TEST_F(ServicesTest, AClaimIsFoundOnceItListens) {
  ASSERT_EQ(claim(any()), 0);
  EXPECT_FALSE(own->service_block(kId, ipv4(1)));
  ASSERT_EQ(own->listen_to_service(index), 0);
  EXPECT_EQ(own->service_block(kId, ipv4(1)), block);
  EXPECT_EQ(own->service_block(kId, ipv6(1)), block);
  EXPECT_FALSE(own->service_block(kId + 1, ipv4(1)));
  own->release_service(index);
  EXPECT_FALSE(own->service_block(kId, ipv4(1)));
}

TEST_F(ServicesTest, IsFoundByAddressAndFamily) {
  ASSERT_EQ(claim(ServiceAddress::at(ipv4(1))), 0);
  ASSERT_EQ(own->listen_to_service(index), 0);
  EXPECT_TRUE(own->service_block(kId, ipv4(1)));
  EXPECT_FALSE(own->service_block(kId, ipv4(2)));
  EXPECT_FALSE(own->service_block(kId, ipv6(1)));
  ASSERT_EQ(claim(any(Family::kIpv6)), 0);
  ASSERT_EQ(own->listen_to_service(index), 0);
  EXPECT_TRUE(own->service_block(kId, ipv6(1)));
  EXPECT_FALSE(own->service_block(kId, ipv4(2)));
}

TEST_F(ServicesTest, OneAtTheAddressComesBeforeOneAtAny) {
  const std::uint32_t second = own->claim_block().value_or(0);
  for (const bool any_is_first : {true, false}) {
    for (const bool is_any : {any_is_first, !any_is_first}) {
      ASSERT_EQ(own->claim_service({.id = kId,
                                    .address = is_any ? any() : ServiceAddress::at(ipv4(1)),
                                    .block = is_any ? second : block},
                                   index),
                0);
      ASSERT_EQ(own->listen_to_service(index), 0);
    }
    EXPECT_EQ(own->service_block(kId, ipv4(1)), block);
    EXPECT_EQ(own->service_block(kId, ipv4(2)), second);
    own->release_service(0);
    own->release_service(1);
  }
}

TEST_F(ServicesTest, AnotherProcessFindsIt) {
  Other other(folder.path());
  ASSERT_EQ(claim(any()), 0);
  ASSERT_EQ(own->listen_to_service(index), 0);
  EXPECT_EQ(other.find(ipv4(1)), block);
  ASSERT_NE(other.block(), block);
}

TEST_F(ServicesTest, TwoProcessesConflictWhereOneAddressCouldMeanBoth) {
  Other other(folder.path());
  const struct {
    ServiceAddress theirs, ours;
    int result;
  } rows[] = {
      {any(), any(), EADDRNOTAVAIL},
      {any(Family::kIpv4), any(Family::kIpv6), 0},
      {any(Family::kIpv4), any(), EADDRNOTAVAIL},
      {any(Family::kIpv4), ServiceAddress::at(ipv6(1)), 0},
      {any(Family::kIpv4), ServiceAddress::at(ipv4(1)), EADDRNOTAVAIL},
      {ServiceAddress::at(ipv4(1)), ServiceAddress::at(ipv4(2)), 0},
      {ServiceAddress::at(ipv4(1)), ServiceAddress::at(ipv4(1)), EADDRINUSE},
      {ServiceAddress::at(ipv6(1)), any(), EADDRNOTAVAIL},
      {ServiceAddress::at(ipv6(1)), any(Family::kIpv4), 0},
  };
  for (const auto& row : rows) {
    ASSERT_EQ(other.claim(row.theirs), 0);
    EXPECT_EQ(claim(row.ours), row.result) << &row - rows;
    EXPECT_EQ(claim(row.ours, true), row.result) << "sharing takes two: " << &row - rows;
    EXPECT_EQ(claim(row.ours, false, kId + 1), 0);
    other.release();
    TearDown();
    own.reset();
    SetUp();
  }
}

TEST_F(ServicesTest, WhoBothShareHaveItUntilOneListens) {
  Other other(folder.path());
  ASSERT_EQ(other.claim(any(), true), 0);
  ASSERT_EQ(claim(any(), true), 0);
  ASSERT_EQ(other.listen(), EADDRNOTAVAIL);
  own->release_service(index);
  ASSERT_EQ(other.listen(), 0);
  EXPECT_EQ(claim(any(), true), EADDRNOTAVAIL);
}

TEST_F(ServicesTest, AnotherProcessSeesWhatWasSetLater) {
  Other other(folder.path());
  ASSERT_EQ(claim(any()), 0);
  ASSERT_EQ(other.claim(any(), true), EADDRNOTAVAIL);
  ASSERT_EQ(own->change_service(index, {.id = kId, .address = any(), .shares = true}), 0);
  ASSERT_EQ(other.claim(any(), true), 0);
  other.release();
  ASSERT_EQ(own->change_service(index, {.id = kId, .address = any(Family::kIpv6)}), 0);
  ASSERT_EQ(other.claim(any(Family::kIpv4)), 0);
  // Whoever listens goes on doing so.
  ASSERT_EQ(own->listen_to_service(index), 0);
  ASSERT_EQ(own->change_service(index, {.id = kId, .address = any(Family::kIpv6)}), 0);
  EXPECT_EQ(own->service_block(kId, ipv6(1)), block);
  EXPECT_FALSE(own->service_block(kId, ipv4(1)));
}

// What a process has already is its own affair.
TEST_F(ServicesTest, OneProcessMayHaveItTwice) {
  ASSERT_EQ(claim(any()), 0);
  const std::uint32_t first = index;
  ASSERT_EQ(claim(any()), 0);
  EXPECT_NE(index, first);
}

TEST_F(ServicesTest, TheDeadHaveNothing) {
  Other other(folder.path());
  ASSERT_EQ(other.claim(any()), 0);
  ASSERT_EQ(other.listen(), 0);
  EXPECT_EQ(claim(any()), EADDRNOTAVAIL);
  other.die();
  EXPECT_EQ(claim(any()), 0);
  ASSERT_EQ(own->listen_to_service(index), 0);
  own->sweep();
  EXPECT_EQ(own->service_block(kId, ipv4(1)), block);
}

TEST_F(ServicesTest, WhoLeavesGivesAllBack) {
  auto joined = Directory::join({.folder = folder.path(), .device = "uroce0"});
  ASSERT_TRUE(joined);
  std::uint32_t theirs = 0;
  ASSERT_EQ((*joined)->claim_service({.id = kId, .address = any(), .block = 5}, theirs), 0);
  ASSERT_EQ((*joined)->listen_to_service(theirs), 0);
  EXPECT_EQ(own->service_block(kId, ipv4(1)), 5U);
  joined->reset();
  EXPECT_FALSE(own->service_block(kId, ipv4(1)));
}

TEST_F(ServicesTest, AreBounded) {
  for (std::uint32_t i = 0; i < kServiceCount; ++i) {
    ASSERT_EQ(claim(any(), false, kId + i), 0);
  }
  EXPECT_EQ(claim(any(), false, kId + kServiceCount), ENOSPC);
  own->release_service(17);
  EXPECT_EQ(claim(any(), false, kId + kServiceCount), 0);
  EXPECT_EQ(index, 17U);
}

// --- Whose a packet is
// ----------------------------------------------------------------------------

std::vector<std::byte> request_to(const Gid& address) {
  std::vector<std::byte> packet(20 + 256);
  packet[0] = std::byte{0x64};
  packet[7] = std::byte{1};  // QP1
  packet[21] = std::byte{7};
  packet[20 + 17] = std::byte{0x10};
  for (std::size_t i = 0; i < 8; ++i) {
    packet[20 + 24 + 15 - i] = static_cast<std::byte>(kId >> 8 * i);
  }
  packet[20 + 24 + 141] = std::byte{0x40};
  std::memcpy(&packet[20 + 24 + 140 + 20], address.bytes.data(), 16);
  return packet;
}

TEST_F(ServicesTest, APacketToQp1IsWhoseItIsAbout) {
  EXPECT_FALSE(own->owner(ConstBytes(request_to(ipv4(1)))));
  ASSERT_EQ(claim(any()), 0);
  ASSERT_EQ(own->listen_to_service(index), 0);
  std::vector<std::byte> packet = request_to(ipv4(1));
  EXPECT_EQ(own->owner(ConstBytes(packet)), own->own_slot());
  packet[20 + 17] = std::byte{0x13};  // a reply, to an identifier
  EXPECT_FALSE(own->owner(ConstBytes(packet)));
  packet[20 + 28] = static_cast<std::byte>(block >> 8);
  packet[20 + 29] = static_cast<std::byte>(block);
  EXPECT_EQ(own->owner(ConstBytes(packet)), own->own_slot());
  EXPECT_FALSE(own->owner(ConstBytes(packet).first(100)));
}

TEST_F(ServicesTest, APacketToAQueuePairIsItsOwners) {
  std::vector<std::byte> packet(12);
  packet[5] = static_cast<std::byte>(block >> 8);
  packet[6] = static_cast<std::byte>(block);
  packet[7] = std::byte{9};
  EXPECT_EQ(own->owner(ConstBytes(packet)), own->own_slot());
}

}  // namespace
}  // namespace uroce::datapath
