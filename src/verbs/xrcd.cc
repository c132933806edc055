// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/xrcd.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace uroce::verbs {
namespace {

using engine::XrcFile;

constexpr int kNoFile = -1;

// Held by its path alone: to close a copy would take the program's locks from the file.
int identify(int descriptor, std::optional<XrcFile>& file) {
  if (descriptor == kNoFile) return 0;
  struct stat facts {};
  if (fstat(descriptor, &facts) != 0) return EBADF;
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  posix::Descriptor held(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!held.is_open() && errno != ENOENT) return errno;  // without /proc nothing holds it
  file = XrcFile{facts.st_dev, facts.st_ino, std::move(held)};
  return 0;
}

int open(Context& context, const ibv_xrcd_init_attr& a, engine::XrcDomain*& domain) {
  constexpr std::uint32_t kBoth = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if (context.engine().is_abandoned()) return EIO;
  if (a.comp_mask != kBoth) return EINVAL;
  std::optional<XrcFile> file;
  if (const int error = identify(a.fd, file); error != 0) return error;
  // Where there is no file, nobody else's can be meant.
  const bool may_be_new = !file || (a.oflags & O_CREAT) != 0;
  const bool may_be_there = (a.oflags & O_EXCL) == 0;
  return context.engine().xrc_domains().open(std::move(file), may_be_new, may_be_there, domain);
}

}  // namespace

Xrcd* open_xrcd(Context& context, const ibv_xrcd_init_attr& attributes) {
  engine::XrcDomain* domain = nullptr;
  if (const int error = open(context, attributes, domain); error != 0) {
    errno = error;
    return nullptr;
  }
  auto* const xrcd = new (std::nothrow) Xrcd(context, *domain);
  if (xrcd != nullptr) {
    xrcd->begin();
    return xrcd;
  }
  context.engine().xrc_domains().close(*domain);
  errno = ENOMEM;
  return nullptr;
}

void Xrcd::leave_device() { context.engine().xrc_domains().close(domain); }

int close_xrcd(Xrcd* xrcd) {
  if (xrcd->users.load(std::memory_order_acquire) != 0) return EBUSY;
  xrcd->end();
  delete xrcd;
  return 0;
}

}  // namespace uroce::verbs
