// SPDX-License-Identifier: BSD-2-Clause
// The file of a capture: which one, and how bytes get into it.
//
// A file has one writer at a time, held by a lock that ends with the process. `uroce run` empties
// FILE before it starts the program, unless somebody writes to it; who then opens a device appends
// a section. Where FILE is in use by another, a server and its client for one, the process id is
// put before the extension (out.pcapng, out.4711.pcapng), and for a second device its name as well.
// So no two programs spoil each other's file, and a shell script's commands all end up in one.
//
// Blocks are collected in a buffer and written at the end of each turn, or when it is full: what an
// application has seen is in the file, however it ends. That is a write of 256 KiB at most into the
// page cache, under the shard's lock; another thread to do it would disturb what is captured more.
//
//   auto file = CaptureFile::open("out.pcapng", "uroce0");   // one line: what, and why
//   const std::uint32_t shm = (*file)->add_interface("uroce0-shm");
//   if (std::byte* block = (*file)->reserve(bytes); block != nullptr) fill(block);
//   (*file)->flush();
//
// When the disk is full, one line says so, the file ends with its last whole packet, and nothing
// else happens.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "capture/recorder.h"
#include "posix/descriptor.h"

namespace uroce::datapath::tap {

class CaptureFile final : public capture::Blocks {
 public:
  // `%p` in `pattern` stands for the process id.
  [[nodiscard]] static Result<std::shared_ptr<CaptureFile>> open(const std::string& pattern,
                                                                 const std::string& device);
  ~CaptureFile() { flush(); }
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  // The file that was asked for is in use.
  [[nodiscard]] bool is_second_choice() const { return is_second_choice_; }
  // Its number in the file.
  std::uint32_t add_interface(std::string_view name);
  // Room for so many bytes (kReserveMax or less) of whole blocks, which is then taken for filled;
  // null when nothing more is written.
  [[nodiscard]] std::byte* reserve(std::size_t bytes) override;
  void flush();
  // In a forked child: what is in the buffer is the parent's to write.
  void abandon_in_child();

  static constexpr std::size_t kReserveMax = 64u << 10;

 private:
  CaptureFile(posix::Descriptor descriptor, std::string path, bool is_second_choice);
  void give_up(int error, std::size_t written);

  static constexpr std::size_t kBufferBytes = 256u << 10;

  posix::Descriptor descriptor_;
  std::string path_;
  bool is_second_choice_;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t used_ = 0;
  std::uint32_t interfaces_ = 0;
};

// What `uroce run` does about FILE: sees that it can be written and empties it, unless it is in
// use. Nothing, or the trouble in one line.
[[nodiscard]] std::string prepare_capture(const std::string& pattern);

}  // namespace uroce::datapath::tap
