// SPDX-License-Identifier: BSD-2-Clause
// Who offers which service of the communication manager. Claims are made under a lock, since two
// must not be made at once; looking one up takes loads only, and a service that changes meanwhile
// is found or not, as if the look had been a little later or earlier.
#include <cerrno>
#include <cstring>

#include "datapath/directory/directory.h"
#include "posix/wait_for_lock.h"
#include "wire/bth.h"
#include "wire/bytes.h"
#include "wire/management.h"

namespace uroce::datapath {
namespace {

constexpr std::uint64_t kShares = 1 << 8;
constexpr std::uint64_t kListens = 1 << 9;

struct ServiceFacts {
  std::uint64_t id = 0;
  ServiceAddress address;
  std::uint64_t flags = 0;
  std::uint32_t block = 0;
};

// Whoever sees one of these sees as well that the former owner had gone.
void store(Service& service, const ServiceFacts& facts) {
  std::array<std::uint64_t, 2> words;
  std::memcpy(words.data(), facts.address.gid.bytes.data(), sizeof words);
  service.id.store(facts.id, std::memory_order_release);
  for (std::size_t i = 0; i < words.size(); ++i) {
    service.address[i].store(words[i], std::memory_order_release);
  }
  service.family_and_flags.store(static_cast<std::uint64_t>(facts.address.family) | facts.flags,
                                 std::memory_order_release);
  service.block.store(facts.block, std::memory_order_release);
}

ServiceFacts load(const Service& service) {
  ServiceFacts facts;
  std::array<std::uint64_t, 2> words;
  facts.id = service.id.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = service.address[i].load(std::memory_order_acquire);
  }
  std::memcpy(facts.address.gid.bytes.data(), words.data(), sizeof words);
  facts.flags = service.family_and_flags.load(std::memory_order_acquire);
  facts.address.family = static_cast<Family>(facts.flags & 0xff);
  facts.block = static_cast<std::uint32_t>(service.block.load(std::memory_order_acquire));
  return facts;
}

SlotHandle handle_of(std::uint64_t owner) {
  const BlockWord word{owner};
  return {word.slot(), word.stamp()};
}

}  // namespace

class Directory::ServicesLock {
 public:
  explicit ServicesLock(SharedFile& file) : file_(file), threads_(file.services_threads()) {
    is_held_ = posix::wait_for_lock([&file] { return file.try_lock(SharedFile::kServicesLock); });
  }
  ~ServicesLock() {
    if (is_held_) file_.unlock(SharedFile::kServicesLock);
  }
  ServicesLock(const ServicesLock&) = delete;
  ServicesLock& operator=(const ServicesLock&) = delete;
  [[nodiscard]] bool is_held() const { return is_held_; }

 private:
  SharedFile& file_;
  std::lock_guard<std::mutex> threads_;
  bool is_held_ = false;
};

int Directory::check_service(const ServiceClaim& claim, bool to_listen,
                             std::uint32_t except) const {
  const std::uint32_t used = table().services_used.load();
  for (std::uint32_t i = 0; i < used; ++i) {
    const std::uint64_t owner = table().services[i].owner.load(std::memory_order_acquire);
    if (owner == 0 || i == except) continue;
    const ServiceFacts other = load(table().services[i]);
    if (other.id != claim.id || !other.address.overlaps(claim.address)) continue;
    const SlotHandle holder = handle_of(owner);
    if (file_->holds(holder.index) || !is_alive(holder)) continue;
    const bool both_share = claim.shares && (other.flags & kShares) != 0;
    const bool one_listens = to_listen || (other.flags & kListens) != 0;
    if (!both_share || one_listens) return in_use(claim.address, other.address);
  }
  return 0;
}

int Directory::claim_service(const ServiceClaim& claim, std::uint32_t& index) {
  const ServicesLock lock(*file_);
  if (!lock.is_held()) return EBUSY;
  if (const int error = check_service(claim, false, kServiceCount); error != 0) return error;
  for (std::uint32_t i = 0; i < kServiceCount; ++i) {
    Service& service = table().services[i];
    const std::uint64_t owner = service.owner.load();
    if (owner != 0 && is_alive(handle_of(owner))) continue;
    service.owner.store(0);
    store(service, {claim.id, claim.address, claim.shares ? kShares : 0, claim.block});
    if (i >= table().services_used.load()) table().services_used.store(i + 1);
    service.owner.store(BlockWord::owned(own_.index, own_.generation).value,
                        std::memory_order_release);
    index = i;
    return 0;
  }
  return ENOSPC;
}

// One store: whoever looks meanwhile sees what was or what is.
int Directory::change_service(std::uint32_t index, const ServiceClaim& claim) {
  const ServicesLock lock(*file_);
  if (!lock.is_held()) return EBUSY;
  auto& word = table().services[index].family_and_flags;
  word.store((word.load() & kListens) | static_cast<std::uint64_t>(claim.address.family) |
             (claim.shares ? kShares : 0));
  return 0;
}

int Directory::listen_to_service(std::uint32_t index) {
  const ServicesLock lock(*file_);
  if (!lock.is_held()) return EBUSY;
  Service& service = table().services[index];
  const ServiceFacts facts = load(service);
  const ServiceClaim claim{facts.id, facts.address, (facts.flags & kShares) != 0, facts.block};
  if (const int error = check_service(claim, true, index); error != 0) return error;
  service.family_and_flags.fetch_or(kListens);
  return 0;
}

void Directory::release_service(std::uint32_t index) {
  std::uint64_t mine = BlockWord::owned(own_.index, own_.generation).value;
  table().services[index].owner.compare_exchange_strong(mine, 0);
}

void Directory::drop_services(std::uint64_t owner) {
  for (Service& service : table().services) {
    std::uint64_t theirs = owner;
    service.owner.compare_exchange_strong(theirs, 0);
  }
}

std::optional<std::uint32_t> Directory::service_block(std::uint64_t id, const Gid& address) const {
  std::optional<std::uint32_t> any;
  const std::uint32_t used = table().services_used.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < used; ++i) {
    const Service& service = table().services[i];
    const std::uint64_t owner = service.owner.load(std::memory_order_acquire);
    if (owner == 0) continue;
    const ServiceFacts facts = load(service);
    if (facts.id != id || (facts.flags & kListens) == 0 || !facts.address.covers(address) ||
        service.owner.load(std::memory_order_acquire) != owner) {
      continue;
    }
    if (!facts.address.is_any()) return facts.block;
    any = facts.block;
  }
  return any;
}

std::optional<SlotHandle> Directory::owner(const wire::ManagementAddressee& addressee) const {
  const auto block = addressee.is_service ? service_block(addressee.service_id, addressee.address)
                                          : std::optional(addressee.block);
  return block && *block < kBlockCount ? owner(Qpn{*block * kQpnsPerBlock}) : std::nullopt;
}

std::optional<SlotHandle> Directory::owner(ConstBytes packet) const {
  const Qpn qpn{wire::load<wire::BthWire>(packet.data()).congestion_and_destination.low()};
  if (qpn != wire::kManagementQpn) return owner(qpn);
  const auto addressee = wire::addressee_of_packet(packet);
  return addressee ? owner(*addressee) : std::nullopt;
}

}  // namespace uroce::datapath
