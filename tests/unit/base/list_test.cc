// SPDX-License-Identifier: BSD-2-Clause
#include "base/list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace uroce {
namespace {

struct Element {
  int number = 0;
  ListHook hook;
};
using Elements = List<Element, &Element::hook>;

std::vector<int> numbers(Elements& list) {
  std::vector<int> found;
  for (Element* e = list.front(); e != nullptr; e = list.next(*e)) found.push_back(e->number);
  return found;
}

std::vector<int> numbers_backwards(Elements& list) {
  std::vector<int> found;
  for (Element* e = list.back(); e != nullptr; e = list.previous(*e)) found.push_back(e->number);
  return found;
}

TEST(List, InsertsBehindAnElementOrAtTheFront) {
  std::array<Element, 4> e;
  for (int i = 0; i < 4; ++i) e[static_cast<std::size_t>(i)].number = i;
  Elements list;
  EXPECT_EQ(list.back(), nullptr);
  list.insert_after(nullptr, e[1]);
  list.insert_after(nullptr, e[0]);
  list.insert_after(&e[1], e[3]);
  list.insert_after(&e[1], e[2]);
  EXPECT_THAT(numbers(list), testing::ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(numbers_backwards(list), testing::ElementsAre(3, 2, 1, 0));
  e[3].hook.unlink();
  EXPECT_EQ(list.back(), &e[2]);
}

}  // namespace
}  // namespace uroce
