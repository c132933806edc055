// SPDX-License-Identifier: BSD-2-Clause
// The XRC domains of one device in one process. Domains that were opened with the same file are one
// (man ibv_open_xrcd); it ends with the last that opened it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "posix/descriptor.h"

namespace uroce::engine {

struct XrcFile {
  dev_t device = 0;
  ino_t inode = 0;
  posix::Descriptor held;  // as long as it is open no other file can have this inode's number
};

struct XrcDomain {
  XrcdId id;
  std::optional<XrcFile> file;  // none: nobody else can open it
  std::uint32_t openers = 1;    // guarded by XrcDomains
};

// Any thread may call any function.
class XrcDomains {
 public:
  // 0, or EAGAIN: there is none; EINVAL: there is one.
  [[nodiscard]] int open(std::optional<XrcFile> file, bool may_be_new, bool may_be_there,
                         XrcDomain*& domain);
  void close(XrcDomain& domain);

 private:
  [[nodiscard]] XrcDomain* find(const std::optional<XrcFile>& file) const;

  std::mutex mutex_;
  std::vector<std::unique_ptr<XrcDomain>> domains_;
  std::uint32_t latest_ = 0;
};

}  // namespace uroce::engine
