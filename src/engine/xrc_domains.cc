// SPDX-License-Identifier: BSD-2-Clause
#include "engine/xrc_domains.h"

#include <cerrno>
#include <utility>

namespace uroce::engine {

int XrcDomains::open(std::optional<XrcFile> file, bool may_be_new, bool may_be_there,
                     XrcDomain*& domain) {
  const std::lock_guard guard(mutex_);
  domain = find(file);
  if (domain != nullptr) {
    if (!may_be_there) return EINVAL;
    ++domain->openers;
    return 0;
  }
  if (!may_be_new) return EAGAIN;
  domains_.push_back(std::make_unique<XrcDomain>());
  domain = domains_.back().get();
  domain->id = {++latest_};
  domain->file = std::move(file);
  return 0;
}

void XrcDomains::close(XrcDomain& domain) {
  const std::lock_guard guard(mutex_);
  if (--domain.openers != 0) return;
  std::erase_if(domains_, [&domain](const auto& each) { return each.get() == &domain; });
}

XrcDomain* XrcDomains::find(const std::optional<XrcFile>& file) const {
  if (!file) return nullptr;
  for (const auto& domain : domains_) {
    const auto& its = domain->file;
    if (its && its->device == file->device && its->inode == file->inode) return domain.get();
  }
  return nullptr;
}

}  // namespace uroce::engine
