// SPDX-License-Identifier: BSD-2-Clause
#include <exception>
#include <iostream>

#include "cli/arguments.h"
#include "cli/devices.h"
#include "cli/doctor.h"
#include "cli/run.h"

namespace uroce::cli {
namespace {

int dispatch(const Arguments& arguments) {
  switch (arguments.command) {
    case Command::kRun:
      return run_program(arguments);
    case Command::kDevices:
      return list_devices(arguments);
    case Command::kDoctor:
      return examine_host(arguments);
  }
  return 1;
}

// What was printed may not have been written: a full disk, a closed pipe.
int finish(int status) {
  if (std::cout.flush()) return status;
  std::cerr << "uroce: standard output cannot be written\n";
  return status != 0 ? status : 1;
}

}  // namespace
}  // namespace uroce::cli

int main(int argc, char** argv) {
  try {
    const auto parsed = uroce::cli::parse_arguments({argv + 1, argv + argc});
    if (const int* status = std::get_if<int>(&parsed)) return uroce::cli::finish(*status);
    return uroce::cli::finish(uroce::cli::dispatch(std::get<uroce::cli::Arguments>(parsed)));
  } catch (const std::exception& error) {
    // Out of memory, or a broken locale: nothing that a message of our own would explain better.
    std::cerr << "uroce: " << error.what() << "\n";
    return 1;
  }
}
