// SPDX-License-Identifier: BSD-2-Clause
// The character devices of /dev/infiniband that are emulated, one row per kind: what is opened in a
// node's place, and who carries out what a program writes to it.
//
// A descriptor of a node is not known by its number, so that close, dup, fork and descriptor
// passing need no wrapper, but by what it is and what is written to it. uverbs: the stand-in is
// /dev/null, the one character device that an unprivileged process can open again and again (the
// tree's `dev` files say 1:3). It has no identity of its own, yet a write of exactly one kernel
// command, header and lengths included, to a /dev/null descriptor of a process that has looked at
// an uverbs node is not made by accident. libibverbs looks at every node (stat) while it lists
// devices, so a process that was handed its descriptor by another is covered too. Everything else
// /dev/null does already: it swallows other writes, and RDMA_VERBS_IOCTL, but for the one request
// of ioctl.cc, ends in ENOTTY, which makes libibverbs fall back to write and sysfs.
//
// rdma_cm: rdma_cm.h.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <string_view>

#include "interposed.h"

namespace uroce::kernel {

inline constexpr std::string_view kNodeFolder = "/dev/infiniband";

struct NodeKind {
  std::string_view name;  // what the node's name begins with; a number may follow
  const char* stand_in;
  bool (*is_stand_in)(const Stat& status);  // of a descriptor
  bool (*is_command)(const void* command, std::size_t bytes);
  // Answers through the pointers in the command, as the kernel does; -1 and errno if it cannot.
  ssize_t (*execute)(int descriptor, const Stat& status, const void* command, std::size_t bytes);
  // What opening it is, where the stand-in is only for those who ask about it.
  int (*open)(int flags) = nullptr;
};

bool is_in_node_folder(std::string_view path);

// Opens the node that `path` leads to, where its kind does so itself. False: it is none.
bool open_node(int folder, const char* path, int flags, int& descriptor);

// The row for a plain path in the folder, or null.
const NodeKind* find_node_kind(std::string_view path);

// This process, or the one that it was forked from, has looked at an emulated node.
extern std::atomic<bool> node_was_seen;

// The row whose command this is, or null for any other write; `status` becomes the descriptor's. No
// memory is read unless that is a stand-in, so a bad address still ends in EFAULT elsewhere.
const NodeKind* find_command(int descriptor, const void* command, std::size_t bytes, Stat& status);

}  // namespace uroce::kernel
