// SPDX-License-Identifier: BSD-2-Clause
// One end of a connection, or of a service identifier resolution (SIDR), as the communication
// manager keeps it. A plain struct: whoever uses the manager owns it; manager.h says when it may
// go.
#pragma once

#include <cstdint>

#include "base/list.h"
#include "base/service_address.h"
#include "cm/mad.h"
#include "cm/message.h"
#include "uroce/ids.h"
#include "uroce/time.h"

namespace uroce::cm {

// Where messages go, and where they come from.
struct Route {
  Gid source;
  Gid destination;
  std::uint32_t flow_label = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
  void* device = nullptr;   // the user's own
  std::uint32_t scope = 0;  // of a message that came in: the interface, for link-local addresses
};

// IBTA 12.9.7, without the states that only alternate paths have. A side that has sent DREP, or
// got one, waits for late packets of the connection to be gone.
enum class State : std::uint8_t {
  kIdle,
  kRequestSent,
  kReplyReceived,
  kRequestReceived,
  kReplySent,
  kEstablished,
  kDisconnectSent,
  kTimeWait,
  kSidrRequestSent,
  kSidrRequestReceived,
};

// Whom a listener is for; others are refused.
enum class Serves : std::uint8_t { kAll, kRc, kUc, kXrc, kDatagrams };

struct Listener {
  std::uint64_t service_id = 0;
  ServiceAddress address;
  Serves serves = Serves::kAll;
  void* user = nullptr;
  ListHook hook;
};

struct Connection {
  State state = State::kIdle;
  std::uint32_t local_id = 0;
  std::uint32_t remote_id = 0;
  std::uint64_t transaction = 0;
  std::uint64_t service_id = 0;
  Route route;
  Offer local;
  Offer remote;
  void* user = nullptr;

  // What is sent again until it is answered.
  Mad message;
  Instant deadline = Instant::never();
  Duration interval{};
  std::uint8_t transmissions_left = 0;

  // Each side begins with the PSN that the other has named.
  [[nodiscard]] std::uint32_t first_psn_sent() const { return remote.psn; }
  [[nodiscard]] std::uint32_t first_psn_expected() const { return local.psn; }

  ListHook id_hook;      // by local_id
  ListHook remote_hook;  // by the peer's GUID and identifier, once they are known
  ListHook qpn_hook;     // by the peer's GUID and QPN
  ListHook timer_hook;   // has a deadline
};

}  // namespace uroce::cm
