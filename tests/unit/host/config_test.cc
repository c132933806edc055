// SPDX-License-Identifier: BSD-2-Clause
#include "host/config.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "host/config_file.h"
#include "host/files.h"
#include "unit/host/support.h"

namespace uroce::host {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<Assignment> in_file(const std::string& text) {
  const test::TemporaryFolder directory;
  const std::string path = directory.path() + "/uroce.toml";
  EXPECT_TRUE(write_file(path, text));
  auto result = read_config_file(path);
  EXPECT_TRUE(result) << result.error().message;
  return result ? *result : std::vector<Assignment>{};
}

std::string error_in_file(const std::string& text) {
  const test::TemporaryFolder directory;
  const std::string path = directory.path() + "/uroce.toml";
  EXPECT_TRUE(write_file(path, text));
  const auto assignments = read_config_file(path);
  const std::string message =
      assignments ? resolve_config(*assignments).error().message : assignments.error().message;
  EXPECT_THAT(message, StartsWith(path));
  return message.substr(std::min(path.size(), message.size()));
}

TEST(Config, DefaultsAreUdpAndLocalOnTheAutomaticInterface) {
  const auto config = config_from({});
  ASSERT_TRUE(config);
  EXPECT_EQ(*config, Config{});
  EXPECT_EQ(config->uplink.kind, UplinkKind::kUdp);
  EXPECT_TRUE(config->local);
  EXPECT_EQ(config->udp_port, 4791);
}

TEST(Config, FlagsWinOverEnvironmentOverFile) {
  std::vector<Assignment> assignments = in_file("uplink = 'none'\nlocal = false\nlog = 'info'\n");
  for (Assignment& a : assignments_from({{"UROCE_LOCAL", "on"}, {"UROCE_LOG", "debug"}})) {
    assignments.push_back(a);
  }
  assignments.push_back({"log", "trace", "--log trace"});
  const auto config = resolve_config(assignments);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->uplink.kind, UplinkKind::kNone);  // file
  EXPECT_TRUE(config->local);                         // environment
  EXPECT_EQ(config->log_level, LogLevel::kTrace);     // flag
}

TEST(Config, ExportedEnvironmentGivesTheSameConfiguration) {
  Config config;
  config.uplink = {UplinkKind::kDpdk, "net_memif0,role=server,socket=/run/m.sock"};
  config.addresses = {*parse_prefix_address("10.0.0.1/24"), *parse_prefix_address("fd00::1/64")};
  config.local = false;
  config.log_level = LogLevel::kDebug;
  config.udp_port = 5000;
  config.verify_icrc = false;
  config.fault = {.loss = 10'000, .delay_max = milliseconds(2), .seed = 7};
  config.pcap = "/tmp/with blanks, commas.pcapng";
  Environment environment = {{"UROCE_NETDEV", "stale0"}};
  export_config(config, environment);
  const auto again = config_from(environment);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, config);
}

TEST(Config, EveryValueOfEveryKeySurvivesExport) {
  for (const char* netdev : {"eth0", "eth0,lo", "all"}) {
    for (const char* uplink : {"udp", "none"}) {
      const auto config = config_from({{"UROCE_NETDEV", netdev}, {"UROCE_UPLINK", uplink}});
      ASSERT_TRUE(config);
      Environment environment;
      export_config(*config, environment);
      EXPECT_EQ(environment["UROCE_NETDEV"], netdev);
      EXPECT_EQ(environment["UROCE_UPLINK"], uplink);
    }
  }
}

TEST(Config, AllInterfacesAreMeantHoweverTheListIsWritten) {
  const auto config = config_from({{"UROCE_NETDEV", ",all"}});
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->all_netdevs);
  Environment environment;
  export_config(*config, environment);
  EXPECT_EQ(environment["UROCE_NETDEV"], "all");
}

TEST(Config, EveryBadValueGetsALineThatNamesSourceKeyAndValue) {
  const auto config = resolve_config(std::vector<Assignment>{
      {"local", "maybe", "UROCE_LOCAL=maybe"}, {"uplink", "dpdk:", "--uplink dpdk:"}});
  ASSERT_FALSE(config);
  EXPECT_THAT(split(config.error().message, '\n'),
              ElementsAre("UROCE_LOCAL=maybe: expected on or off",
                          AllOf(StartsWith("--uplink dpdk:: expected"), HasSubstr("dpdk:SPEC"))));
}

