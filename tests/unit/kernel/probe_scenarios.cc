// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "probe.h"

extern "C" bool early_library_found_tree();

namespace probe {

namespace {

constexpr __u32 kUntouched = 0xabcdabcd;

// What ibv_create_comp_channel of libibverbs 44 writes.
struct Command {
  ib_uverbs_cmd_hdr header{IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, 4, 1};
  __u64 response = 0;
};

// The descriptor in the answer, or kUntouched.
__u32 create_comp_channel(int node, Command command = {}) {
  ib_uverbs_create_comp_channel_resp answer{.fd = kUntouched};
  command.response = reinterpret_cast<__u64>(&answer);
  if (check(write(node, &command, sizeof command)) != sizeof command) throw Failure{EIO};
  return answer.fd;
}

bool is_readable(int descriptor) {
  pollfd entry{.fd = descriptor, .events = POLLIN, .revents = 0};
  return poll(&entry, 1, 0) == 1 && (entry.revents & POLLIN) != 0;
}

// An event written into it comes out again, 8 bytes, and the flags are the kernel's.
std::string describe_channel(__u32 answer) {
  if (answer == kUntouched) return "no answer";
  const int channel = static_cast<int>(answer);
  const __u64 event = 0x1122334455667788;
  __u64 received = 0;
  if ((fcntl(channel, F_GETFD) & FD_CLOEXEC) == 0) return "inherited by exec";
  if (is_readable(channel)) return "readable when empty";
  check(write(channel, &event, sizeof event));
  if (!is_readable(channel)) return "not readable";
  if (read(channel, &received, sizeof received) != sizeof event || received != event) return "lost";
  check(fcntl(channel, F_SETFL, O_NONBLOCK));
  if (read(channel, &received, sizeof received) != -1 || errno != EAGAIN) return "blocks";
  check(close(channel));
  return "channel";
}

// What ibv_import_device of libibverbs 44 asks for. The descriptor, or kUntouched and errno.
struct AsyncEventAlloc {
  alignas(ib_uverbs_ioctl_hdr)
      std::array<std::byte, sizeof(ib_uverbs_ioctl_hdr) + sizeof(ib_uverbs_attr)> bytes{};

