// SPDX-License-Identifier: BSD-2-Clause
#include "cma/agent.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string>

#include "engine/clock.h"
#include "engine/registry.h"
#include "host/device_tree.h"
#include "host/environment.h"
#include "wire/management.h"

namespace uroce::cma {
namespace {

// How soon the death of a process of this host is noticed by those it was connected to.
constexpr Duration kLookAfterPeers = milliseconds(500);
// Of the identifiers on the wire, which have 16 bits of their own.
constexpr std::size_t kIdsMax = 60'000;

// Never destroyed: threads may be in here while the process exits.
struct Instance {
  std::mutex mutex;
  std::atomic<Agent*> agent{nullptr};
};
Instance& instance() {
  static Instance* const the_one = new Instance;
  return *the_one;
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  const host::Environment environment = host::current_environment();
  const auto tree = host::hold_device_tree(std::string(host::variable(environment, "UROCE_TREE")));
  if (!tree) return names;
  const auto devices = host::read_device_tree(*tree);
  if (!devices) return names;
  for (const host::TreeDevice& device : *devices) names.push_back(device.name);
  return names;
}

int milliseconds_until(Instant deadline, Instant now) {
  if (deadline == Instant::never()) return -1;
  if (deadline <= now) return 0;
  const std::int64_t ms = ((deadline - now).ns + 999'999) / 1'000'000;
  return static_cast<int>(std::min<std::int64_t>(ms, 60'000));
}

ConstBytes bytes_of(const cm::Mad& mad) { return std::as_bytes(std::span(&mad, 1)); }

}  // namespace

// --- The process's one ---------------------------------------------------------------------------

Agent* Agent::find() { return instance().agent.load(std::memory_order_acquire); }

Agent* Agent::get() {
  const Locked guard(instance().mutex);
  if (Agent* const there = find(); there != nullptr) return there;
  engine::watch_forks();
  static const int registered = pthread_atfork(before_fork, in_parent, in_child);
  static_cast<void>(registered);
  auto* const agent = new Agent;
  if (agent->start()) {
    instance().agent.store(agent, std::memory_order_release);
    return agent;
  }
  const int error = errno;
  delete agent;
  errno = error;
  return nullptr;
}

void Agent::before_fork() {
  instance().mutex.lock();
  if (Agent* const agent = find(); agent != nullptr) agent->mutex_.lock();
}

void Agent::in_parent() {
  if (Agent* const agent = find(); agent != nullptr) agent->mutex_.unlock();
  instance().mutex.unlock();
}

// What the child inherited stays in memory, locked; its descriptors would keep the parent's alive.
void Agent::in_child() {
  if (Agent* const inherited = instance().agent.exchange(nullptr); inherited != nullptr) {
    close(inherited->events_);
    close(inherited->wake_);
    for (const auto& [place, file] : inherited->files_) close(file->own_end());
  }
  instance().mutex.unlock();
}

Agent::~Agent() {
  if (events_ >= 0) close(events_);
  if (wake_ >= 0) close(wake_);
}

bool Agent::start() {
  if (!open_devices() || !watch_descriptors()) return false;
  std::uint64_t seed = 0;
  static_cast<void>(getentropy(&seed, sizeof seed));
  random_ = Prng(seed);
  last_in_block_ = static_cast<std::uint16_t>(random_.next());
  return start_thread();
}

bool Agent::open_devices() {
  int error = ENODEV;
  for (const std::string& name : device_names()) {
    if (auto device = Device::open(name); device != nullptr) {
      devices_.push_back(std::move(device));
    } else {
      error = errno;
    }
  }
  errno = error;
  if (devices_.empty()) return false;
  block_holder_ = first_engine().allocate_qpn();
  errno = ENOMEM;
  return block_holder_.has_value();
}

bool Agent::watch_descriptors() {
  events_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const auto watch = [this](int descriptor) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    return epoll_ctl(events_, EPOLL_CTL_ADD, descriptor, &event) == 0;
  };
  return watch(wake_) && std::ranges::all_of(devices_, [&watch](const auto& device) {
           return watch(device->port().descriptor()) && watch(device->change_descriptor());
         });
}

bool Agent::start_thread() {
  sigset_t all, former;
  sigfillset(&all);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, number);
  pthread_sigmask(SIG_SETMASK, &all, &former);
  pthread_t thread{};
  const auto body = [](void* self) -> void* {
    static_cast<Agent*>(self)->run();
    return nullptr;
  };
  errno = pthread_create(&thread, nullptr, body, this);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
  errno = error;
  if (error != 0) return false;
  pthread_setname_np(thread, "uroce-cm");
  pthread_detach(thread);
  return true;
}

// --- Its thread ----------------------------------------------------------------------------------

void Agent::run() {
  for (;;) {
    const int timeout = look_at_time();
    std::array<epoll_event, 64> happened{};
    const int count =
        epoll_wait(events_, happened.data(), static_cast<int>(happened.size()), timeout);
    const Locked held(mutex_);
    sleeps_until_ = {};
    for (int i = 0; i < count; ++i) serve(happened[static_cast<std::size_t>(i)].data.fd);
  }
}

// How long there is nothing to do, for epoll_wait.
int Agent::look_at_time() {
  const Locked held(mutex_);
  const Instant now = engine::monotonic_now();
  manager_.on_timer(now);
  look_after_local_peers(now);
  look_after_neighbours(now);
  sleeps_until_ = std::min(manager_.next_deadline(), neighbours_.next_look(now));
  if (!ids_.empty()) sleeps_until_ = std::min(sleeps_until_, next_look_at_peers_);
  return milliseconds_until(sleeps_until_, now);
}

void Agent::wake() {
  constexpr std::uint64_t kOne = 1;
  static_cast<void>(!::write(wake_, &kOne, sizeof kOne));
}

void Agent::serve(int descriptor) {
  if (descriptor == wake_) {
    std::uint64_t count = 0;
    static_cast<void>(!::read(wake_, &count, sizeof count));
    for (const auto& device : devices_) receive(*device);  // what was left, if anything
    return;
  }
  for (const auto& device : devices_) {
    if (device->port().descriptor() == descriptor) return receive(*device);
    if (device->change_descriptor() != descriptor) continue;
    device->drain_changes();
    return remove_from(*device);
  }
  // Meanwhile the file may have been closed as abandoned, and its number be another's.
  for (const auto& [place, file] : files_) {
    if (file->own_end() != descriptor) continue;
    if (file->is_closed_by_program()) close_file(*file);
    return;
  }
}

// Not without end: programs wait for the lock.
void Agent::receive(Device& device) {
  constexpr std::size_t kMadsAtATime = 64;
  const bool is_all = device.port().receive(
      kMadsAtATime,
      [this, &device](const cm::Route& route, const cm::Mad& mad) { on_mad(device, route, mad); });
  if (!is_all) wake();
}

// Those that died without a word; what was sent to them is lost, and nobody answers.
void Agent::look_after_local_peers(Instant now) {
  if (now < next_look_at_peers_ || ids_.empty()) return;
  next_look_at_peers_ = now + kLookAfterPeers;
  directory().sweep();
  for (const auto& [number, id] : ids_) {
    cm::Connection& c = id->connection;
    const bool has_peer = c.remote_id != 0 && c.state != cm::State::kTimeWait &&
                          c.state != cm::State::kIdle && !id->is_datagram();
    if (!has_peer || !first_engine().port().is_own_address(c.route.destination)) continue;
    const std::uint32_t block = wire::block_of_identifier(c.remote_id);
    if (!directory().owner(Qpn{block * kQpnsPerBlock})) manager_.lose_peer(now, c);
  }
}

// --- Messages ------------------------------------------------------------------------------------

// Where several processes hear all that comes to a port, each takes what is its own.
void Agent::on_mad(Device& from, cm::Route route, const cm::Mad& mad) {
  const auto addressee = wire::addressee_of_mad(bytes_of(mad));
  if (!addressee) return;
  const auto owner = directory().owner(*addressee);
  if (owner && *owner != directory().own_slot()) return;
  // Of several that have the address it is the one where it came in.
  Device* const addressed = from.gid_index(route.source) ? &from : device_of(route.source);
  Device& device = addressed != nullptr ? *addressed : from;
  route.device = &device;
  if (is_link_local(route.source)) route.scope = device.interface_index();
  manager_.on_mad(engine::monotonic_now(), route, mad);
}

// Of the process on this host that it is for. Where nobody listens we say so ourselves.
std::uint32_t Agent::block_of(const cm::Route& route, const cm::Mad& mad) const {
  if (!first_engine().port().is_own_address(route.destination)) return 0;
  const auto addressee = wire::addressee_of_mad(bytes_of(mad));
  if (!addressee->is_service) return addressee->block;
  return directory()
      .service_block(addressee->service_id, addressee->address)
      .value_or(qpn_block(*block_holder_));
}

void Agent::send(const cm::Route& route, const cm::Mad& mad) {
  static_cast<Device*>(route.device)->port().send(route, block_of(route, mad), mad);
  if (manager_.next_deadline() < sleeps_until_) wake();
}

std::uint32_t Agent::new_local_id() {
  std::uint32_t id = 0;
  do {
    id = wire::identifier_in_block(qpn_block(*block_holder_), ++last_in_block_);
  } while (manager_.is_used(id));
  return id;
}

// --- Files and identifiers -----------------------------------------------------------------------

int Agent::open_file() {
  const Locked held(mutex_);
  int program_end = -1;
  auto file = EventFile::open(program_end);
  if (file == nullptr) return -1;
  epoll_event event{};
  event.data.fd = file->own_end();  // only that the other end is gone
  if (epoll_ctl(events_, EPOLL_CTL_ADD, file->own_end(), &event) != 0) {
    ::close(program_end);
    return -1;
  }
  const Place place = file->place();
  files_.emplace(place, std::move(file));
  return program_end;
}

EventFile* Agent::find_file(Place place) {
  const auto found = files_.find(place);
  return found == files_.end() ? nullptr : found->second.get();
}

Id* Agent::find_id(const EventFile* file, std::uint32_t number) {
  const auto found = ids_.find(number);
  return found == ids_.end() || found->second->file != file ? nullptr : found->second.get();
}

Id* Agent::create_id(EventFile& file, std::uint64_t uid, std::uint16_t port_space,
                     std::uint8_t qp_type) {
  if (ids_.size() >= kIdsMax) return nullptr;
  auto id = std::make_unique<Id>();
  id->number = ++last_number_;
  id->uid = uid;
  id->file = &file;
  id->port_space = static_cast<rdma_ucm_port_space>(port_space);
  id->qp_type = qp_type;
  id->connection.local.psn = static_cast<std::uint32_t>(random_.next()) & 0xff'ffff;
  id->connection.user = id.get();
  id->listener.user = id.get();
  const std::uint32_t number = id->number;
  return ids_.emplace(number, std::move(id)).first->second.get();
}

// Two devices may have the same link-local address; `scope`, if it is not 0, says whose is meant.
Device* Agent::device_of(const Gid& gid, std::uint32_t scope) const {
  for (const auto& device : devices_) {
    if (!device->gid_index(gid)) continue;
    if (scope == 0 || device->is_on_its_own() || device->interface_index() == scope) {
      return device.get();
    }
  }
  return nullptr;
}

Device* Agent::loopback_device(bool is_ipv4) const {
  for (const auto& device : devices_) {
    if (device->is_active() && device->any_gid(is_ipv4)) return device.get();
  }
  return nullptr;
}

}  // namespace uroce::cma