TEST(Config, BadValuesOfEachKeyAreRefused) {
  const std::pair<const char*, const char*> kBad[] = {{"uplink", "tcp"},
                                                      {"netdev", "eth0,eth0"},
                                                      {"netdev", "a/b"},
                                                      {"log", "loud"},
                                                      {"netdev", "a-name-too-long-for-it"},
                                                      {"address", "10.0.0.1"},
                                                      {"address", "0.0.0.0/0"},
                                                      {"address", "127.0.0.1/8"},
                                                      {"address", "224.0.0.1/4"},
                                                      {"address", "255.255.255.255/32"},
                                                      {"address", "::1/128"},
                                                      {"address", "ff02::1/16"},
                                                      {"address", "fd00::1/64,fd00::1/64"},
                                                      {"port", "0"},
                                                      {"port", "65536"},
                                                      {"port", "4791x"},
                                                      {"icrc", "sometimes"},
                                                      {"local", "yes"},
                                                      {"fault", "loss=101%"},
                                                      {"fault", "1%"},
                                                      {"no-such-key", "1"}};
  for (const auto& [key, value] : kBad) {
    const auto config = resolve_config(std::vector<Assignment>{{key, value, "here"}});
    ASSERT_FALSE(config) << key << " = " << value;
    EXPECT_THAT(config.error().message, StartsWith("here: ")) << key;
  }
}

TEST(Config, AsManyAddressesAsThereIsRoomForInTheTableOfGids) {
  const auto with = [](int count) {
    std::string list;
    for (int i = 1; i <= count; ++i) list += "10.0.0." + std::to_string(i) + "/24,";
    return config_from({{"UROCE_ADDRESS", list}, {"UROCE_UPLINK", "none"}});
  };
  EXPECT_TRUE(with(126));
  const auto too_many = with(127);
  ASSERT_FALSE(too_many);
  EXPECT_THAT(too_many.error().message, HasSubstr("126 addresses at most"));
}

// Found by tests/fuzz: the environment, which brings it to the provider, ends at a NUL.
TEST(Config, ControlCharactersAreInNoValue) {
  for (const ConfigKey& key : config_keys()) {
    for (const char character : {'\0', '\n', '\x1b', '\x7f'}) {
      const std::string value = std::string(key.format(Config{})) + character + "x";
      const auto config =
          resolve_config(std::vector<Assignment>{{std::string(key.name), value, "here"}});
      ASSERT_FALSE(config) << key.name;
      EXPECT_THAT(config.error().message, StartsWith("here: ")) << key.name;
    }
  }
  EXPECT_FALSE(resolve_config(in_file("uplink = 'dpdk:net_ring0'\nnetdev = \"eth0\\u0000\"")));
  EXPECT_FALSE(resolve_config(in_file("uplink = \"dpdk:net_ring0\\u001b\"")));
}

TEST(Config, AddressesAreForPortsThatTheKernelDoesNotOwn) {
  const auto with_udp = config_from({{"UROCE_ADDRESS", "10.0.0.1/24"}});
  ASSERT_FALSE(with_udp);
  EXPECT_THAT(with_udp.error().message, HasSubstr("ip address add"));
  const auto with_netdev = config_from(
      {{"UROCE_ADDRESS", "10.0.0.1/24"}, {"UROCE_UPLINK", "none"}, {"UROCE_NETDEV", "eth0"}});
  EXPECT_THAT(with_netdev.error().message, HasSubstr("exclude each other"));
}

TEST(Config, SomethingHasToBeLeftToSendWith) {
  const auto config = config_from({{"UROCE_UPLINK", "none"}, {"UROCE_LOCAL", "off"}});
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("reaches nobody"));
}

TEST(Config, ADpdkPortMakesOneDevice) {
  const auto config = config_from({{"UROCE_UPLINK", "dpdk:net_ring0"}, {"UROCE_NETDEV", "a,b"}});
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("only one interface"));
}

