// SPDX-License-Identifier: BSD-2-Clause
// Events have to be written somewhere: a device that would lose them is not opened.
#include <cerrno>

#include "support/few_descriptors.h"
#include "unit/verbs/fixture.h"

namespace uroce::verbs {
namespace {

using DescriptorsTest = VerbsTest;

TEST_F(DescriptorsTest, WithoutThemADeviceDoesNotOpen) {
  OpenContext opened;
  std::vector<int> errors;
  for (rlim_t left = 0; opened == nullptr && left < 20; ++left) {
    const test::FewDescriptors few(left);
    opened.reset(Context::make(engine_));
    if (opened == nullptr) errors.push_back(errno);
  }
  ASSERT_NE(opened, nullptr);
  // Both ends of a pipe, and a description of our own.
  EXPECT_GE(errors.size(), 3U);
  for (const int error : errors) EXPECT_EQ(error, EMFILE);
  bool is_written = false;
  {
    const engine::Engine::Section section(engine_);
    is_written = opened->write_event(1, IBV_EVENT_PORT_ERR);
  }
  EXPECT_TRUE(is_written);
  const int events = opened->async_descriptor();
  opened.reset();
  close(events);
}

}  // namespace
}  // namespace uroce::verbs
