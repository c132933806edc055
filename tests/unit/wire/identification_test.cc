// SPDX-License-Identifier: BSD-2-Clause
#include "wire/identification.h"

#include <gtest/gtest.h>

#include "unit/wire/packets.h"
#include "wire/icrc.h"
#include "wire/network.h"

namespace uroce::wire {
namespace {

class Identification : public testing::Test {
 protected:
  std::uint32_t icrc_with(const ByteVector& packet, std::uint16_t identification,
                          bool dont_fragment = true) const {
    const IcrcFlow flow(gid_of_ipv4(0x0a00'0001), gid_of_ipv4(0x0a00'0002), 0xc000, dont_fragment);
    return icrc_of(crc32, flow.start(packet.size() + kIcrcBytes, identification), packet);
  }
};

TEST_F(Identification, IsFoundWhateverItIs) {
  const ByteVector packet = counting_bytes(1036);
  const std::uint32_t computed = icrc_with(packet, 0);
  for (std::uint32_t id = 0; id < 65'536; ++id) {
    const auto sent = static_cast<std::uint16_t>(id);
    const std::uint32_t received = icrc_with(packet, sent);
    const IdentificationFit fit = icrc_fit_identification(received, computed, packet.size());
    ASSERT_TRUE(fit.fits && fit.dont_fragment);
    ASSERT_EQ(fit.identification, sent);
  }
}

TEST_F(Identification, IsFoundAtEveryLength) {
  for (std::size_t bytes = kBthBytes; bytes <= kMaxHeaderBytes + 4096; bytes += 4) {
    const ByteVector packet = counting_bytes(bytes);
    const IdentificationFit fit =
        icrc_fit_identification(icrc_with(packet, 0xbeef), icrc_with(packet, 0), packet.size());
    ASSERT_TRUE(fit.fits) << bytes;
    ASSERT_EQ(fit.identification, 0xbeef);
  }
}

TEST_F(Identification, ClearedFragmentFlagFitsToo) {
  const ByteVector packet = counting_bytes(100);
  const IdentificationFit fit = icrc_fit_identification(icrc_with(packet, 0x1234, false),
                                                        icrc_with(packet, 0), packet.size());
  EXPECT_TRUE(fit.fits);
  EXPECT_FALSE(fit.dont_fragment);
  EXPECT_EQ(fit.identification, 0x1234);
}

// A bit of damage looks like an identification about once in 2^15 places; here it does once.
TEST_F(Identification, DamagedBitsDoNotFitButForTheRareOne) {
  ByteVector packet = counting_bytes(200);
  const std::uint32_t received = icrc_with(packet, 0x4711);
  unsigned missed = 0;
  for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
    if (bit / 8 == 4) continue;  // congestion bits, not covered
    packet[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    if (icrc_fit_identification(received, icrc_with(packet, 0), packet.size()).fits) ++missed;
    packet[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  }
  EXPECT_EQ(missed, 1u);
}

TEST_F(Identification, OfAllWrongIcrcsOneIn32768Fits) {
  unsigned fits = 0;
  std::uint32_t received = 1;
  for (int n = 0; n < 1 << 20; ++n) {
    received = received * 1'664'525 + 1'013'904'223;
    if (icrc_fit_identification(received, 0, 1036).fits) ++fits;
  }
  EXPECT_NEAR(fits, (1 << 20) / 32'768, 20);
}

TEST_F(Identification, LengthsThatNoPacketHasDoNotFit) {
  EXPECT_FALSE(icrc_fit_identification(1, 1, 17).fits);
  EXPECT_FALSE(icrc_fit_identification(1, 1, kMaxHeaderBytes + 4096 + 4).fits);
  EXPECT_TRUE(icrc_fit_identification(1, 1, kMaxHeaderBytes + 4096).fits);
}

}  // namespace
}  // namespace uroce::wire
