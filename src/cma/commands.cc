// SPDX-License-Identifier: BSD-2-Clause
// What librdmacm writes to /dev/infiniband/rdma_cm (rdma/rdma_user_cm.h, ABI 3 and 4): one function
// a command. Answers go through the pointer in the command, as the kernel's do, and are cut to
// what the program has room for.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "cma/agent.h"

namespace uroce::cma {
namespace {

// What a command needs: the file it came through, its bytes, and how long an answer may be.
struct Call {
  Agent& agent;
  EventFile& file;
  int descriptor;  // the file's, of the program
  std::span<const std::byte> body;
  std::size_t answer_bytes;

  // Programs of another ABI may have shorter structs; what is missing is 0.
  template <typename Command>
  [[nodiscard]] Command as() const {
    Command command{};
    std::memcpy(static_cast<void*>(&command), body.data(), std::min(body.size(), sizeof command));
    return command;
  }
  template <typename Answer>
  int answer(std::uint64_t to, const Answer& answer) const {
    return answer_with(to, std::as_bytes(std::span(&answer, 1)));
  }
  int answer_with(std::uint64_t to, std::span<const std::byte> bytes) const {
    if (to == 0) return EFAULT;
    std::memcpy(reinterpret_cast<void*>(to), bytes.data(), std::min(bytes.size(), answer_bytes));
    return 0;
  }
  [[nodiscard]] Id* id(std::uint32_t number) const { return agent.find_id(&file, number); }
};

std::span<const std::byte> bytes_of(const std::uint8_t* data, std::size_t bytes) {
  return std::as_bytes(std::span(data, bytes));
}

// The kernel goes by the port space; only InfiniBand's own leaves the choice.
std::optional<std::uint8_t> qp_type_of(const rdma_ucm_create_id& command) {
  switch (command.ps) {
    case RDMA_PS_TCP:
      return static_cast<std::uint8_t>(IBV_QPT_RC);
    case RDMA_PS_UDP:
    case RDMA_PS_IPOIB:
      return static_cast<std::uint8_t>(IBV_QPT_UD);
    case RDMA_PS_IB:
      return command.qp_type;
    default:
      return std::nullopt;
  }
}

int create_id(const Call& call) {
  const auto command = call.as<rdma_ucm_create_id>();
  const auto qp_type = qp_type_of(command);
  if (!qp_type) return EINVAL;
  if (command.response == 0) return EFAULT;
  const Id* const id = call.agent.create_id(call.file, command.uid, command.ps, *qp_type);
  if (id == nullptr) return ENOMEM;
  return call.answer(command.response, rdma_ucm_create_id_resp{id->number});
}

int destroy_id(const Call& call) {
  const auto command = call.as<rdma_ucm_destroy_id>();
  Id* const id = call.id(command.id);
  if (id == nullptr) return EINVAL;
  const std::uint32_t reported = call.agent.destroy_id(*id);
  call.file.take_token_back(call.descriptor);
  return call.answer(command.response, rdma_ucm_destroy_id_resp{reported});
}

int bind_ip(const Call& call) {
  const auto command = call.as<rdma_ucm_bind_ip>();
  Id* const id = call.id(command.id);
  if (id == nullptr) return EINVAL;
  const auto address = to_address(&command.addr, sizeof command.addr);
  return address ? call.agent.bind(*id, *address) : EINVAL;
}

int bind(const Call& call) {
  const auto command = call.as<rdma_ucm_bind>();
  Id* const id = call.id(command.id);
  if (id == nullptr) return EINVAL;
  const std::size_t bytes = std::min<std::size_t>(command.addr_size, sizeof command.addr);
  // librdmacm asks whether there is AF_IB by binding to nothing of it.
  if (const auto infiniband = to_infiniband_address(&command.addr, bytes)) {
    return call.agent.bind_infiniband(*id, *infiniband);
  }
  const auto address = to_address(&command.addr, bytes);
  return address ? call.agent.bind(*id, *address) : EINVAL;
}

int resolve(const Call& call, std::uint32_t number, std::uint32_t timeout_ms,
            const std::optional<Address>& source, const std::optional<Address>& destination) {
  Id* const id = call.id(number);
  if (id == nullptr) return EINVAL;
  if (!destination || (source && source->is_ipv4 != destination->is_ipv4)) return EINVAL;
  return call.agent.resolve_address(*id, source ? &*source : nullptr, *destination,
                                    milliseconds(timeout_ms));
}

int resolve_ip(const Call& call) {
  const auto command = call.as<rdma_ucm_resolve_ip>();
  return resolve(call, command.id, command.timeout_ms,
                 to_address(&command.src_addr, sizeof command.src_addr),
                 to_address(&command.dst_addr, sizeof command.dst_addr));
}

// A source is optional.
int resolve_infiniband(const Call& call, const rdma_ucm_resolve_addr& command,
                       const InfinibandAddress& destination) {
  Id* const id = call.id(command.id);
  if (id == nullptr) return EINVAL;
  const std::size_t bytes = std::min<std::size_t>(command.src_size, sizeof command.src_addr);
  const auto source = to_infiniband_address(&command.src_addr, bytes);
  if (bytes != 0 && !source) return EINVAL;
  return call.agent.resolve_infiniband(*id, source.value_or(InfinibandAddress{}), destination);
}

int resolve_addr(const Call& call) {
  const auto command = call.as<rdma_ucm_resolve_addr>();
  const std::size_t destination_bytes =
      std::min<std::size_t>(command.dst_size, sizeof command.dst_addr);
  if (const auto infiniband = to_infiniband_address(&command.dst_addr, destination_bytes)) {
    return resolve_infiniband(call, command, *infiniband);
  }
  const auto read = [](const auto& storage, std::size_t bytes) {
    return to_address(&storage, std::min(bytes, sizeof storage));
  };
  return resolve(call, command.id, command.timeout_ms, read(command.src_addr, command.src_size),
                 read(command.dst_addr, command.dst_size));
}

int resolve_route(const Call& call) {
  Id* const id = call.id(call.as<rdma_ucm_resolve_route>().id);
  return id == nullptr ? EINVAL : call.agent.resolve_route(*id);
}

int query_route(const Call& call) {
  const auto command = call.as<rdma_ucm_query>();
  const Id* const id = call.id(command.id);
  if (id == nullptr) return EINVAL;
  rdma_ucm_query_route_resp answer;
  call.agent.query_route(*id, answer);
  return call.answer(command.response, answer);
}

int query_path(const Call& call, const rdma_ucm_query& command, const Id& id) {
  // As rdma_ucm_query_path_resp, which ends in an array without a length.
  struct {
    std::uint32_t num_paths = 0;
    std::uint32_t reserved = 0;
    ib_path_rec_data path{};
  } answer;
  static_assert(sizeof answer == sizeof(rdma_ucm_query_path_resp) + sizeof(ib_path_rec_data));
  if (const auto path = call.agent.query_path(id)) {
    answer.num_paths = 1;
    answer.path = *path;
  }
  return call.answer(command.response, answer);
}

int query(const Call& call) {
  const auto command = call.as<rdma_ucm_query>();
  const Id* const id = call.id(command.id);
  if (id == nullptr) return EINVAL;
  rdma_ucm_query_addr_resp answer;
  switch (command.option) {
    case RDMA_USER_CM_QUERY_ADDR:
      call.agent.query_addresses(*id, answer);
      return call.answer(command.response, answer);
    case RDMA_USER_CM_QUERY_GID:
      call.agent.query_gids(*id, answer);
      return call.answer(command.response, answer);
    case RDMA_USER_CM_QUERY_PATH:
      return query_path(call, command, *id);
    default:
      return ENOSYS;
  }
}

int connect(const Call& call) {
  const auto command = call.as<rdma_ucm_connect>();
  Id* const id = call.id(command.id);
  return id == nullptr ? EINVAL : call.agent.connect(*id, command.conn_param);
}

int listen(const Call& call) {
  const auto command = call.as<rdma_ucm_listen>();
  Id* const id = call.id(command.id);
  return id == nullptr ? EINVAL : call.agent.listen(*id, command.backlog);
}

int accept(const Call& call) {
  const auto command = call.as<rdma_ucm_accept>();
  Id* const id = call.id(command.id);
  return id == nullptr ? EINVAL : call.agent.accept(*id, command.uid, command.conn_param);
}

int reject(const Call& call) {
  const auto command = call.as<rdma_ucm_reject>();
  Id* const id = call.id(command.id);
  if (id == nullptr) return EINVAL;
  constexpr std::uint8_t kConsumer = 28, kVendorOption = 35;
  const std::uint8_t reason = command.reason == 0 ? kConsumer : command.reason;
  if (reason != kConsumer && reason != kVendorOption) return EINVAL;
  return call.agent.reject(*id, static_cast<cm::Reason>(reason),
                           bytes_of(command.private_data, command.private_data_len));
}

int disconnect(const Call& call) {
  Id* const id = call.id(call.as<rdma_ucm_disconnect>().id);
  return id == nullptr ? EINVAL : call.agent.disconnect(*id);
}

int init_qp_attributes(const Call& call) {
  const auto command = call.as<rdma_ucm_init_qp_attr>();
  const Id* const id = call.id(command.id);
  if (id == nullptr) return EINVAL;
  ib_uverbs_qp_attr answer{};
  if (const int error = call.agent.qp_attributes(*id, command.qp_state, answer); error != 0) {
    return error;
  }
  return call.answer(command.response, answer);
}

int set_option(const Call& call) {
  const auto command = call.as<rdma_ucm_set_option>();
  Id* const id = call.id(command.id);
  if (id == nullptr) return EINVAL;
  if (command.optval == 0) return EINVAL;
  return call.agent.set_option(
      *id, command.level, command.optname,
      bytes_of(reinterpret_cast<const std::uint8_t*>(command.optval), command.optlen));
}

int notify(const Call& call) {
  const auto command = call.as<rdma_ucm_notify>();
  Id* const id = call.id(command.id);
  return id == nullptr ? EINVAL : call.agent.notify(*id, command.event);
}

int join(const Call& call, std::uint32_t id_number, std::uint64_t uid, std::uint64_t response,
         const std::optional<Address>& group) {
  Id* const id = call.id(id_number);
  if (id == nullptr) return EINVAL;
  if (!group) return EINVAL;
  std::uint32_t number = 0;
  if (const int error = call.agent.join(*id, uid, *group, number); error != 0) return error;
  return call.answer(response, rdma_ucm_create_id_resp{number});
}

int join_ip_multicast(const Call& call) {
  const auto command = call.as<rdma_ucm_join_ip_mcast>();
  return join(call, command.id, command.uid, command.response,
              to_address(&command.addr, sizeof command.addr));
}

int join_multicast(const Call& call) {
  const auto command = call.as<rdma_ucm_join_mcast>();
  if (command.join_flags >= RDMA_MC_JOIN_FLAG_RESERVED) return EINVAL;
  return join(
      call, command.id, command.uid, command.response,
      to_address(&command.addr, std::min<std::size_t>(command.addr_size, sizeof command.addr)));
}

int leave_multicast(const Call& call) {
  const auto command = call.as<rdma_ucm_destroy_id>();
  const auto reported = call.agent.leave(call.file, command.id);
  call.file.take_token_back(call.descriptor);
  return reported ? call.answer(command.response, rdma_ucm_destroy_id_resp{*reported}) : EINVAL;
}

// From the file that the descriptor in the command is of.
int migrate_id(const Call& call) {
  const auto command = call.as<rdma_ucm_migrate_id>();
  const int former = static_cast<int>(command.fd);
  const auto place = EventFile::place_of(former);
  EventFile* const from = place ? call.agent.find_file(*place) : nullptr;
  Id* const id = from == nullptr ? nullptr : call.agent.find_id(from, command.id);
  if (id == nullptr) return EINVAL;
  const std::uint32_t reported = call.agent.migrate(*id, call.file);
  from->take_token_back(former);
  return call.answer(command.response, rdma_ucm_migrate_resp{reported});
}

// The byte that says there is one has been read.
int get_event(const Call& call) {
  const auto command = call.as<rdma_ucm_get_event>();
  const auto event = call.file.pop();
  if (!event) return EAGAIN;
  call.agent.hand_over(*event, call.file);
  return call.answer(command.response, event->answer);
}

using Function = int (*)(const Call& call);
constexpr std::array<Function, RDMA_USER_CM_CMD_JOIN_MCAST + 1> kCommands = [] {
  std::array<Function, RDMA_USER_CM_CMD_JOIN_MCAST + 1> commands{};
  commands[RDMA_USER_CM_CMD_CREATE_ID] = create_id;
  commands[RDMA_USER_CM_CMD_DESTROY_ID] = destroy_id;
  commands[RDMA_USER_CM_CMD_BIND_IP] = bind_ip;
  commands[RDMA_USER_CM_CMD_RESOLVE_IP] = resolve_ip;
  commands[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = resolve_route;
  commands[RDMA_USER_CM_CMD_QUERY_ROUTE] = query_route;
  commands[RDMA_USER_CM_CMD_CONNECT] = connect;
  commands[RDMA_USER_CM_CMD_LISTEN] = listen;
  commands[RDMA_USER_CM_CMD_ACCEPT] = accept;
  commands[RDMA_USER_CM_CMD_REJECT] = reject;
  commands[RDMA_USER_CM_CMD_DISCONNECT] = disconnect;
  commands[RDMA_USER_CM_CMD_INIT_QP_ATTR] = init_qp_attributes;
  commands[RDMA_USER_CM_CMD_GET_EVENT] = get_event;
  commands[RDMA_USER_CM_CMD_SET_OPTION] = set_option;
  commands[RDMA_USER_CM_CMD_NOTIFY] = notify;
  commands[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = join_ip_multicast;
  commands[RDMA_USER_CM_CMD_LEAVE_MCAST] = leave_multicast;
  commands[RDMA_USER_CM_CMD_MIGRATE_ID] = migrate_id;
  commands[RDMA_USER_CM_CMD_QUERY] = query;
  commands[RDMA_USER_CM_CMD_BIND] = bind;
  commands[RDMA_USER_CM_CMD_RESOLVE_ADDR] = resolve_addr;
  commands[RDMA_USER_CM_CMD_JOIN_MCAST] = join_multicast;
  return commands;
}();

// Not where the program's next descriptor goes, least of all 0 to 2. Without one left, -1: a
// program may have reached its limit and have an event to read nevertheless.
int copy_out_of_the_way(int descriptor) {
  constexpr int kOutOfTheWay = 512;
  const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, kOutOfTheWay);
  if (copy >= 0 || errno != EINVAL) return copy;
  constexpr int kBehindStandardError = 3;  // the limit is that low
  return fcntl(descriptor, F_DUPFD_CLOEXEC, kBehindStandardError);
}

// False, and errno: EAGAIN if the program does not want to wait.
bool wait_for_event(int descriptor) {
  char token = 0;
  const ssize_t bytes = ::read(descriptor, &token, sizeof token);
  if (bytes == 0) errno = EBADF;
  return bytes == 1;
}

}  // namespace

ssize_t Agent::execute(int descriptor, Place place, const void* command, std::size_t bytes) {
  rdma_ucm_cmd_hdr header;
  if (bytes < sizeof header) {
    errno = EINVAL;
    return -1;
  }
  std::memcpy(&header, command, sizeof header);
  if (header.cmd >= kCommands.size() || header.in + sizeof header > bytes) {
    errno = EINVAL;
    return -1;
  }
  const Function function = kCommands[header.cmd];
  // Whoever waits keeps the file open, as inside of the kernel: the program may close its
  // descriptor meanwhile, and the event that the byte stood for may be gone.
  const posix::Descriptor held(function == get_event ? copy_out_of_the_way(descriptor) : -1);
  const int waiting = held.is_open() ? held.get() : descriptor;
  for (;;) {
    int error = ENOSYS;
    if (function == get_event && !wait_for_event(waiting)) return -1;
    if (function != nullptr) {
      const Locked locked(mutex_);
      EventFile* const file = find_file(place);
      const std::span body(static_cast<const std::byte*>(command) + sizeof header, header.in);
      error = file == nullptr ? EBADF : function(Call{*this, *file, descriptor, body, header.out});
    }
    if (error == 0) return static_cast<ssize_t>(bytes);
    if (function == get_event && error == EAGAIN) continue;
    errno = error;
    return -1;
  }
}

}  // namespace uroce::cma
