// SPDX-License-Identifier: BSD-2-Clause
// Where an engine counts so that every program of the user can read it: its row of a file that all
// engines of one port share (host/port_counters.h says which, and who reads it).
//
// Nobody adds up what an engine has counted when it ends: the next one that gets the row counts on
// from there. So the sum over all rows never falls, nothing is lost with a process that is killed,
// and there is nothing to clean up. The number of the row is the engine's slot in the directory,
// which one engine has at a time, and of two devices of a process each has its own.
//
//   auto row = CounterRow::open(folder + "/" + file, directory.own_slot().index);
//   if (row) ++(*row)->counters().transport.timeouts;
//
// Wrong: giving up the slot before the row.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "uroce/port_counters.h"

namespace uroce::engine {

class CounterRow {
 public:
  // The file is made if need be. All bytes of the row are allocated: a full disk is an Error here
  // and not a SIGBUS later.
  static Result<std::unique_ptr<CounterRow>> open(const std::string& file, std::uint32_t row);
  ~CounterRow();
  CounterRow(const CounterRow&) = delete;
  CounterRow& operator=(const CounterRow&) = delete;

  [[nodiscard]] PortCounters& counters() { return *counters_; }
  // What others had counted here when it was opened.
  [[nodiscard]] const PortCounters& before() const { return before_; }

  // In a forked child: what it counts from now on goes nowhere.
  void abandon_in_child();

 private:
  CounterRow(void* page, std::size_t offset);

  void* page_;
  PortCounters* counters_;
  PortCounters before_;
};

// Word by word.
[[nodiscard]] PortCounters difference(const PortCounters& now, const PortCounters& before);

}  // namespace uroce::engine
