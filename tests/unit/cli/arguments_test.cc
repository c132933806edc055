// SPDX-License-Identifier: BSD-2-Clause
#include "cli/arguments.h"

#include <gmock/gmock.h>

namespace uroce::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Arguments parsed(const std::vector<std::string>& words) {
  const auto result = parse_arguments(words);
  EXPECT_TRUE(std::holds_alternative<Arguments>(result)) << testing::PrintToString(words);
  return std::holds_alternative<Arguments>(result) ? std::get<Arguments>(result) : Arguments{};
}

int status(const std::vector<std::string>& words, std::string* out = nullptr) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto result = parse_arguments(words);
  const std::string text =
      testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
  if (out != nullptr) *out = text;
  return std::holds_alternative<int>(result) ? std::get<int>(result) : -1;
}

TEST(Arguments, TheProgramKeepsItsOwnFlags) {
  const Arguments a = parsed({"run", "ib_write_bw", "-a", "--help", "--uplink", "none"});
  EXPECT_EQ(a.command, Command::kRun);
  EXPECT_THAT(a.program, ElementsAre("ib_write_bw", "-a", "--help", "--uplink", "none"));
  EXPECT_THAT(a.flags, IsEmpty());
}

TEST(Arguments, FlagsBeforeTheProgramAreOurs) {
  const Arguments a = parsed({"run", "--uplink", "none", "--local=off", "--", "-x", "--", "y"});
  EXPECT_THAT(a.program, ElementsAre("-x", "--", "y"));
  ASSERT_EQ(a.flags.size(), 2u);
  EXPECT_EQ(a.flags[0].place, "--uplink none");
  EXPECT_EQ(a.flags[1].value, "off");
}

TEST(Arguments, AProgramMayBeCalledLikeACommandOfOurs) {
  EXPECT_THAT(parsed({"run", "devices"}).program, ElementsAre("devices"));
  EXPECT_THAT(parsed({"run", "--", "doctor", "--json"}).program, ElementsAre("doctor", "--json"));
  EXPECT_THAT(parsed({"doctor", "--", "run"}).program, ElementsAre("run"));
}

TEST(Arguments, DevicesAndDoctorNeedNoProgram) {
  EXPECT_TRUE(parsed({"devices", "--json"}).json);
  EXPECT_EQ(parsed({"devices", "--netdev", "lo,eth0"}).flags.at(0).value, "lo,eth0");
  EXPECT_EQ(parsed({"doctor", "--config", "x.toml"}).config_file, "x.toml");
}

TEST(Arguments, UsageErrorsEndWithTwoAndHelpWithNone) {
  EXPECT_EQ(status({}), 2);
  EXPECT_EQ(status({"jog"}), 2);
  EXPECT_EQ(status({"run"}), 2);
  EXPECT_EQ(status({"run", "--"}), 2);
  EXPECT_EQ(status({"run", "--speed", "9", "--", "ls"}), 2);
  EXPECT_EQ(status({"run", "--uplink"}), 2);
  EXPECT_EQ(status({"--help"}), 0);
  std::string text;
  EXPECT_EQ(status({"run", "--help"}, &text), 0);
  EXPECT_THAT(text, HasSubstr("uroce run [OPTIONS] [--] PROGRAM [ARGUMENTS...]"));
  EXPECT_EQ(status({"--version"}, &text), 0);
  EXPECT_THAT(text, testing::StartsWith("uroce "));
}

TEST(Arguments, ErrorsBeginAsAllOurLinesDo) {
  const std::vector<std::vector<std::string>> wrong = {{},
                                                       {"jog"},
                                                       {"run"},
                                                       {"run", "--bogus", "--", "x"},
                                                       {"devices", "--bogus"},
                                                       {"run", "--uplink"}};
  for (const auto& words : wrong) {
    std::string text;
    EXPECT_EQ(status(words, &text), 2);
    EXPECT_THAT(text, testing::StartsWith("uroce: ")) << testing::PrintToString(words);
  }
}

TEST(Arguments, WithoutACommandTheCommandsAreNamed) {
  std::string text;
  EXPECT_EQ(status({}, &text), 2);
  EXPECT_THAT(text, HasSubstr("run, devices or doctor"));
}

TEST(Arguments, HelpHasNoHolesAndNamesNoProgramThatCannotWork) {
  for (const char* command : {"run", "devices", "doctor"}) {
    std::string text;
    EXPECT_EQ(status({command, "--help"}, &text), 0);
    EXPECT_THAT(text, Not(HasSubstr("\n\n\n"))) << command;
    EXPECT_THAT(text, testing::ContainsRegex("^[A-Z]")) << command;
    EXPECT_THAT(text, Not(HasSubstr("rping"))) << "rdma_cm is not there";
  }
}

}  // namespace
}  // namespace uroce::cli
