// SPDX-License-Identifier: BSD-2-Clause
#include "support.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace uroce::kernel {

namespace fs = std::filesystem;

namespace {

std::vector<char*> pointers(const Arguments& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

std::string read_all(int descriptor) {
  std::string text;
  char piece[4096];
  ssize_t bytes;
  while ((bytes = read(descriptor, piece, sizeof piece)) > 0) {
    text.append(piece, static_cast<std::size_t>(bytes));
  }
  return text;
}

}  // namespace

Tree::Tree() {
  std::string name =
      (fs::canonical(fs::temp_directory_path()) / "uroce-kernel-test.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
  write("sys/class/infiniband_verbs/abi_version", "6");
  write("sys/class/infiniband_verbs/uverbs97/ibdev", "uroce97");
  write("sys/class/infiniband_verbs/uverbs97/dev", "1:3");
  write("sys/class/infiniband_verbs/uverbs97/abi_version", "1");
  write("sys/class/infiniband/uroce97/node_type", "1: CA");
  write("sys/class/infiniband/uroce97/node_guid", "0254:00ff:fe12:3456");
  fs::create_symlink("node_type", path_ / "sys/class/infiniband/uroce97/type");
  write("dev/infiniband/uverbs97", "");
}

Tree::~Tree() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void Tree::write(const std::string& file, const std::string& text) const {
  fs::create_directories((path_ / file).parent_path());
  std::ofstream stream(path_ / file);
  if (!text.empty()) stream << text << '\n';
}

Outcome run(const Arguments& arguments, const Arguments& environment) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  Arguments complete = environment;
  complete.push_back(std::string("PATH=") + std::getenv("PATH"));
  pid_t process = 0;
  const int error = posix_spawnp(&process, arguments[0].c_str(), &actions, nullptr,
                                 pointers(arguments).data(), pointers(complete).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Outcome outcome;
  outcome.output = read_all(ends[0]);
  close(ends[0]);
  if (error != 0) return {127, "cannot start " + arguments[0]};
  int status = 0;
  waitpid(process, &status, 0);
  outcome.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (outcome.output.ends_with('\n')) outcome.output.pop_back();
  return outcome;
}

Arguments preloaded(const Tree& tree) {
  Arguments environment = preloaded();
  environment.push_back("UROCE_TREE=" + tree.path().string());
  return environment;
}

Arguments preloaded() { return {std::string("LD_PRELOAD=") + KERNEL_LIBRARY}; }

}  // namespace uroce::kernel
