// SPDX-License-Identifier: BSD-2-Clause
// Messages that no sound peer sends: nothing comes of them but a refusal.
#include "unit/cm/network.h"

namespace uroce::cm::test {
namespace {

constexpr std::uint16_t kFirst = 0x10, kLast = 0x1a;

class CmHostile : public ::testing::Test {
 protected:
  Mad filled(std::uint16_t attribute) {
    Mad mad;
    for (std::byte& byte : mad.message) byte = static_cast<std::byte>(prng.below(256));
    mad.header.attribute = Be16(attribute);
    mad.header.transaction = Be64(prng.next());
    return mad;
  }
  // Both identifiers as the established connection of the right side has them.
  Mad named(std::uint16_t attribute) {
    Mad mad = filled(attribute);
    const Be32 ids[] = {Be32(world.right.newest().remote_id), Be32(world.right.newest().local_id)};
    std::memcpy(mad.message.data(), ids, sizeof ids);
    return mad;
  }
  World world;
  Prng prng{7};
};

TEST_F(CmHostile, OtherClassesVersionsAndMethodsAreNotHeard) {
  std::uint8_t MadHeader::*const fields[] = {&MadHeader::base_version, &MadHeader::management_class,
                                             &MadHeader::class_version, &MadHeader::method};
  for (const auto field : fields) {
    for (unsigned value = 0; value < 256; ++value) {
      Mad mad = filled(kFirst);
      if (mad.header.*field == value) continue;
      mad.header.*field = static_cast<std::uint8_t>(value);
      world.inject(mad);
    }
  }
  EXPECT_TRUE(world.sent.empty());
  EXPECT_TRUE(world.right.seen.empty());
}

TEST_F(CmHostile, UnknownAttributesAreNotHeard) {
  for (unsigned attribute = 0; attribute < 0x1'0000; ++attribute) {
    if (attribute >= kFirst && attribute <= kLast) continue;
    world.inject(filled(static_cast<std::uint16_t>(attribute)));
  }
  EXPECT_TRUE(world.sent.empty());
  EXPECT_TRUE(world.right.seen.empty());
}

TEST_F(CmHostile, GarbageTellsNobodyAnythingAndIsAnsweredOnceAtMost) {
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t before = world.sent.size();
    world.inject(filled(static_cast<std::uint16_t>(prng.between(kFirst, kLast))));
    EXPECT_LE(world.sent.size(), before + 1);
  }
  EXPECT_TRUE(world.right.seen.empty());
  EXPECT_TRUE(world.right.connections.empty());
  EXPECT_EQ(world.right.manager.next_deadline(), Instant::never());
}

// A guess at an identifier is not enough.
TEST_F(CmHostile, OneIdentifierEndsNothing) {
  const Connection& active = world.left.connect();
  world.run_for(seconds(1));
  for (std::uint16_t attribute = kFirst; attribute <= kLast; ++attribute) {
    Mad mad = named(attribute);
    mad.message[0] ^= std::byte{1};
    world.inject(mad);
    mad = named(attribute);
    std::memset(mad.message.data(), 0, 4);
    world.inject(mad);
    mad = named(attribute);
    std::memset(mad.message.data() + 4, 0, 4);
    world.inject(mad);
  }
  EXPECT_EQ(world.right.of(world.right.newest()), "request, established");
  EXPECT_EQ(world.left.of(active), "reply");
}

TEST_F(CmHostile, PatienceHasABound) {
  world.network.loses = [](std::size_t, const Mad&) { return true; };
  const Connection& active = world.left.connect();
  MessageReceiptWire wire;
  wire.remote_id = Be32(active.local_id);
  wire.service_timeout = 31 << 3;
  Mad mad;
  mad.set(Attribute::kMessageReceipt, 1, wire);
  world.left.manager.on_mad(world.now, {}, mad);
  EXPECT_LT((active.deadline - world.now).ns, seconds(300).ns);
  EXPECT_GT((active.deadline - world.now).ns, seconds(200).ns);
}

TEST_F(CmHostile, PatienceIsAsLongAsAskedFor) {
  world.network.loses = [](std::size_t, const Mad&) { return true; };
  const Connection& active = world.left.connect();
  for (unsigned code = 0; code <= 26; ++code) {
    MessageReceiptWire wire;
    wire.remote_id = Be32(active.local_id);
    wire.service_timeout = static_cast<std::uint8_t>(code << 3 | 7);
    Mad mad;
    mad.set(Attribute::kMessageReceipt, 1, wire);
    world.left.manager.on_mad(world.now, {}, mad);
    EXPECT_EQ(active.deadline - world.now, nanoseconds(std::int64_t{4'096} << code));
  }
}

// Two ends that would answer each other's reply for ever.
TEST_F(CmHostile, APassiveSideDoesNotAnswerAReply) {
  world.left.connect();
  world.run_for(seconds(1));
  const std::size_t before = world.sent.size();
  world.inject(named(static_cast<std::uint16_t>(Attribute::kReply)));
  EXPECT_EQ(world.sent.size(), before);
}

}  // namespace
}  // namespace uroce::cm::test