  ib_uverbs_ioctl_hdr& header() { return *reinterpret_cast<ib_uverbs_ioctl_hdr*>(bytes.data()); }
  ib_uverbs_attr& attribute() { return header().attrs[0]; }
};
AsyncEventAlloc async_event_alloc() {
  AsyncEventAlloc request;
  request.header().length = sizeof request;
  request.header().object_id = UVERBS_OBJECT_ASYNC_EVENT;
  request.header().method_id = UVERBS_METHOD_ASYNC_EVENT_ALLOC;
  request.header().num_attrs = 1;
  request.attribute().attr_id = UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE;
  request.attribute().flags = UVERBS_ATTR_F_MANDATORY;
  request.attribute().data_s64 = kUntouched;
  return request;
}
__u32 alloc_async_event(int node, AsyncEventAlloc request = async_event_alloc()) {
  if (ioctl(node, RDMA_VERBS_IOCTL, &request) != 0) return kUntouched;
  return static_cast<__u32>(request.attribute().data_s64);
}

int open_node(const std::string& path) { return check(open(path.c_str(), O_RDWR | O_CLOEXEC)); }

// Requests that are nearly the one, or the one elsewhere.
std::string ioctls_of_others(const std::string& path) {
  const int node = open_node(path);
  AsyncEventAlloc request = async_event_alloc();
  request.header().method_id = UVERBS_METHOD_ASYNC_EVENT_ALLOC + 1;
  if (alloc_async_event(node, request) != kUntouched || errno != ENOTTY) return "another method";
  request = async_event_alloc();
  request.header().object_id = UVERBS_OBJECT_PD;
  if (alloc_async_event(node, request) != kUntouched || errno != ENOTTY) return "another object";
  if (ioctl(node, RDMA_VERBS_IOCTL, nullptr) != -1 || errno != ENOTTY) return "nothing";
  int ends[2];
  check(pipe(ends));
  if (alloc_async_event(ends[0]) != kUntouched || errno != ENOTTY) return "on a pipe";
  int bytes = -1;
  check(write(ends[1], &bytes, sizeof bytes));
  if (ioctl(ends[0], FIONREAD, &bytes) != 0 || bytes != sizeof bytes) return "FIONREAD";
  return "untouched";
}

template <typename Body>
std::string in_child(Body body) {
  const pid_t child = check(fork());
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "channel" : "failed in the child";
}

void send_descriptor(int socket, int descriptor) {
  char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
  iovec piece{&byte, 1};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  check(sendmsg(socket, &message, 0));
}

int receive_descriptor(int socket) {
  char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
  iovec piece{&byte, 1};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  check(recvmsg(socket, &message, 0));
  int descriptor = -1;
  memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
  return descriptor;
}

// The receiver is forked before the sender opens the node; like libibverbs it has only listed it.
std::string passed_to_another_process(const std::string& path) {
  int sockets[2];
  check(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
  const pid_t child = check(fork());
  if (child == 0) {
    struct stat status {};
    check(stat(path.c_str(), &status));
    const bool works =
        describe_channel(create_comp_channel(receive_descriptor(sockets[1]))) == "channel";
    _exit(works ? 0 : 1);
  }
  send_descriptor(sockets[0], open_node(path));
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? "channel" : "failed in the child";
}

// Writes that are nearly the command, or the command elsewhere, reach the descriptor unchanged.
std::string look_alikes(const std::string& path) {
  const int early_null = open("/dev/null", O_WRONLY);
  if (create_comp_channel(early_null) != kUntouched) return "answered before a node was seen";
  const int node = open_node(path);
  Command command;
  command.header.out_words = 2;
  if (create_comp_channel(node, command) != kUntouched) return "answered other lengths";
  command = {};
  command.header.command = IB_USER_VERBS_CMD_CREATE_CQ;
  if (create_comp_channel(node, command) != kUntouched) return "answered another command";
  int ends[2];
  check(pipe(ends));
  if (create_comp_channel(ends[1]) != kUntouched) return "answered on a pipe";
  if (read(ends[0], &command, sizeof command) != sizeof command) return "swallowed";
  for (size_t bytes = 0; bytes < 64; ++bytes) {
    const char zeros[64] = {};
    if (write(node, zeros, bytes) != static_cast<ssize_t>(bytes)) return "short write";
  }
  return "untouched";
}

std::string bad_addresses(const std::string& path) {
  open_node(path);
  int ends[2];
  check(pipe(ends));
  void* volatile nowhere = reinterpret_cast<void*>(8);  // volatile: or the compiler complains
  const char* volatile no_path = nullptr;
  if (write(ends[1], nowhere, sizeof(Command)) != -1 || errno != EFAULT) return "no EFAULT";
  if (write(-1, nowhere, sizeof(Command)) != -1 || errno != EBADF) return "no EBADF";
  if (open(no_path, O_RDONLY) != -1 || errno != EFAULT) return "no EFAULT from open";
  return "errors as without";
}

std::string no_descriptors_left(const std::string& path) {
  const int node = open_node(path);
  const rlimit none{static_cast<rlim_t>(node) + 1, static_cast<rlim_t>(node) + 1};
  check(setrlimit(RLIMIT_NOFILE, &none));
  create_comp_channel(node);
  return "no error";
}

std::string errno_kept(const std::string& path) {
  errno = E2BIG;
  const int node = open_node(path);
  struct stat status {};
  stat(path.c_str(), &status);
  close(static_cast<int>(create_comp_channel(node)));
  return errno == E2BIG ? "kept" : "changed";
}

std::string netlink(const std::string&) {
  check(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  check(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA));
  return "open";
}

// Signals arrive all the time while the program itself allocates and opens.
std::string signal_path;
volatile sig_atomic_t signal_count = 0;
volatile sig_atomic_t signal_failures = 0;

void open_in_handler(int) {
  const int saved_errno = errno;
  const int node = open(signal_path.c_str(), O_RDWR | O_CLOEXEC);
  ib_uverbs_create_comp_channel_resp answer{.fd = kUntouched};
  Command command;
  command.response = reinterpret_cast<__u64>(&answer);
  if (write(node, &command, sizeof command) != sizeof command || answer.fd == kUntouched) {
    signal_failures = signal_failures + 1;
  }
  close(static_cast<int>(answer.fd));
  close(node);
  signal_count = signal_count + 1;
  errno = saved_errno;
}

std::string signal_handler(const std::string& path) {
  signal_path = path;
  struct sigaction action {};
  action.sa_handler = open_in_handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &often, nullptr);
  while (signal_count < 500) {
    free(realpath(path.c_str(), nullptr));
    FILE* stream = fopen(path.c_str(), "w");
    if (stream != nullptr) fclose(stream);
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  return signal_failures == 0 ? "works" : "failed";
}

std::string vforked(const std::string& path) {
  const pid_t child = vfork();
  if (child == 0) _exit(open(path.c_str(), O_RDWR) >= 0 ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? "works" : "failed";
}

// write is a cancellation point: the unwinder has to get through the library's frame.
std::string cancelled(const std::string&) {
  static int ends[2];
  check(pipe(ends));
  check(fcntl(ends[1], F_SETPIPE_SZ, 4096));
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        static const char page[4096] = {};
        for (;;) write(ends[1], page, sizeof page);
      },
      nullptr);
  while (!is_readable(ends[0])) {
  }
  pthread_cancel(thread);
  void* result = nullptr;
  pthread_join(thread, &result);
  return result == PTHREAD_CANCELED ? "cancelled" : "returned";
}

std::string environment_changed(const std::string& path) {
  clearenv();
  return describe_and_close(open(path.c_str(), O_RDWR));
}

}  // namespace

const Actions& scenarios() {
  static const Actions all = {
      {"comp-channel",
       [](auto& path) { return describe_channel(create_comp_channel(open_node(path))); }},
      {"comp-channel of a duplicate",
       [](auto& path) {
         const int node = open_node(path);
         const int duplicate = check(dup2(node, 900));
         close(node);
         return describe_channel(create_comp_channel(duplicate));
       }},
      {"comp-channel in a forked child",
       [](auto& path) {
         const int node = open_node(path);
         return in_child(
             [&] { return describe_channel(create_comp_channel(node)) == "channel" ? 0 : 1; });
       }},
      {"comp-channel of a passed descriptor", passed_to_another_process},
      {"look-alikes", look_alikes},
      {"bad addresses", bad_addresses},
      {"no descriptors left", no_descriptors_left},
      {"errno", errno_kept},
      {"ioctl",
       [](auto& path) {
         ib_uverbs_ioctl_hdr header{};
         check(ioctl(open_node(path), RDMA_VERBS_IOCTL, &header));
         return std::string("done");
       }},
      {"async events",
       [](auto& path) { return describe_channel(alloc_async_event(open_node(path))); }},
      {"async events of a duplicate",
       [](auto& path) { return describe_channel(alloc_async_event(check(dup(open_node(path))))); }},
      {"ioctls of others", ioctls_of_others},
      {"netlink", netlink},
      {"signal handler", signal_handler},
      {"vfork", vforked},
      {"cancel", cancelled},
      {"environment", environment_changed},
      {"early",
       [](auto&) { return std::string(early_library_found_tree() ? "found" : "missing"); }},
  };
  return all;
}

}  // namespace probe
