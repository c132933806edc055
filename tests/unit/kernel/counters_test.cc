// SPDX-License-Identifier: BSD-2-Clause
// A port's counters in sysfs: the sum of what its engines have counted, at the moment of opening.
#include <gtest/gtest.h>

#include <fstream>

#include "host/port_counters.h"
#include "support.h"

namespace uroce::kernel {
namespace {

constexpr char kFolder[] = "/sys/class/infiniband/uroce97/ports/1/hw_counters/";
constexpr char kFile[] = "/sys/class/infiniband/uroce97/ports/1/hw_counters/sent_pkts";

class Counters : public testing::Test {
 protected:
  Counters() {
    for (const char* name : {"sent_pkts", "duplicate_request", "lifespan"}) {
      tree.write(std::string(kFolder).substr(1) + name, "in the tree");
    }
    tree.write("sys/class/infiniband/uroce97/ports/1/counters/port_rcv_errors", "in the tree");
    std::filesystem::create_directory(tree.path() / "counters");
    std::filesystem::create_symlink("../rows", tree.path() / "counters/uroce97");
  }

  void count(std::size_t row, const PortCounters& counters) const {
    const auto path = tree.path() / "rows";
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    if (!file.is_open()) file.open(path, std::ios::binary | std::ios::out);
    file.seekp(static_cast<std::streamoff>(row * kCounterRowBytes));
    file.write(reinterpret_cast<const char*>(&counters), sizeof counters);
    const std::string rest(kCounterRowBytes - sizeof counters, '\0');
    file.write(rest.data(), static_cast<std::streamsize>(rest.size()));
  }
  void send(std::size_t row, std::uint64_t local, std::uint64_t uplink) const {
    PortCounters counters;
    counters.links[0].tx_packets = local;
    counters.links[1].tx_packets = uplink;
    count(row, counters);
  }

  std::string ask(const std::string& form, const std::string& path) const {
    return run({KERNEL_PROBE, form, path}, preloaded(tree)).output;
  }
  std::string shell(const std::string& script) const {
    return run({"bash", "-c", script}, preloaded(tree)).output;
  }
  const Tree tree;
};

TEST_F(Counters, AreZeroUntilSomebodyCounts) { EXPECT_EQ(ask("open", kFile), "0"); }

TEST_F(Counters, AreTheSumOverAllEnginesAndLinks) {
  send(0, 1, 2);
  send(5, 10, 20);
  EXPECT_EQ(ask("open", kFile), "33");
  send(1, 18'446'744'073'709'551'000U, 500);
  EXPECT_EQ(ask("open", kFile), "18446744073709551533");
}

TEST_F(Counters, HaveOneMeaningEach) {
  PortCounters counters;
  counters.transport.duplicate_requests = 7;
  counters.transport.rx_malformed = {1, 1, 1, 1, 1, 1, 1, 1};
  counters.links[0].rx_bad_icrc = 100;
  counters.links[1].rx_truncated = 1000;
  count(0, counters);
  EXPECT_EQ(shell(std::string("cat ") + kFolder + "duplicate_request"), "7");
  EXPECT_EQ(shell("cat /sys/class/infiniband/uroce97/ports/1/counters/port_rcv_errors"), "1108");
}

TEST_F(Counters, AnswerEveryWayOfOpening) {
  send(0, 3, 4);
  for (const char* form :
       {"open", "open64", "openat", "openat64", "__open_2", "__open64_2", "__openat_2",
        "__openat64_2", "fopen", "fopen64", "freopen", "freopen64", "ifstream"}) {
    EXPECT_EQ(ask(form, kFile), "7") << form;
  }
  EXPECT_EQ(ask("open", "/sys/class/infiniband/uroce97/ports/../ports/1//hw_counters/sent_pkts"),
            "7");
}

// As `cd` and `grep -r` do.
TEST_F(Counters, AnswerToTheirLastNameAlone) {
  send(0, 3, 4);
  EXPECT_EQ(shell(std::string("cd ") + kFolder + " && cat sent_pkts"), "7");
  EXPECT_EQ(shell(std::string("cd ") + kFolder + "/.. && grep -rh . hw_counters | sort -u"),
            "0\n7\nin the tree");  // the last is no counter
  EXPECT_EQ(shell("cd " + tree.path().string() + " && echo 9 > sent_pkts && cat sent_pkts"), "9");
}

// Zeros would say that it has fallen.
TEST_F(Counters, ThatCannotBeReadAreNotZero) {
  std::filesystem::create_symlink("uroce98", tree.path() / "counters/uroce98");  // ELOOP
  tree.write("sys/class/infiniband/uroce98/ports/1/hw_counters/sent_pkts", "in the tree");
  EXPECT_EQ(ask("open", "/sys/class/infiniband/uroce98/ports/1/hw_counters/sent_pkts"),
            "in the tree");
}

TEST_F(Counters, AreListedAndOnlyToBeRead) {
  EXPECT_EQ(shell(std::string("ls ") + kFolder), "duplicate_request\nlifespan\nsent_pkts");
  EXPECT_NE(shell(std::string("echo 9 > ") + kFile).find("Permission denied"), std::string::npos);
  EXPECT_EQ(ask("open", kFile), "0");
}

// Each reader has its own.
TEST_F(Counters, StayWhatTheyWereWhenTheyWereOpened) {
  send(0, 3, 4);
  const std::string rows = (tree.path() / "rows").string();
  EXPECT_EQ(shell(std::string("exec 3< ") + kFile + "; : > " + rows + "; cat <&3; cat " + kFile),
            "7\n0");
}

TEST_F(Counters, OfARealDeviceAreTheKernels) {
  const auto kernel = tree.path() / "kernel";
  std::filesystem::create_directories(kernel / "ports/1/hw_counters");
  std::ofstream(kernel / "ports/1/hw_counters/sent_pkts") << "12";
  std::filesystem::create_symlink(kernel, tree.path() / "sys/class/infiniband/mlx97_0");
  EXPECT_EQ(ask("open", "/sys/class/infiniband/mlx97_0/ports/1/hw_counters/sent_pkts"), "12");
}

}  // namespace
}  // namespace uroce::kernel
