// SPDX-License-Identifier: BSD-2-Clause
// Every form of every function that takes a path: from the tree with UROCE_TREE, untouched without.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <ostream>

#include "support.h"

namespace uroce::kernel {
namespace {

constexpr char kDevice[] = "/sys/class/infiniband/uroce97";
constexpr char kFile[] = "/sys/class/infiniband/uroce97/node_type";
constexpr char kLink[] = "/sys/class/infiniband/uroce97/type";
constexpr char kNode[] = "/dev/infiniband/uverbs97";
constexpr char kContent[] = "1: CA";
constexpr char kChar[] = "char 1:3";
constexpr char kList[] = "node_guid node_type type";
constexpr char kPaths[] =
    "/sys/class/infiniband/uroce97/node_guid /sys/class/infiniband/uroce97/node_type "
    "/sys/class/infiniband/uroce97/type";

struct Row {
  const char* form;
  const char* path;
  const char* answer;
};

constexpr Row kRows[] = {
    {"open", kFile, kContent},
    {"open64", kFile, kContent},
    {"openat", kFile, kContent},
    {"openat64", kFile, kContent},
    {"__open_2", kFile, kContent},
    {"__open64_2", kFile, kContent},
    {"__openat_2", kFile, kContent},
    {"__openat64_2", kFile, kContent},
    {"fopen", kFile, kContent},
    {"fopen64", kFile, kContent},
    {"freopen", kFile, kContent},
    {"freopen64", kFile, kContent},
    {"ifstream", kFile, kContent},
    {"open", kNode, kChar},
    {"open64", kNode, kChar},
    {"openat", kNode, kChar},
    {"openat64", kNode, kChar},
    {"__open_2", kNode, kChar},
    {"__open64_2", kNode, kChar},
    {"__openat_2", kNode, kChar},
    {"__openat64_2", kNode, kChar},
    {"creat", kNode, kChar},
    {"creat64", kNode, kChar},
    {"stat", kNode, kChar},
    {"stat64", kNode, kChar},
    {"lstat", kNode, kChar},
    {"lstat64", kNode, kChar},
    {"fstatat", kNode, kChar},
    {"fstatat64", kNode, kChar},
    {"__xstat", kNode, kChar},
    {"__xstat64", kNode, kChar},
    {"__lxstat", kNode, kChar},
    {"__lxstat64", kNode, kChar},
    {"__fxstatat", kNode, kChar},
    {"__fxstatat64", kNode, kChar},
    {"statx", kNode, kChar},
    {"std::filesystem::status", kNode, kChar},
    {"stat", kLink, "file"},
    {"lstat", kLink, "link"},
    {"stat", kDevice, "folder"},
    {"statfs", kFile, "yes"},
    {"statfs64", kFile, "yes"},
    {"statvfs", kFile, "yes"},
    {"statvfs64", kFile, "yes"},
    {"access", kFile, "yes"},
    {"eaccess", kFile, "yes"},
    {"euidaccess", kFile, "yes"},
    {"faccessat", kFile, "yes"},
    {"access", kNode, "yes"},
    {"faccessat", kNode, "yes"},
    {"getxattr", kFile, "yes"},
    {"lgetxattr", kFile, "yes"},
    {"listxattr", kFile, "yes"},
    {"llistxattr", kFile, "yes"},
    {"opendir", kDevice, kList},
    {"scandir", kDevice, kList},
    {"scandir64", kDevice, kList},
    {"scandirat", kDevice, kList},
    {"scandirat64", kDevice, kList},
    {"glob", kDevice, kPaths},
    {"glob64", kDevice, kPaths},
    {"chdir", kDevice, kList},
    {"inotify_add_watch", kDevice, "yes"},
    {"std::filesystem::directory_iterator", kDevice, kList},
    {"readlink", kLink, "node_type"},
    {"readlinkat", kLink, "node_type"},
    {"__readlink_chk", kLink, "node_type"},
    {"__readlinkat_chk", kLink, "node_type"},
    {"realpath", kLink, kFile},
    {"realpath allocating", kLink, kFile},
    {"__realpath_chk", kLink, kFile},
    {"canonicalize_file_name", kLink, kFile},
    {"realpath", kNode, kNode},
};

void PrintTo(const Row& row, std::ostream* stream) { *stream << row.form << ' ' << row.path; }

class Form : public testing::TestWithParam<Row> {};

TEST_P(Form, IsAnsweredFromTheTree) {
  const Tree tree;
  const Outcome outcome = run({KERNEL_PROBE, GetParam().form, GetParam().path}, preloaded(tree));
  EXPECT_EQ(outcome.output, GetParam().answer);
  EXPECT_EQ(outcome.exit_status, 0);
}

TEST_P(Form, SeesTheHostWithoutATree) {
  const Tree tree;
  EXPECT_EQ(run({KERNEL_PROBE, GetParam().form, GetParam().path}, preloaded()).output, "ENOENT");
}

std::string test_name(const testing::TestParamInfo<Row>& info) {
  std::string name = std::to_string(info.index) + "_" + info.param.form;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Every, Form, testing::ValuesIn(kRows), test_name);

// The same functions on a file that is none of ours must not notice the library.
TEST(OtherPaths, AreLeftAlone) {
  const Tree tree;
  tree.write("host/file", "host");
  const std::string file = tree.path() / "host/file";
  for (const char* form : {"open", "openat", "fopen", "freopen", "ifstream"}) {
    EXPECT_EQ(run({KERNEL_PROBE, form, file}, preloaded(tree)).output, "host") << form;
  }
  EXPECT_EQ(run({KERNEL_PROBE, "stat", "/dev/null"}, preloaded(tree)).output, kChar);
  EXPECT_EQ(run({KERNEL_PROBE, "realpath", file}, preloaded(tree)).output, file);
}

}  // namespace
}  // namespace uroce::kernel
