// SPDX-License-Identifier: BSD-2-Clause
// The communication manager of this process: its devices, the identifiers of its programs, and the
// thread that hears of messages and of time. What programs write to /dev/infiniband/rdma_cm
// (commands.cc) is carried out in their own threads, under one lock, which is taken before any
// engine's.
//
//   agent.cc     devices, thread, messages in and out     events.cc      what programs are told of
//   resolve.cc   bind, resolve address and route          ports.cc       whose a port is
//   connect.cc   listen, connect, accept, reject ...      destroy.cc     where identifiers go
//   multicast.cc, options.cc, query.cc, qp_attributes.cc, infiniband.cc  what their names say
#pragma once

#include <rdma/rdma_user_cm.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "cm/manager.h"
#include "cma/device.h"
#include "cma/event_file.h"
#include "cma/id.h"
#include "cma/locked.h"
#include "cma/neighbours.h"
#include "cma/port_table.h"

namespace uroce::cma {

class Agent final : private cm::Host {
 public:
  using Place = std::pair<dev_t, ino_t>;  // of a file

  // The process's, started if need be. Null, and errno: there is no device that can be opened.
  static Agent* get();
  // That is there, or null.
  static Agent* find();
  // Of files that have been closed the preloaded library need not know any more.
  static void set_forget(void (*forget)(ino_t inode)) { provider_forgets_ = forget; }
  void say_goodbye();

  // The program's descriptor, or -1 and errno.
  [[nodiscard]] int open_file();
  // As write(2) to it: `bytes`, or -1 and errno.
  [[nodiscard]] ssize_t execute(int descriptor, Place place, const void* command,
                                std::size_t bytes);

  // --- Commands, under the lock; 0 or an errno ---------------------------------------------------
  [[nodiscard]] EventFile* find_file(Place place);
  // Of that file; null where it has none by that number.
  [[nodiscard]] Id* find_id(const EventFile* file, std::uint32_t number);
  // The program has got the event.
  void hand_over(const PendingEvent& event, EventFile& file);

  // Null: there are too many.
  [[nodiscard]] Id* create_id(EventFile& file, std::uint64_t uid, std::uint16_t port_space,
                              std::uint8_t qp_type);
  std::uint32_t destroy_id(Id& id);
  std::uint32_t migrate(Id& id, EventFile& to);

  [[nodiscard]] int bind(Id& id, const Address& address);
  // The event follows, after `patience` at the latest.
  [[nodiscard]] int resolve_address(Id& id, const Address* source, const Address& destination,
                                    Duration patience);
  // Of infiniband.cc: what Linux does, which comes to an end at resolve_route.
  [[nodiscard]] int bind_infiniband(Id& id, const InfinibandAddress& address);
  [[nodiscard]] int resolve_infiniband(Id& id, const InfinibandAddress& source,
                                       const InfinibandAddress& destination);
  [[nodiscard]] int resolve_route(Id& id);

  [[nodiscard]] int listen(Id& id, std::uint32_t backlog);
  [[nodiscard]] int connect(Id& id, const rdma_ucm_conn_param& parameters);
  [[nodiscard]] int accept(Id& id, std::uint64_t uid, const rdma_ucm_conn_param& parameters);
  [[nodiscard]] int reject(Id& id, cm::Reason reason, std::span<const std::byte> data);
  [[nodiscard]] int disconnect(Id& id);
  [[nodiscard]] int notify(Id& id, std::uint32_t event);
  [[nodiscard]] int qp_attributes(const Id& id, std::uint32_t state, ib_uverbs_qp_attr& to) const;

  void query_route(const Id& id, rdma_ucm_query_route_resp& to) const;
  void query_addresses(const Id& id, rdma_ucm_query_addr_resp& to) const;
  void query_gids(const Id& id, rdma_ucm_query_addr_resp& to) const;
  [[nodiscard]] std::optional<ib_path_rec_data> query_path(const Id& id) const;
  [[nodiscard]] int set_option(Id& id, std::uint32_t level, std::uint32_t name,
                               std::span<const std::byte> value);

