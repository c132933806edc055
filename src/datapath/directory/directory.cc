// SPDX-License-Identifier: BSD-2-Clause
// The order of the stores, so that a process killed between any two of them leaves nothing that
// hurts. There is no lock round a change: whoever holds a slot's record lock (shared_file.h) may
// change the slot and free its blocks, and a block goes from free to owned by compare-and-swap. So
// a process stopped in the middle of a change holds up nobody either.
//
//   take:    lock; [retire what a dead process left;] write facts, mailbox; publish generation
//   retire:  generation |= retired (every handle is stale now); free the blocks; generation = 0
//   sweep:   of each slot with a generation that is not ours: try its lock; got it -> retire,
//   unlock
//
// Blocks are freed before the generation is forgotten, so an owned block always names a slot whose
// generation says the same number, and the next sweep finds it.
#include "datapath/directory/directory.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "datapath/directory/process_state.h"
#include "posix/wait_for_lock.h"

namespace uroce::datapath {
namespace {

constexpr std::array kSocketPurposes = {"shm", "udp"};

SlotFacts own_facts(const std::string& device) {
  SlotFacts facts;
  facts.pid = static_cast<std::uint32_t>(::getpid());
  facts.uid = ::geteuid();
  if (const auto state = read_process_state(facts.pid)) {
    facts.start_time = state->start_time;
    facts.program = state->program;
  }
  device.copy(facts.device.data(), facts.device.size() - 1);
  return facts;
}

template <std::size_t N>
std::string text_of(const std::array<char, N>& characters) {
  return {characters.data(), ::strnlen(characters.data(), N)};
}

}  // namespace

Result<std::unique_ptr<Directory>> Directory::join(const JoinOptions& options) {
  for (;;) {
    Result<SharedFile*> file = SharedFile::open(options.folder);
    if (!file) return file.error();
    std::unique_ptr<Directory> directory(new Directory(*file));
    directory->sweep();
    if (!directory->take_slot(options.device)) {
      return Error{EUSERS, options.folder + "/directory: " + std::to_string(kSlotCount) +
                               " devices are open already"};
    }
    // Before we had a slot, another version may have taken the file for nobody's; now it cannot.
    if (!(*file)->is_removed()) return directory;
  }
}

Directory::~Directory() {
  if (own_.generation == 0 || joined_by_pid_ != static_cast<std::uint32_t>(::getpid())) return;
  const std::lock_guard guard(file_->threads());
  retire(own_.index);
  file_->set_held(own_.index, false);
  file_->unlock(own_.index);
}

void Directory::abandon_in_child() {
  own_ = {};
  SharedFile::abandon_in_child();
}

bool Directory::take_slot(const std::string& device) {
  const SlotFacts facts = own_facts(device);
  const std::lock_guard guard(file_->threads());
  for (std::uint32_t index = 0; index < kSlotCount; ++index) {
    if (file_->holds(index) || !file_->try_lock(index)) continue;
    file_->set_held(index, true);
    std::uint32_t used = table().slots_used.load();
    while (used <= index && !table().slots_used.compare_exchange_weak(used, index + 1)) {
    }
    if (table().slots[index].generation.load() != 0) retire(index);
    publish(index, facts);
    return true;
  }
  return false;
}

void Directory::publish(std::uint32_t index, const SlotFacts& facts) {
  Slot& slot = table().slots[index];
  std::array<std::uint64_t, kFactWords> words;
  std::memcpy(words.data(), &facts, sizeof facts);
  for (std::size_t i = 0; i < kFactWords; ++i) {
    slot.facts[i].store(words[i], std::memory_order_relaxed);
  }
  own_ = {index, next_number()};
  joined_by_pid_ = facts.pid;
  slot.udp_order.store(0);
  slot.mailbox.senders_must_fence.store(0);
  slot.mailbox.application_turns.store(0);
  slot.mailbox.sleep.store(own_.generation * 2);
  slot.generation.store(own_.generation, std::memory_order_release);
  changed();
}

void Directory::retire(std::uint32_t index) {
  Slot& slot = table().slots[index];
  const std::uint64_t generation = slot.generation.load() & ~kRetiredBit;
  slot.generation.store(generation | kRetiredBit);
  const std::uint64_t owned = BlockWord::owned(index, generation).value;
  for (auto& block : table().blocks) {
    if (block.load(std::memory_order_relaxed) != owned) continue;
    block.store(BlockWord::freed(next_number()).value, std::memory_order_release);
  }
  drop_services(owned);
  for (const char* purpose : kSocketPurposes) {
    ::unlink(socket_path({index, generation}, purpose).c_str());
  }
  slot.udp_order.store(0);
  slot.generation.store(0);
  changed();
}

bool Directory::sweep() {
  const std::lock_guard guard(file_->threads());
  bool any = false;
  const std::uint32_t used = std::min(table().slots_used.load(), kSlotCount);
  for (std::uint32_t index = 0; index < used; ++index) {
    if (table().slots[index].generation.load() == 0 || file_->holds(index)) continue;
    if (!file_->try_lock(index)) continue;
    // Its owner may have left between the two lines above, and nobody else can have come.
    if (table().slots[index].generation.load() != 0) {
      retire(index);
      any = true;
    }
    file_->unlock(index);
  }
  return any;
}

bool Directory::is_alive(SlotHandle handle) const {
  if (handle.index >= kSlotCount || !is_present(handle)) return false;
  return file_->holds(handle.index) || file_->is_locked_by_other(handle.index);
}

// A QPN is used again as late as possible, so that packets of its former life have died out: the
// never used ones first, then by the time of their release.
std::optional<std::uint32_t> Directory::claim_block() {
  std::optional<std::uint32_t> block = claim_unused();
  if (!block) block = claim_oldest_free();
  if (!block && sweep()) block = claim_oldest_free();
  if (block) changed();
  return block;
}

std::optional<std::uint32_t> Directory::claim_unused() {
  while (table().blocks_used.load() < kBlockCount - 2) {
    const std::uint32_t block = table().blocks_used.fetch_add(1) + 1;
    if (block >= kBlockCount - 1) break;
    std::uint64_t never_used = 0;
    const std::uint64_t mine = BlockWord::owned(own_.index, own_.generation).value;
    if (table().blocks[block].compare_exchange_strong(never_used, mine)) return block;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> Directory::claim_oldest_free() {
  const std::uint64_t mine = BlockWord::owned(own_.index, own_.generation).value;
  for (;;) {
    std::uint32_t best = 0;
    BlockWord best_word;
    for (std::uint32_t block = 1; block < kBlockCount - 1; ++block) {
      const BlockWord word{table().blocks[block].load(std::memory_order_relaxed)};
      if (!word.is_free() || (best != 0 && word.stamp() >= best_word.stamp())) continue;
      best = block;
      best_word = word;
    }
    if (best == 0) return std::nullopt;
    if (table().blocks[best].compare_exchange_strong(best_word.value, mine)) return best;
  }
}

void Directory::release_block(std::uint32_t block) {
  UROCE_CHECK(block < kBlockCount);
  std::uint64_t mine = BlockWord::owned(own_.index, own_.generation).value;
  table().blocks[block].compare_exchange_strong(mine, BlockWord::freed(next_number()).value);
}

std::optional<SlotInfo> Directory::info(SlotHandle handle) const {
  if (handle.index >= kSlotCount || !is_present(handle)) return std::nullopt;
  const Slot& slot = table().slots[handle.index];
  std::array<std::uint64_t, kFactWords> words;
  for (std::size_t i = 0; i < kFactWords; ++i) {
    words[i] = slot.facts[i].load(std::memory_order_acquire);  // before the second look below
  }
  const std::uint64_t udp_order = slot.udp_order.load(std::memory_order_acquire);
  if (!is_present(handle)) return std::nullopt;
  SlotFacts facts;
  std::memcpy(static_cast<void*>(&facts), words.data(), sizeof facts);
  return SlotInfo{.handle = handle,
                  .pid = facts.pid,
                  .uid = facts.uid,
                  .start_time = facts.start_time,
                  .program = text_of(facts.program),
                  .device = text_of(facts.device),
                  .udp_order = udp_order};
}

std::vector<SlotInfo> Directory::slots() const {
  std::vector<SlotInfo> all;
  const std::uint32_t used = std::min(table().slots_used.load(), kSlotCount);
  for (std::uint32_t index = 0; index < used; ++index) {
    const std::uint64_t generation = table().slots[index].generation.load();
    if (generation == 0 || (generation & kRetiredBit) != 0) continue;
    if (auto one = info({index, generation})) all.push_back(std::move(*one));
  }
  return all;
}

std::string Directory::socket_path(SlotHandle handle, const char* purpose) const {
  return "/proc/self/fd/" + std::to_string(file_->folder_descriptor()) + "/" +
         std::to_string(handle.index) + "." + purpose;
}

std::optional<GroupLock> Directory::lock_group() {
  std::unique_lock threads(file_->group_threads());
  if (!posix::wait_for_lock([this] { return file_->try_lock(SharedFile::kGroupLock); })) {
    return std::nullopt;
  }
  return GroupLock(file_, std::move(threads));
}

GroupLock::~GroupLock() {
  if (file_ != nullptr) file_->unlock(SharedFile::kGroupLock);
}

void Directory::enter_udp_group() {
  table().slots[own_.index].udp_order.store(next_number());
  changed();
}

void Directory::leave_udp_group() {
  table().slots[own_.index].udp_order.store(0);
  changed();
}

}  // namespace uroce::datapath