TEST(Config, OffTakesBackFaultsAndCapturesOfAWeakerSource) {
  std::vector<Assignment> assignments = in_file("fault = 'loss=1%'\npcap = 'out.pcapng'\n");
  const auto config = resolve_config(assignments);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->fault.loss, 10'000u);
  EXPECT_EQ(config->pcap, "out.pcapng");
  for (const char* key : {"fault", "pcap"}) assignments.push_back({key, "off", "a flag"});
  const auto without = resolve_config(assignments);
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_EQ(*without, Config{});
  Environment environment = {{"UROCE_FAULT", "stale"}, {"UROCE_PCAP", "stale"}};
  export_config(*without, environment);
  EXPECT_EQ(environment.count("UROCE_FAULT") + environment.count("UROCE_PCAP"), 0u);
}

TEST(Config, ABadFaultIsOneLineThatSaysWhatAndWhere) {
  const auto config = config_from({{"UROCE_FAULT", "loss=5"}});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message,
            "UROCE_FAULT=loss=5: loss=5: above 1, which is 100%; for a percentage write 5%");
}

TEST(ConfigFile, ListsNumbersAndTruthsAreTaken) {
  const auto config = resolve_config(in_file(
      "uplink = 'none'\naddress = ['10.0.0.1/24', 'fd00::1/64']\nport = 4792\nlocal = true\n"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->addresses.size(), 2u);
  EXPECT_EQ(config->udp_port, 4792);
}

TEST(ConfigFile, AnEmptyFileIsTheDefaults) { EXPECT_TRUE(in_file("").empty()); }

// Found by tests/fuzz, in the parser of toml++.
TEST(ConfigFile, TextMayHoldAnyLetter) {
  const auto config = resolve_config(in_file("# \u00e4\u0416\u2003\nnetdev = '\u00e40'\n"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->netdevs, ElementsAre("\u00e40"));
  EXPECT_THAT(error_in_file("\u00e4 = 1\n"), StartsWith(":1: "));
}

TEST(ConfigFile, ErrorsNameFileAndLine) {
  EXPECT_THAT(error_in_file("\nlocal = 'maybe'\n"), StartsWith(":2: local = maybe: expected"));
  EXPECT_THAT(error_in_file("colour = 'red'\n"), HasSubstr(":1: colour = red: no such key"));
  EXPECT_THAT(error_in_file("local = \n"), StartsWith(":1: "));
  EXPECT_THAT(error_in_file("[/a]\n"), StartsWith(":1: "));  // found by tests/fuzz
  EXPECT_THAT(error_in_file("[uplink]\nkind = 'udp'\n"), HasSubstr("expected text"));
}

TEST(ConfigFile, AMissingFileSaysSo) {
  const auto result = read_config_file("/nonexistent/uroce.toml");
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("/nonexistent/uroce.toml: cannot be read"));
}

// Reading a pipe would wait for somebody who writes.
TEST(ConfigFile, AnythingButAFileIsRefusedAndNothingAtAllIsEmpty) {
  EXPECT_TRUE(read_config_file("/dev/null")->empty());
  const test::TemporaryFolder directory;
  const std::string path = directory.path() + "/pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  for (const std::string& other : {path, std::string("/dev/zero"), directory.path()}) {
    const auto result = read_config_file(other);
    ASSERT_FALSE(result) << other;
    EXPECT_THAT(result.error().message, HasSubstr("is no regular file"));
  }
}

TEST(ConfigFile, TheVariableWinsOverTheUsersFileOverTheSystems) {
  const test::TemporaryFolder directory;
  ASSERT_TRUE(make_directories(directory.path() + "/uroce", 0700));
  const std::string own = directory.path() + "/uroce/uroce.toml";
  Environment environment = {{"XDG_CONFIG_HOME", directory.path()}};
  EXPECT_NE(find_config_file(environment), own);
  ASSERT_TRUE(write_file(own, ""));
  EXPECT_EQ(find_config_file(environment), own);
  environment["UROCE_CONFIG"] = "/some/where.toml";
  EXPECT_EQ(find_config_file(environment), "/some/where.toml");
}

}  // namespace
}  // namespace uroce::host
