// SPDX-License-Identifier: BSD-2-Clause
#include "sim/request_maker.h"

#include <algorithm>
#include <array>

#include "sim/site.h"

namespace uroce::sim {

using namespace transport;

namespace {

// In one group of 256 keys, of which the arenas use the first ones only.
inline constexpr std::uint32_t kNoSuchKey = 0xdead'be00;
inline constexpr std::uint32_t kMillion = Prng::kMillion;

}  // namespace

SendOperation RequestMaker::draw_operation() {
  std::uint32_t sum = 0;
  for (const std::uint32_t weight : scenario_.weights) sum += weight;
  std::uint32_t at = prng_.below(sum);
  std::size_t operation = 0;
  while (at >= scenario_.weights[operation]) at -= scenario_.weights[operation++];
  return static_cast<SendOperation>(operation);
}

std::uint32_t RequestMaker::draw_length(std::uint16_t path_mtu) {
  const std::uint32_t most = scenario_.message_bytes;
  switch (prng_.below(5)) {
    case 0:
      return prng_.below(4) == 0 ? 0 : std::min(prng_.below(64), most);
    case 1:
    case 2: {  // at the border of a packet
      const std::uint32_t packets = prng_.between(1, std::max<std::uint32_t>(1, most / path_mtu));
      return std::min(packets * path_mtu + prng_.below(3) - 1, most);
    }
    default:
      return prng_.below(most + 1);
  }
}

void RequestMaker::draw_source(Request& request) {
  sent_from_ = {};
  request.data.resize(request.length);
  const std::uint32_t count = prng_.between(1, kSgesMax);
  std::uint32_t done = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t left = request.length - done;
    const Range piece{prng_.below(Site::kSourceBytes - left),
                      i + 1 == count ? left : prng_.below(left + 1)};
    sent_from_.add(piece);
    const Bytes from = source_.expected(piece);
    std::copy(from.begin(), from.end(), request.data.begin() + done);
    done += piece.bytes;
  }
}

void RequestMaker::draw_answer(Request& request) {
  std::uint32_t at = layout_.answer_slot(made_ % scenario_.capacity);
  std::uint32_t left = request.length;
  if (is_atomic(request.operation)) return request.local.add({at, left});
  const std::uint32_t count = prng_.between(1, kSgesMax);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t bytes = i + 1 == count ? left : prng_.below(left + 1);
    at += prng_.below(EndLayout::kEdgeBytes / kSgesMax);
    request.local.add({at, bytes});
    at += bytes;
    left -= bytes;
  }
}

// Small numbers, so that a comparison hits now and then.
void RequestMaker::draw_words(Request& request) {
  request.length = 8;
  // The first word is never just overwritten: what is wrong with it has to show.
  const std::uint32_t first = request.operation == SendOperation::kAtomicWrite ? 1 : 0;
  request.remote_offset = EndLayout::kEdgeBytes + 8 * prng_.between(first, EndLayout::kWords - 1);
  request.compare_add = prng_.below(3);
  request.swap = prng_.below(3);
}

Poison RequestMaker::draw_poison(const Request& request) {
  if (is_word(request.operation)) {
    return prng_.chance(kMillion / 2) ? Poison::kRemoteKey : Poison::kUnaligned;
  }
  if (request.has_invalidate() && prng_.chance(kMillion / 2)) return Poison::kRemoteKey;
  if (request.is_send()) {
    return request.length == 0 || prng_.chance(kMillion / 2) ? Poison::kTooLong : Poison::kLocalKey;
  }
  if (request.length == 0) return Poison::kNone;
  constexpr std::array kKinds = {Poison::kRemoteKey, Poison::kRemoteBounds, Poison::kLocalKey};
  return kKinds[prng_.below(kKinds.size())];
}

void RequestMaker::poison(Request& request, Poison poison) {
  request.poison = poison;
  if (poison == Poison::kTooLong) request.length = scenario_.message_bytes + prng_.between(1, 5000);
  if (poison == Poison::kUnaligned) request.remote_offset += prng_.between(1, 7);
  if (poison == Poison::kRemoteBounds) {
    request.remote_offset = layout_.open_target().offset + layout_.open_target().bytes -
                            request.length + prng_.between(1, request.length);
  }
}

// Nothing of it leaves the end.
void RequestMaker::draw_local(Request& request, bool may_be_wrong) {
  if (!may_be_wrong || !prng_.chance(scenario_.poison)) return;
  request.poison =
      request.operation == SendOperation::kBindWindow ? Poison::kWindow : Poison::kWindowKey;
}

