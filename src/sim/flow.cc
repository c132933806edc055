// SPDX-License-Identifier: BSD-2-Clause
#include "sim/flow.h"

#include <algorithm>
#include <cstring>

namespace uroce::sim {

using namespace transport;

namespace {

unsigned long long printed(std::uint64_t wr_id) { return wr_id; }

// The oracle has its own: what it judges by must not be what is judged.
WcOpcode opcode_of(SendOperation operation) {
  switch (operation) {
    case SendOperation::kSend:
    case SendOperation::kSendWithImmediate:
    case SendOperation::kSendWithInvalidate:
      return WcOpcode::kSend;
    case SendOperation::kWrite:
    case SendOperation::kWriteWithImmediate:
      return WcOpcode::kRdmaWrite;
    case SendOperation::kRead:
      return WcOpcode::kRdmaRead;
    case SendOperation::kCompareSwap:
      return WcOpcode::kCompareSwap;
    case SendOperation::kFetchAdd:
      return WcOpcode::kFetchAdd;
    case SendOperation::kBindWindow:
      return WcOpcode::kBindWindow;
    case SendOperation::kLocalInvalidate:
      return WcOpcode::kLocalInvalidate;
    case SendOperation::kAtomicWrite:
      return WcOpcode::kAtomicWrite;
  }
  return WcOpcode::kSend;
}

}  // namespace

std::uint64_t load_word(ConstBytes bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

void store_word(Bytes bytes, std::uint64_t word) { std::memcpy(bytes.data(), &word, sizeof word); }

std::uint64_t apply_atomic(const Request& request, std::uint64_t word) {
  if (request.operation == SendOperation::kFetchAdd) return word + request.compare_add;
  return word == request.compare_add ? request.swap : word;
}

void Flow::open(std::uint16_t path_mtu) {
  path_mtu_ = path_mtu;
  has_failed_ = has_poison_ = false;
  messages_ = 0;
  sent_ = received_ = 0;
}

void Flow::post(Request request) {
  if (!is_local(request.operation)) ++messages_;
  has_poison_ = has_poison_ || request.poison != Poison::kNone;
  if (request.takes_receive()) to_receive_.push_back(request);
  pending_.push_back(std::move(request));
}

const Request* Flow::find(std::uint64_t wr_id) const {
  for (const Request& request : pending_) {
    if (request.wr_id == wr_id) return &request;
  }
  return nullptr;
}

void Flow::succeed_unsignaled() {
  while (!has_failed_ && !pending_.empty() && !pending_.front().is_signaled) succeed();
}

void Flow::check_facts(const Request& request, const Cqe& entry) {
  if (entry.status != WcStatus::kSuccess) return;
  if (entry.opcode != opcode_of(request.operation)) {
    oracle_.violated("request %#llx completes with opcode %u", printed(entry.wr_id),
                     static_cast<unsigned>(entry.opcode));
  }
  if (request.fetches() && entry.byte_count != request.length) {
    oracle_.violated("request %#llx of %u bytes says %u", printed(entry.wr_id), request.length,
                     entry.byte_count);
  }
}

void Flow::on_completion(const Cqe& entry) {
  std::uint32_t covered = 1;
  while (!pending_.empty() && pending_.front().wr_id != entry.wr_id) {
    if (pending_.front().is_signaled || has_failed_) {
      return oracle_.violated("completion of %#llx came before that of %#llx", printed(entry.wr_id),
                              printed(pending_.front().wr_id));
    }
    succeed();
    ++covered;
  }
  if (pending_.empty()) {
    return oracle_.violated("completion of %#llx, which is not open", printed(entry.wr_id));
  }
  if (entry.release_count != covered) {
    oracle_.violated("completion of %#llx gives %u slots back, not %u", printed(entry.wr_id),
                     entry.release_count, covered);
  }
  const Request& request = pending_.front();
  check_facts(request, entry);
  if (entry.status == WcStatus::kSuccess) {
    if (has_failed_) oracle_.violated("%#llx succeeded after an error", printed(entry.wr_id));
    if (!request.is_signaled) {
      oracle_.violated("completion of %#llx, which is not signalled", printed(entry.wr_id));
    }
    return succeed();
  }
  if (has_failed_ && entry.status != WcStatus::kFlushed) {
    oracle_.violated("%#llx behind an error has status %u, and is not flushed",
                     printed(entry.wr_id), static_cast<unsigned>(entry.status));
  }
  has_failed_ = true;
  give_up_front();
}

void Flow::give_up_front() {
  uncertain_.push_back(std::move(pending_.front()));
  pending_.pop_front();
}

void Flow::abandon() {
  while (!pending_.empty()) give_up_front();
}

// The oldest request has succeeded: it took effect behind all before it.
void Flow::succeed() {
  const Request& request = pending_.front();
  if (request.poison != Poison::kNone) {
    oracle_.violated("%#llx succeeded, and must not", printed(request.wr_id));
  }
  if (request.is_write()) {
    const Bytes target = memory_.remote->expected({request.remote_offset, request.length});
    std::copy(request.data.begin(), request.data.end(), target.begin());
  } else if (request.operation == SendOperation::kRead) {
    check_read(request);
  } else if (is_atomic(request.operation)) {
    check_atomic(request);
  }
  if (request.takes_receive()) ++sent_;
  ++succeeded_;
  pending_.pop_front();
}

// A READ that is asked for again reads again: a later WRITE that no fence holds back may have come
// in between (IBTA 9.5, ordering rules).
bool Flow::may_have_read(std::uint32_t offset, std::byte value) const {
  for (std::size_t i = 1; i < pending_.size(); ++i) {
    const Request& later = pending_[i];
    if (later.is_fenced) return false;
    if (later.is_write() && offset >= later.remote_offset &&
        offset - later.remote_offset < later.length &&
        later.data[offset - later.remote_offset] == value) {
      return true;
    }
  }
  return false;
}

bool Flow::may_have_read(const Range& piece, std::uint32_t offset) const {
  const ConstBytes read = memory_.local->memory(piece);
  const ConstBytes expected = memory_.remote->expected({offset, piece.bytes});
  if (std::ranges::equal(read, expected)) return true;
  for (std::uint32_t i = 0; i < piece.bytes; ++i) {
    if (read[i] != expected[i] && !may_have_read(offset + i, read[i])) return false;
  }
  return true;
}

void Flow::check_read(const Request& read) {
  std::uint32_t offset = read.remote_offset;
  for (const Range& piece : read.local.all()) {
    if (!may_have_read(piece, offset)) {
      return oracle_.violated("READ %#llx: one of the %u bytes at %u is wrong", printed(read.wr_id),
                              piece.bytes, offset - read.remote_offset);
    }
    memory_.local->accept(piece);
    offset += piece.bytes;
  }
}

void Flow::check_atomic(const Request& request) {
  const Bytes word = memory_.remote->expected({request.remote_offset, 8});
  const std::uint64_t before = load_word(word);
  const std::uint64_t answer = load_word(memory_.local->memory(request.local.ranges[0]));
  if (answer != before) {
    oracle_.violated("atomic %#llx answers %#llx, and the word was %#llx", printed(request.wr_id),
                     printed(answer), printed(before));
  }
  store_word(word, apply_atomic(request, before));
  memory_.local->accept(request.local.ranges[0]);
}

bool Flow::matches_within(const Request& request) {
  Arena& remote = *memory_.remote;
  if (is_atomic(request.operation)) {
    const Bytes word = remote.expected({request.remote_offset, 8});
    store_word(word, apply_atomic(request, load_word(word)));
    return remote.is_as_expected(memory_.target);
  }
  if (!request.is_write()) return false;
  for (std::uint32_t done = 0; done < request.length; done += path_mtu_) {
    const std::uint32_t bytes = std::min<std::uint32_t>(path_mtu_, request.length - done);
    std::copy_n(request.data.begin() + done, bytes,
                remote.expected({request.remote_offset + done, bytes}).begin());
    if (remote.is_as_expected(memory_.target)) return true;
  }
  return false;
}

bool Flow::matches_some_prefix() {
  if (memory_.remote->is_as_expected(memory_.target)) return true;
  for (const Request& request : uncertain_) {
    if (request.is_never_sent_past()) return false;
    if (matches_within(request)) return true;
  }
  return false;
}

void Flow::settle(bool receiver_kept_all) {
  abandon();
  if (!matches_some_prefix()) {
    oracle_.violated("memory is not what a prefix of %zu unfinished requests makes of it",
                     uncertain_.size());
  }
  for (const Request& request : uncertain_) {
    for (const Range& piece : request.local.all()) memory_.local->accept(piece);
  }
  if (receiver_kept_all && received_ < sent_) {
    oracle_.violated("%llu messages succeeded, %llu were received", printed(sent_),
                     printed(received_));
  }
  uncertain_.clear();
  to_receive_.clear();
}

void Flow::check_target() {
  if (memory_.remote->is_as_expected(memory_.target)) return;
  oracle_.violated("byte %u of a target is wrong",
                   memory_.remote->first_unexpected(memory_.target));
}

}  // namespace uroce::sim
