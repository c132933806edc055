// SPDX-License-Identifier: BSD-2-Clause
#include "cli/doctor.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <limits>

#include "cli/port_holders.h"
#include "host/files.h"
#include "posix/descriptor.h"
#include "unit/host/support.h"

namespace uroce::cli {
namespace {

using host::test::gid;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A host on which there is nothing to complain about.
DoctorFacts healthy() {
  DoctorFacts facts;
  facts.user = 1000;
  facts.installation = {"/b/lib/liburoce-rdmav34.so",
                        "/b/lib/liburoce-kernel.so",
                        "/b/lib/liburoce-dpdk.so",
                        {"/b/lib"},
                        "/usr/lib/libibverbs"};
  facts.libibverbs = {"/lib/libibverbs.so.1", "", true, {"IBVERBS_PRIVATE_34"}};
  Setup setup;
  host::Device device;
  device.name = "uroce0";
  device.netdev = "eth0";
  device.mtu_bytes = 1500;
  device.active = true;
  device.gids = {gid("192.0.2.2")};
  setup.devices = {device};
  facts.setup = setup;
  facts.links = {{"uroce0", "eth0", "", true, true}};
  facts.runtime_path = "/run/user/1000/uroce";
  facts.runtime_free_bytes = 1 << 30;
  facts.receive_buffer_max_bytes = 16 << 20;
  facts.memlock_bytes = std::numeric_limits<std::uint64_t>::max();
  facts.hugepages_total = facts.hugepages_free = 256;
  facts.hugepage_kib = 2048;
  return facts;
}

// "PROBLEM what -> advice", one for each finding that is not good.
std::vector<std::string> complaints(const DoctorFacts& facts) {
  std::vector<std::string> lines;
  for (const Finding& f : judge(facts)) {
    if (f.severity == Severity::kGood) continue;
    EXPECT_NE(f.advice, "") << f.what << ": what is to be done?";
    lines.push_back((f.severity == Severity::kProblem ? "PROBLEM " : "note ") + f.what + " -> " +
                    f.advice);
  }
  return lines;
}

auto problem(const std::string& what, const std::string& advice) {
  return Contains(AllOf(StartsWith("PROBLEM"), HasSubstr(what), HasSubstr(advice)));
}
auto note(const std::string& what, const std::string& advice) {
  return Contains(AllOf(StartsWith("note"), HasSubstr(what), HasSubstr(advice)));
}

TEST(Doctor, HasNothingToSayOfAHealthyHost) {
  EXPECT_THAT(complaints(healthy()), testing::IsEmpty());
  EXPECT_THAT(summary(judge(healthy())), HasSubstr("usable"));
}

TEST(Doctor, MissingParts) {
  DoctorFacts facts = healthy();
  facts.installation.provider.clear();
  facts.installation.preload.clear();
  EXPECT_THAT(complaints(facts), problem("liburoce-rdmav34.so, is in none of /b/lib", "build"));
  EXPECT_THAT(complaints(facts), problem("liburoce-kernel.so", "build"));
  EXPECT_EQ(summary(judge(facts)), "2 problems to solve");
}

TEST(Doctor, AProviderWhereLibibverbsItselfDoesNotLook) {
  const std::string sentence =
      "libibverbs by itself looks for providers only in /usr/lib/libibverbs";
  DoctorFacts facts = healthy();
  EXPECT_EQ(judge(facts).front().severity, Severity::kGood);
  EXPECT_THAT(judge(facts).front().what, HasSubstr(sentence));
  facts.installation.provider = "/usr/lib/libibverbs/liburoce-rdmav34.so";
  EXPECT_THAT(judge(facts).front().what, Not(HasSubstr(sentence)));
}

TEST(Doctor, LibibverbsMissingOrOfAnotherInterface) {
  DoctorFacts facts = healthy();
  facts.libibverbs = {"", "cannot open shared object file", false, {}};
  EXPECT_THAT(complaints(facts), problem("cannot open shared object", "apt-get install"));
  facts.libibverbs = {"/lib/libibverbs.so.1", "", false, {"IBVERBS_PRIVATE_59"}};
  EXPECT_THAT(complaints(facts), problem("has IBVERBS_PRIVATE_59, and this uroce speaks "
                                         "IBVERBS_PRIVATE_34",
                                         "Debian 12"));
  EXPECT_EQ(summary(judge(facts)), "1 problem to solve");
}

TEST(Doctor, KernelRdmaIsHiddenUnderRun) {
  DoctorFacts facts = healthy();
  facts.kernel_has_rdma = true;
  facts.kernel_devices = {"siw0"};
  EXPECT_THAT(complaints(facts), note("siw0", "siw's is found through netlink only"));
}

TEST(Doctor, ConfigurationErrorsEachGetALine) {
  DoctorFacts facts = healthy();
  facts.setup.reset();
  facts.setup_error = "--local maybe: expected on or off\nUROCE_PORT=x: expected a port";
  EXPECT_THAT(complaints(facts), problem("--local maybe", "uroce.conf(5)"));
  EXPECT_THAT(complaints(facts), problem("UROCE_PORT=x", "uroce.conf(5)"));
}

TEST(Doctor, DownOrWithoutAnAddress) {
  DoctorFacts facts = healthy();
  facts.setup->devices[0].gids.clear();
  EXPECT_THAT(complaints(facts), problem("no usable address", "ip address add"));
  facts.setup->devices[0].active = false;
  EXPECT_THAT(complaints(facts), problem("is down", "ip link set eth0 up"));
}

TEST(Doctor, FaultsThatAreAskedForAreNotForgotten) {
  DoctorFacts facts = healthy();
  facts.setup->config.fault.loss = 10'000;
  EXPECT_THAT(complaints(facts), note("faults on purpose: loss=1%", "--fault off"));
}

TEST(Doctor, PortHeldByAnotherUserIsNamed) {
  DoctorFacts facts = healthy();
  facts.port_holders = {{0, 4242, "rping", true}};
  EXPECT_THAT(complaints(facts),
              problem("4791 is held by user 0, process 4242 (rping)", "--uplink none"));
  facts.port_holders = {{0, 0, "", true}};
  EXPECT_THAT(complaints(facts), problem("4791 is held by user 0 or the kernel", "--uplink none"));
  facts.setup->config.uplink.kind = host::UplinkKind::kNone;
  EXPECT_THAT(complaints(facts), testing::IsEmpty()) << "nobody needs the port";
}

TEST(Doctor, PortHeldByTheUsersOwnProgramsIsShared) {
  DoctorFacts facts = healthy();
  facts.port_holders = {{1000, 4242, "ib_write_bw", true}};
  EXPECT_THAT(complaints(facts), testing::IsEmpty());
}

TEST(Doctor, PortHeldByAForeignProgramOfTheSameUserIsNot) {
  DoctorFacts facts = healthy();
  facts.port_holders = {{1000, 4242, "ib_write_bw", true}, {1000, 4243, "python3", false}};
  EXPECT_THAT(complaints(facts),
              problem("process 4243 (python3), which is nothing under 'uroce run'", "end that"));
  EXPECT_EQ(summary(judge(facts)), "1 problem to solve");
  facts.user = 0;
  facts.port_holders = {{0, 0, "", false}};
  EXPECT_THAT(complaints(facts), problem("the kernel itself (rxe, a tunnel)", "--uplink none"));
}

TEST(Doctor, VethSegmentationIsAProblemForDpdkOnly) {
  DoctorFacts facts = healthy();
  facts.links = {{"uroce0", "veth0", "veth", true, false}};
  EXPECT_THAT(complaints(facts), note("veth0", "ethtool -K veth0 tx-udp-segmentation off"));
  facts.setup->config.uplink.kind = host::UplinkKind::kDpdk;
  EXPECT_THAT(complaints(facts), problem("veth0", "ethtool -K veth0 tx-udp-segmentation off"));
  facts.links[0].udp_segmentation = false;
  EXPECT_THAT(complaints(facts), testing::IsEmpty());
}

TEST(Doctor, AddressTranslationBreaksTheIcrc) {
  DoctorFacts facts = healthy();
  facts.links = {{"uroce0", "eth0", "veth", false, true}};
  EXPECT_THAT(complaints(facts), testing::IsEmpty()) << "192.0.2.2 is not a private address";
  facts.setup->devices[0].gids = {gid("172.17.0.2")};
  EXPECT_THAT(complaints(facts), note("ICRC covers the addresses", "--network host"));
  facts = healthy();
  facts.nat_rules = true;
  EXPECT_THAT(complaints(facts), note("NAT rules", "4791"));
}

TEST(Doctor, SmallLimits) {
  DoctorFacts facts = healthy();
  facts.receive_buffer_max_bytes = 212'992;
  facts.memlock_bytes = 64 * 1024;
  EXPECT_THAT(complaints(facts), note("rmem_max is 208 KiB", "sysctl -w net.core.rmem_max="));
  EXPECT_THAT(complaints(facts), note("64 KiB", "ulimit -l"));
}

TEST(Doctor, RuntimeDirectory) {
  DoctorFacts facts = healthy();
  facts.runtime_free_bytes = 100 * 1024;
  EXPECT_THAT(complaints(facts), testing::IsEmpty()) << "all that is needed is there already";
  facts.runtime_missing_bytes = 1600 * 1024;
  EXPECT_THAT(complaints(facts), problem("only 100 KiB free, and the next program takes 1600 KiB",
                                         "UROCE_RUNTIME_DIR"));
  facts.runtime_error = "/tmp/uroce-1000: it belongs to user 7";
  EXPECT_THAT(complaints(facts), problem("belongs to user 7", ""));
}

TEST(Doctor, DpdkMattersOnlyWhereItIsAskedFor) {
  DoctorFacts facts = healthy();
  facts.hugepages_total = 0;
  facts.dpdk_load_error = "librte_eal.so.23: cannot open shared object file";
  EXPECT_THAT(complaints(facts), note("librte_eal", "only --uplink dpdk"));
  EXPECT_THAT(complaints(facts), note("no hugepages", "nr_hugepages"));
  facts.setup->config.uplink.kind = host::UplinkKind::kDpdk;
  EXPECT_THAT(complaints(facts), problem("librte_eal", "install"));
  facts.installation.dpdk_module.clear();
  EXPECT_THAT(complaints(facts), problem("is not there", "cmake --build --preset release"));
}

TEST(Doctor, AMissingCapabilityIsNamed) {
  DoctorFacts facts = healthy();
  facts.setup->config.uplink = {host::UplinkKind::kDpdk, "net_af_packet0,iface=eth0"};
  facts.missing_capability = "CAP_NET_RAW";
  EXPECT_THAT(complaints(facts), problem("net_af_packet0,iface=eth0 needs CAP_NET_RAW", "root"));
}

TEST(Doctor, WithoutADefaultRouteTheInterfaceToUseIsNamed) {
  DoctorFacts facts = healthy();
  host::Interface lo, eth;
  lo.name = "lo";
  lo.loopback = true;
  eth.name = "eth0";
  for (host::Interface* interface : {&lo, &eth}) {
    interface->up = interface->running = true;
    interface->addresses.push_back({.address = {gid("192.0.2.2"), 24}});
  }
  facts.setup->network.interfaces = {lo, eth};
  EXPECT_THAT(complaints(facts), note("no default route, so the device is on lo", "--netdev eth0"));
  facts.setup->network.default_route = "eth0";
  EXPECT_THAT(complaints(facts), testing::IsEmpty());
}

TEST(Doctor, ProgramsThatCannotBeReached) {
  DoctorFacts facts = healthy();
  facts.program = ProgramFacts{"ping", "/bin/ping", true, false, true, std::nullopt};
  EXPECT_THAT(complaints(facts), problem("/bin/ping has file capabilities", "use a copy"));
  facts.program = ProgramFacts{"su", "/bin/su", true, true, false, std::nullopt};
  EXPECT_THAT(complaints(facts), problem("/bin/su is setuid", "use a copy"));
  facts.program = ProgramFacts{"x", "/bin/x", true, false, false, ElfFacts{false, true, {}}};
  EXPECT_THAT(complaints(facts), problem("is statically linked", "dynamically"));
  facts.program = ProgramFacts{"x", "/bin/x", true, false, false, ElfFacts{true, false, {}}};
  EXPECT_THAT(complaints(facts), problem("another kind of machine", "this machine"));
  facts.program = ProgramFacts{"y", "", false, false, false, std::nullopt};
  EXPECT_THAT(complaints(facts), problem("y: there is no such program", "PATH"));
  facts.program = ProgramFacts{"z", "/bin/z", true, false, false, ElfFacts{true, true, {}}};
  EXPECT_THAT(complaints(facts), testing::IsEmpty());
}

TEST(Doctor, TextIsWrappedAndColouredOnlyForATerminal) {
  const std::vector<Finding> findings = {
      {Severity::kProblem, std::string(60, 'x') + " and more than fits one line", "do this"}};
  const std::string plain = findings_text(findings, false);
  EXPECT_THAT(plain, Not(HasSubstr("\x1b")));
  EXPECT_THAT(plain, HasSubstr("\n           -> do this\n"));
  EXPECT_THAT(plain, HasSubstr("x and more\n"));
  EXPECT_THAT(findings_text(findings, true), HasSubstr("\x1b[1;31m"));
}

TEST(PortHolders, TheTableOfTheKernelIsUnderstood) {
  const std::string table =
      "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode ref pointer drops\n"
      "  10: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 "
      "54321 2 0000000000000000 0\n"
      "  11: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 "
      "11111 2 0000000000000000 0\n"
      "  12: torn line\n";
  const auto sockets = sockets_on_port(table, 4791);
  ASSERT_EQ(sockets.size(), 1u);
  EXPECT_EQ(sockets[0].user, 1000u);
  EXPECT_EQ(sockets[0].inode, 54321u);
  EXPECT_EQ(sockets_on_port(table, 53).size(), 1u);
  EXPECT_TRUE(sockets_on_port("", 53).empty());
}

TEST(PortHolders, FindsThisProcess) {
  const posix::Descriptor udp(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(udp.get(), generic, size), 0);
  ASSERT_EQ(getsockname(udp.get(), generic, &size), 0);
  const auto holders = find_port_holders(ntohs(address.sin_port));
  ASSERT_EQ(holders.size(), 1u);
  EXPECT_EQ(holders[0].user, geteuid());
  EXPECT_EQ(holders[0].process, getpid());
  EXPECT_NE(holders[0].program, "");
  EXPECT_FALSE(holders[0].shares);
}

TEST(DoctorFacts, CanBeGatheredHere) {
  const host::test::TemporaryFolder base;
  ASSERT_EQ(setenv("UROCE_RUNTIME_DIR", (base.path() + "/run").c_str(), 1), 0);
  Arguments arguments;
  arguments.flags = {{"netdev", "lo", "--netdev lo"}};
  arguments.program = {"sh"};
  const DoctorFacts facts = gather_facts(arguments);
  unsetenv("UROCE_RUNTIME_DIR");
  ASSERT_TRUE(facts.setup) << facts.setup_error;
  EXPECT_EQ(facts.setup->devices.at(0).netdev, "lo");
  EXPECT_EQ(facts.runtime_path, base.path() + "/run");
  EXPECT_GT(facts.receive_buffer_max_bytes, 0u);
  EXPECT_TRUE(facts.program && facts.program->is_executable);
}

}  // namespace
}  // namespace uroce::cli