void RequestMaker::draw_remote(Request& request, std::uint16_t path_mtu) {
  if (is_word(request.operation)) return draw_words(request);
  request.length = draw_length(path_mtu);
  const std::uint32_t first = EndLayout::kEdgeBytes + EndLayout::kWords * 8;
  const std::uint32_t end = layout_.open_target().offset + layout_.open_target().bytes;
  request.remote_offset = prng_.between(first, end - request.length);
}

void RequestMaker::draw_data(Request& request) {
  if (request.fetches()) {
    draw_answer(request);
  } else {
    draw_source(request);
  }
  is_inline_ = request.length <= 64 && request.poison != Poison::kLocalKey && !request.fetches() &&
               prng_.chance(scenario_.use_inline);
}

Request RequestMaker::make(std::uint16_t path_mtu, bool must_signal, bool signal_all,
                           bool may_be_wrong) {
  Request request;
  request.operation = draw_operation();
  request.wr_id = std::uint64_t{end_id_} << 32 | made_;
  request.immediate = static_cast<std::uint32_t>(prng_.next());
  request.is_fenced = prng_.chance(scenario_.fence);
  ++since_signal_;
  const bool signals =
      must_signal || since_signal_ * 2 >= scenario_.capacity || prng_.chance(scenario_.signal);
  request.is_signaled = signals || signal_all;
  if (signals) since_signal_ = 0;
  ++made_;
  if (is_local(request.operation)) {
    draw_local(request, may_be_wrong);
    return request;
  }
  draw_remote(request, path_mtu);
  if (request.has_invalidate()) request.immediate = free_window(peer_id_).value;
  if (may_be_wrong && prng_.chance(scenario_.poison)) poison(request, draw_poison(request));
  draw_data(request);
  return request;
}

// Each binding is another variant, and every fourth binds to nothing.
void RequestMaker::post_local(QueuePair& qp, const Request& request, std::uint8_t flags) {
  SendRequest posted{.operation = request.operation, .wr_id = request.wr_id, .flags = flags};
  if (request.operation == SendOperation::kLocalInvalidate) {
    const bool is_wrong = request.poison == Poison::kWindowKey;
    posted.rkey = is_wrong ? RKey{kNoSuchKey} : free_window(end_id_);
    return qp.post_send(posted, {});
  }
  const bool is_wrong = request.poison == Poison::kWindow;
  posted.rkey = {bound_window(end_id_).value | (made_ & 0xff)};
  posted.part = {.region = {is_wrong ? kNoSuchKey : local_.key()},
                 .address = local_.address(0),
                 .length = made_ % 4 == 0 && !is_wrong ? 0 : local_.bytes(),
                 .access = memory::Access::kRemoteWrite};
  qp.post_send(posted, {});
}

void RequestMaker::post(QueuePair& qp, const Request& request, const Arena& peer_target,
                        std::optional<Qpn> srq) {
  std::uint32_t key = request.has_invalidate() ? request.immediate : peer_target.key();
  if (request.poison == Poison::kRemoteKey) key = kNoSuchKey;
  std::uint8_t flags = 0;
  if (request.is_signaled && !qp.options().signal_all) flags |= send_flag::kSignaled;
  if (request.is_fenced) flags |= send_flag::kFence;
  if (is_local(request.operation)) return post_local(qp, request, flags);
  const SendRequest posted{.operation = request.operation,
                           .wr_id = request.wr_id,
                           .remote_address = peer_target.address(request.remote_offset),
                           .rkey = {key},
                           .immediate = request.immediate,
                           .compare_add = request.compare_add,
                           .swap = request.swap,
                           .flags = flags,
                           .srq = srq};
  if (is_inline_) return qp.post_inline(posted, request.data);
  const bool is_answered = request.fetches();
  const Pieces& pieces = is_answered ? request.local : sent_from_;
  std::array<memory::Sge, kSgesMax> sges;
  for (std::uint32_t i = 0; i < pieces.count; ++i) {
    sges[i] = (is_answered ? local_ : source_).sge(pieces.ranges[i]);
    if (request.poison == Poison::kLocalKey) sges[i].lkey = {kNoSuchKey};
  }
  qp.post_send(posted, {sges.data(), pieces.count});
}

}  // namespace uroce::sim
