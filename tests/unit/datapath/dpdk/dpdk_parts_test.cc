// SPDX-License-Identifier: BSD-2-Clause
// The parts of the module that need no port: the specification, EAL's arguments, the claim.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "datapath/dpdk/eal.h"
#include "datapath/dpdk/port_claim.h"
#include "datapath/dpdk/port_spec.h"

namespace uroce::datapath {
namespace {

using testing::Contains;
using testing::Not;

TEST(PortSpec, DefaultsAreAddedWhereTheUserGaveNone) {
  const auto spec = parse_port_spec("net_af_packet,iface=veth0,framesz=8192,blocksz=65536");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->argument("iface"), "veth0");
  EXPECT_EQ(spec->argument("framesz"), "8192");
  EXPECT_EQ(spec->argument("blocksz"), "65536");
  EXPECT_EQ(spec->argument("qdisc_bypass"), "1");
  EXPECT_EQ(spec->facts->owner, PortOwner::kKernel);
  EXPECT_EQ(spec->driver_library(), "librte_net_af_packet.so");
}

TEST(PortSpec, DefaultRingsOfAfPacketFitTheKernelsRules) {
  const auto spec = parse_port_spec("net_af_packet,iface=lo");
  ASSERT_TRUE(spec);
  const int frame = std::stoi(std::string(spec->argument("framesz")));
  const int block = std::stoi(std::string(spec->argument("blocksz")));
  const int count = std::stoi(std::string(spec->argument("framecnt")));
  EXPECT_EQ(frame % 16, 0);
  EXPECT_EQ(block % 4096, 0);
  EXPECT_EQ(block % frame, 0);            // the driver takes the frames for contiguous
  EXPECT_EQ(count % (block / frame), 0);  // and the kernel wants whole blocks
}

TEST(PortSpec, InterfaceOfTheDeviceIsTheDefault) {
  EXPECT_EQ(parse_port_spec("net_af_packet", "veth1")->argument("iface"), "veth1");
  EXPECT_EQ(parse_port_spec("net_af_packet,iface=lo", "veth1")->argument("iface"), "lo");
  EXPECT_EQ(parse_port_spec("net_ring0", "veth1")->argument("iface"), "");
}

TEST(PortSpec, APciAddressIsOneWithOrWithoutDomain) {
  for (const char* text : {"0000:03:00.0", "03:00.1", "0000:03:00.0,representor=0"}) {
    const auto spec = parse_port_spec(text);
    ASSERT_TRUE(spec) << text;
    EXPECT_TRUE(spec->is_pci);
    EXPECT_EQ(spec->driver_library(), "");
  }
}

TEST(PortSpec, NonsenseIsRefused) {
  for (const char* text : {"", ",", "eth0", "net_", "03:00", "0000:03:00.0x"}) {
    EXPECT_FALSE(parse_port_spec(text)) << text;
  }
}

TEST(PortSpec, TheIdentityIsWhatOnlyOneCanHave) {
  const auto first = parse_port_spec("net_memif,role=server,socket=/run/a,id=1,bsize=2048");
  const auto same = parse_port_spec("net_memif,id=1,socket=/run/a,role=server");
  const auto other_end = parse_port_spec("net_memif,id=1,socket=/run/a,role=client");
  ASSERT_TRUE(first && same && other_end);
  EXPECT_EQ(first->identity(), same->identity());
  EXPECT_NE(first->identity(), other_end->identity());
  EXPECT_EQ(parse_port_spec("net_af_packet,iface=lo")->identity(), "");
}

TEST(PortSpec, AMemifIsAClientUnlessItIsTheServer) {
  EXPECT_TRUE(parse_port_spec("net_memif")->connects_at_start());
  EXPECT_TRUE(parse_port_spec("net_memif,role=client")->connects_at_start());
  EXPECT_FALSE(parse_port_spec("net_memif,role=server")->connects_at_start());
  EXPECT_FALSE(parse_port_spec("net_ring")->connects_at_start());
}

TEST(EalArguments, OrdinaryMemoryAndNoPciUnlessAskedFor) {
  const auto plain = eal_arguments({.cpus = {0, 3}});
  EXPECT_THAT(plain, Contains("0@(0,3)"));
  EXPECT_THAT(plain, Contains("--no-huge"));
  EXPECT_THAT(plain, Contains("--no-pci"));
  EXPECT_THAT(plain, Contains("--no-telemetry"));
  const auto full = eal_arguments({.cpus = {0}, .hugepages = true, .pci = true});
  EXPECT_THAT(full, Contains("--in-memory"));
  EXPECT_THAT(full, Not(Contains("--no-huge")));
  EXPECT_THAT(full, Not(Contains("--no-pci")));
}

TEST(PortClaim, IsFreeAgainWhenItsOwnerLetsGo) {
  const std::string name = "uroce-test-" + std::to_string(getpid());
  {
    const auto first = PortClaim::take(name);
    ASSERT_TRUE(first);
    const auto second = PortClaim::take(name);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, EBUSY);
    EXPECT_NE(second.error().message.find(std::to_string(getpid())), std::string::npos);
  }
  EXPECT_TRUE(PortClaim::take(name));
  EXPECT_TRUE(PortClaim::take(""));
  EXPECT_TRUE(PortClaim::take(""));
}

}  // namespace
}  // namespace uroce::datapath
