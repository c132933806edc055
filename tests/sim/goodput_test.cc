// SPDX-License-Identifier: BSD-2-Clause
// The table of goodput under loss is kept, so that a change of the transport shows what it does to
// it. To write it anew: uroce-sim --goodput > tests/sim/goodput.md
#include "sim/goodput.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace uroce::sim {
namespace {

TEST(Goodput, IsAsKept) {
  std::ifstream kept(UROCE_GOODPUT_TABLE);
  ASSERT_TRUE(kept.is_open());
  std::istringstream measured(goodput_table());
  std::string was, is;
  for (int line = 1; static_cast<bool>(std::getline(measured, is)); ++line) {
    ASSERT_TRUE(std::getline(kept, was)) << "new line " << line << ": " << is;
    EXPECT_EQ(is, was) << "line " << line;
  }
  EXPECT_FALSE(std::getline(kept, was)) << "missing: " << was;
}

}  // namespace
}  // namespace uroce::sim
