// SPDX-License-Identifier: BSD-2-Clause
// Which queue pairs have joined a multicast group (IBTA 10.5): a packet for QPN 0xFFFFFF is for
// each of them, and each takes its own copy, under its own Q_Key.
#pragma once

#include <array>
#include <cstdint>

#include "base/list.h"
#include "transport/qp.h"
#include "uroce/ids.h"

namespace uroce::transport {

// One queue pair in one group; of verbs.
struct MulticastMember {
  Gid group;
  Qp* qp = nullptr;
  ListHook hook;     // in MulticastTable
  ListHook qp_hook;  // of verbs
};

class MulticastTable {
 public:
  void insert(MulticastMember& member) { list_of(member.group).push_back(member); }
  [[nodiscard]] bool has_members(const Gid& group) {
    return next_of(group, list_of(group).front()) != nullptr;
  }
  // `take(qp)` for each of the group.
  template <typename Take>
  void for_each(const Gid& group, const Take& take) {
    List& members = list_of(group);
    for (MulticastMember* m = next_of(group, members.front()); m != nullptr;
         m = next_of(group, members.next(*m))) {
      take(*m->qp);
    }
  }

 private:
  static constexpr std::size_t kLists = 64;
  using List = uroce::List<MulticastMember, &MulticastMember::hook>;

  // The last byte is where groups differ.
  [[nodiscard]] List& list_of(const Gid& group) { return lists_[group.bytes[15] % kLists]; }
  // `from`, or the first behind it that is of the group.
  [[nodiscard]] MulticastMember* next_of(const Gid& group, MulticastMember* from) {
    while (from != nullptr && from->group != group) from = list_of(group).next(*from);
    return from;
  }

  std::array<List, kLists> lists_;
};

}  // namespace uroce::transport
