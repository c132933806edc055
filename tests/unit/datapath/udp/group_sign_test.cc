// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/udp/group_sign.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "unit/datapath/udp/endpoint.h"

namespace uroce::datapath::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kTable =
    "Num       RefCount Protocol Flags    Type St Inode Path\n"
    "0000000012d8fc4d: 00000003 00000000 00000000 0001 03  1061\n"
    "0000000012d8fc4e: 00000002 00000000 00000000 0002 01  1062 @uroce/udp-4791/7/1.5/42.0/run/a "
    "b\n"
    "0000000012d8fc4f: 00000002 00000000 00000000 0002 01  1063 @uroce/udp-4791/7/1.6/43.1/tmp/u\n";

TEST(GroupSign, OfAnotherFolderIsFound) {
  const auto other = udp::find_other_sign(kTable, 4791, 7, "1.6");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->folder, "1.5");
  EXPECT_EQ(other->process, "42");
  EXPECT_EQ(other->runtime_directory, "/run/a b");
}

TEST(GroupSign, OfTheSameFolderOfAnotherUserAndPortIsNoMatter) {
  const std::string own_only(std::string(kTable).substr(0, std::string(kTable).rfind("000000001")));
  EXPECT_FALSE(udp::find_other_sign(own_only, 4791, 7, "1.5"));
  EXPECT_FALSE(udp::find_other_sign(kTable, 4791, 8, "1.6"));
  EXPECT_FALSE(udp::find_other_sign(kTable, 4792, 7, "1.6"));
  EXPECT_FALSE(udp::find_other_sign("", 4791, 7, "1.6"));
}

// A runtime directory, with the folder of a network namespace in it.
class RuntimeDirectories : public testing::Test {
 protected:
  std::string make(const char* name) const {
    const std::string folder = base_.path() + "/" + name + "/netns-1";
    std::filesystem::create_directories(folder);
    return folder;
  }
  static std::string refusal(const std::string& folder) {
    try {
      const Endpoint endpoint(folder);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }

  TemporaryFolder base_;
};

TEST_F(RuntimeDirectories, TwoOnOnePortAreRefusedWithTheWayOut) {
  const std::string first = make("first"), second = make("second");
  {
    const Endpoint member(first);
    EXPECT_THAT(refusal(second),
                AllOf(HasSubstr("port " + std::to_string(test_port())),
                      HasSubstr("set UROCE_RUNTIME_DIR=" + base_.path() + "/first for this one"),
                      Not(HasSubstr("\n"))));
    EXPECT_EQ(refusal(first), "");
  }
  EXPECT_EQ(refusal(second), "");
}

TEST_F(RuntimeDirectories, ByTwoNamesAreOne) {
  const std::string first = make("first");
  std::filesystem::create_directory_symlink(base_.path() + "/first", base_.path() + "/second");
  const Endpoint member(first);
  EXPECT_EQ(refusal(base_.path() + "/second/netns-1"), "");
}

}  // namespace
}  // namespace uroce::datapath::test
