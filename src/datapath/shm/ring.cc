// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/shm/ring.h"

#include <algorithm>
#include <cstring>

namespace uroce::datapath::shm {

RecordHead& RingWriter::head_at(std::uint64_t position) const {
  void* at = data_ + (position & mask_);
  return *static_cast<RecordHead*>(at);
}

bool RingWriter::has_room(std::uint64_t bytes) {
  if (tail_ + bytes - head_ <= mask_ + 1) return true;
  return tail_ + bytes - refresh_head() <= mask_ + 1;
}

bool RingWriter::write(const TxFrame& frame) {
  const RecordSizes sizes{
      .payload_bytes = frame.payload_bytes,
      .packet_count = frame.packet_count,
      .header_bytes = frame.header_bytes,
      .flags = frame.carries_addresses ? kCarriesAddresses : std::uint8_t{0},
  };
  const RecordLayout layout = record_layout(sizes);
  const std::uint64_t before_end = mask_ + 1 - (tail_ & mask_);
  const std::uint64_t skipped = layout.total <= before_end ? 0 : before_end;
  if (!has_room(skipped + layout.total)) return false;
  if (skipped != 0) publish(tail_, {.flags = kSkip});
  tail_ += skipped;
  fill(data_ + (tail_ & mask_), layout, frame);
  publish(tail_, sizes);
  tail_ += layout.total;
  return true;
}

void RingWriter::fill(std::byte* record, const RecordLayout& layout, const TxFrame& frame) {
  // Whole lines of fixed size, no matter how much of them is used: no call, no loop.
  constexpr std::size_t kInFirstLine = kLineBytes - sizeof(RecordHead);
  std::memcpy(record + sizeof(RecordHead), frame.header.data(), kInFirstLine);
  if (frame.header_bytes > kInFirstLine) {
    std::memcpy(record + kLineBytes, frame.header.data() + kInFirstLine,
                kMaxHeaderBytes - kInFirstLine);
  }
  if (frame.carries_addresses) {
    const RecordAddresses addresses{.source = frame.path->source,
                                    .destination = frame.path->destination,
                                    .flow_label = frame.path->flow_label,
                                    .traffic_class = frame.path->traffic_class,
                                    .hop_limit = frame.path->hop_limit};
    std::memcpy(record + layout.addresses, &addresses, sizeof addresses);
  }
  std::byte* to = record + layout.payload;
  std::uint32_t left = frame.payload_bytes;
  for (const ConstBytes piece : frame.payload()) {
    const auto bytes = static_cast<std::uint32_t>(std::min<std::size_t>(piece.size(), left));
    copier_.copy(to, piece.data(), bytes);
    to += bytes;
    left -= bytes;
  }
}

void RingWriter::publish(std::uint64_t position, RecordSizes sizes) const {
  RecordHead& head = head_at(position);
  head.sizes.store(std::bit_cast<std::uint64_t>(sizes), std::memory_order_relaxed);
  head.stamp.store(record_stamp(key_, position), std::memory_order_release);
}

RingReader::Found RingReader::next(Record& record) {
  if (!has_news()) return Found::kNothing;
  auto sizes = std::bit_cast<RecordSizes>(head_at(position_).sizes.load(std::memory_order_relaxed));
  if ((sizes.flags & kSkip) != 0) {
    if ((position_ & mask_) == 0) return refuse();
    position_ = (position_ | mask_) + 1;
    if (!has_news()) return Found::kNothing;
    sizes = std::bit_cast<RecordSizes>(head_at(position_).sizes.load(std::memory_order_relaxed));
  }
  const std::uint64_t offset = position_ & mask_;
  if (!is_sound(sizes, mask_ + 1 - offset)) return refuse();
  const RecordLayout layout = record_layout(sizes);
  const std::byte* at = data_ + offset;
  record.headers = {at + sizeof(RecordHead), sizes.header_bytes};
  record.payload = {at + layout.payload, sizes.payload_bytes};
  record.addresses = (sizes.flags & kCarriesAddresses) != 0 ? at + layout.addresses : nullptr;
  record.packet_count = sizes.packet_count;
  position_ += layout.total;
  return Found::kRecord;
}

// `sizes` is our own copy: whatever the writer does to its words now, we stay inside the ring.
bool RingReader::is_sound(RecordSizes sizes, std::uint64_t room) const {
  if (sizes.flags > kCarriesAddresses || sizes.packet_count == 0) return false;
  if (sizes.header_bytes < kMinHeaderBytes || sizes.header_bytes > kMaxHeaderBytes) return false;
  return sizes.payload_bytes <= mask_ && record_layout(sizes).total <= room;
}

RingReader::Found RingReader::refuse() {
  refused_ = true;
  control_->refused.store(1, std::memory_order_relaxed);
  return Found::kNonsense;
}

}  // namespace uroce::datapath::shm