  [[nodiscard]] int join(Id& id, std::uint64_t uid, const Address& group, std::uint32_t& number);
  // Nothing where there is no such membership; else how many of its events were reported.
  [[nodiscard]] std::optional<std::uint32_t> leave(const EventFile& file, std::uint32_t number);

 private:
  Agent() = default;
  ~Agent();
  static void before_fork();
  static void in_parent();
  static void in_child();
  [[nodiscard]] bool start();
  [[nodiscard]] bool open_devices();
  [[nodiscard]] bool watch_descriptors();
  [[nodiscard]] bool start_thread();
  void run();
  [[nodiscard]] int look_at_time();
  void serve(int descriptor);
  void receive(Device& device);
  void remove_from(const Device& device);
  void remove_from_device(Id& id);
  void close_file(EventFile& file);
  void close_abandoned_files();
  void look_after_local_peers(Instant now);
  void look_after_neighbours(Instant now);
  void wake();

  // cm::Host
  void send(const cm::Route& route, const cm::Mad& mad) override;
  [[nodiscard]] std::uint32_t new_local_id() override;
  [[nodiscard]] cm::Connection* new_connection(cm::Listener& listener) override;
  void on_event(cm::Connection& connection, const cm::Event& event) override;

  void on_mad(Device& from, cm::Route route, const cm::Mad& mad);
  [[nodiscard]] std::uint32_t block_of(const cm::Route& route, const cm::Mad& mad) const;

  void on_request(Id& id, const cm::Event& event);
  void on_datagram_service(Id& id, const cm::Event& event);
  void post(Id& id, EventType kind, std::uint32_t status);
  void post_with_data(Id& id, EventType kind, std::uint32_t status, const cm::Event& event);

  [[nodiscard]] int accept_datagrams(Id& id, const rdma_ucm_conn_param& parameters,
                                     const cm::PrivateData& data);
  [[nodiscard]] int accept_connection(Id& id, const rdma_ucm_conn_param& parameters,
                                      const cm::PrivateData& data);
  [[nodiscard]] Id* first_that_waits_for(const Id& listening);

  [[nodiscard]] int claim_port(Id& id);
  [[nodiscard]] int try_to_claim_port(Id& id);
  [[nodiscard]] int claim_any_port(Id& id);
  [[nodiscard]] int claim_in_directory(Id& id);
  [[nodiscard]] bool draw_port(Id& id);
  void release_port(Id& id);
  // Other processes hear of an option that was set.
  [[nodiscard]] int tell_of_claim(const Id& id);
  template <typename Option>
  [[nodiscard]] int set_for_all(Id& id, Option Id::*option, std::optional<bool> value);
  [[nodiscard]] int bind_address(Id& id, const Address& address);
  void take_source_back(Id& id, const Address& former);
  [[nodiscard]] int choose_source(const Address& destination, bool is_loopback,
                                  Address& from) const;
  [[nodiscard]] int bind_to_device(Id& id);
  void finish_address(Id& id);
  void wait_for_neighbour(Id& id, const Gid& next_hop, Duration patience, const Address& former);
  [[nodiscard]] Device* device_of(const Gid& gid, std::uint32_t scope = 0) const;
  [[nodiscard]] Device* loopback_device(bool is_ipv4) const;

  [[nodiscard]] engine::Engine& first_engine() const { return devices_.front()->engine(); }
  [[nodiscard]] datapath::Directory& directory() const { return *first_engine().directory(); }

  inline static void (*provider_forgets_)(ino_t inode) = nullptr;

  std::timed_mutex mutex_;
  std::vector<std::unique_ptr<Device>> devices_;
  cm::Manager manager_{*this};
  std::map<Place, std::unique_ptr<EventFile>> files_;
  std::map<std::uint32_t, std::unique_ptr<Id>> ids_;
  Neighbours neighbours_;
  PortTable ports_;
  std::map<std::uint32_t, Id*> members_;  // by the number of their membership
  std::uint32_t last_number_ = 0;
  std::optional<Qpn> block_holder_;  // a QPN in whose block our identifiers on the wire are
  std::uint16_t last_in_block_ = 0;
  Prng random_{0};
  Instant next_look_at_peers_{};
  Instant sleeps_until_{};  // the thread
  int events_ = -1;         // epoll
  int wake_ = -1;
};

}  // namespace uroce::cma
