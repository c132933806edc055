// SPDX-License-Identifier: BSD-2-Clause
// The two ends of a ring: one process writes frames, another reads them where they lie. Neither
// trusts the other's words further than to stay inside the ring. record.h has the layout.
//
//   if (!writer.write(frame)) frame.refused = true;             // full
//   while (reader.next(record) == RingReader::Found::kRecord) use(record);
//   reader.release();                                           // ... and the room is free again
#pragma once

#include <cstdint>

#include "datapath/shm/copy.h"
#include "datapath/shm/record.h"
#include "uroce/packet.h"

namespace uroce::datapath::shm {

class RingWriter {
 public:
  RingWriter() = default;
  // `data_bytes` is a power of two, at least twice the largest record.
  RingWriter(RingControl& control, std::byte* data, std::uint32_t data_bytes, std::uint64_t key)
      : control_(&control), data_(data), mask_(data_bytes - 1), key_(key) {}

  // False: no room; nothing was written.
  [[nodiscard]] bool write(const TxFrame& frame);

  // Asks the other end's line. Equal to `tail`: everything was read.
  std::uint64_t refresh_head() {
    head_ = control_->head.load(std::memory_order_acquire);
    return head_;
  }
  [[nodiscard]] std::uint64_t tail() const { return tail_; }
  [[nodiscard]] bool is_adopted() const {
    return control_->adopted.load(std::memory_order_relaxed) != 0;
  }
  [[nodiscard]] bool is_refused() const {
    return control_->refused.load(std::memory_order_relaxed) != 0;
  }

 private:
  [[nodiscard]] RecordHead& head_at(std::uint64_t position) const;
  [[nodiscard]] bool has_room(std::uint64_t bytes);
  void fill(std::byte* record, const RecordLayout& layout, const TxFrame& frame);
  void publish(std::uint64_t position, RecordSizes sizes) const;

  RingControl* control_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint64_t mask_ = 0;
  std::uint64_t key_ = 0;
  std::uint64_t tail_ = 0;  // where the next record goes
  std::uint64_t head_ = 0;  // as last seen
  Copier copier_;
};

struct Record {
  ConstBytes headers;
  ConstBytes payload;
  const std::byte* addresses = nullptr;  // a RecordAddresses of any alignment, or null
  std::uint16_t packet_count = 1;
};

class RingReader {
 public:
  enum class Found : std::uint8_t { kNothing, kRecord, kNonsense };

  RingReader() = default;
  RingReader(RingControl& control, const std::byte* data, std::uint32_t data_bytes,
             std::uint64_t key)
      : control_(&control), data_(data), mask_(data_bytes - 1), key_(key) {}

  // The record stays where it is until `release`. After nonsense there is never anything again, and
  // the writer is told.
  [[nodiscard]] Found next(Record& record);
  [[nodiscard]] bool has_news() const {
    return head_at(position_).stamp.load(std::memory_order_acquire) ==
               record_stamp(key_, position_) &&
           !refused_;
  }
  void release() { control_->head.store(position_, std::memory_order_release); }

 private:
  [[nodiscard]] const RecordHead& head_at(std::uint64_t position) const;
  [[nodiscard]] bool is_sound(RecordSizes sizes, std::uint64_t room) const;
  [[gnu::cold]] Found refuse();

  RingControl* control_ = nullptr;
  const std::byte* data_ = nullptr;
  std::uint64_t mask_ = 0;
  std::uint64_t key_ = 0;
  std::uint64_t position_ = 0;  // of the next record
  bool refused_ = false;
};

inline const RecordHead& RingReader::head_at(std::uint64_t position) const {
  const void* at = data_ + (position & mask_);
  return *static_cast<const RecordHead*>(at);
}

}  // namespace uroce::datapath::shm
