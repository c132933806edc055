// SPDX-License-Identifier: BSD-2-Clause
// The responder as a state machine: a peer that requests anything, an application that posts
// receives late, modifies and deregisters meanwhile. (fuzz/machine.h says what must hold.)
#include "fuzz/machine.h"

namespace uroce::fuzz {
namespace {

void execute(Machine& machine, Commands& commands) {
  switch (commands.below(16)) {
    case 0:
      return machine.raw(commands);
    case 1:
    case 2:
      return machine.post_receive(commands);
    case 3:
      return machine.modify(commands);
    case 4:
      return machine.change_regions(commands);
    case 5:
      return machine.pass_time(commands);
    case 6:
      return machine.poll(commands.byte());
    case 7:
      return machine.transmit(true);
    case 8:
    case 9:
      return machine.transmit(false);
    case 10:
      return machine.post_send(commands);
    default:
      return machine.request(commands);
  }
}

}  // namespace
}  // namespace uroce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace uroce::fuzz;
  Commands commands(data, bytes);
  Machine machine(commands);
  while (!commands.are_over()) {
    execute(machine, commands);
    machine.check_all();
  }
  machine.finish();
  return 0;
}
