// SPDX-License-Identifier: BSD-2-Clause
// Membership in the reuseport group: who of several processes gets which packet.
//
// The kernel steers by a program (steering.h) that maps blocks of QPNs, as the directory has them,
// to indices of sockets, as the group's file has them. Whoever notices first that the two or the
// membership changed installs a new program for all, so a stopped member needs to do nothing. What
// can go wrong meanwhile, and what then happens:
//
//   a packet reaches the wrong member   it is passed on to its owner's socket, and the program is
//                                       renewed; that cannot be had: counted as misdelivered
//   members die                         the order in which the kernel saw it is unknown, or whether
//                                       it saw it at all (a child may hold the socket): every
//                                       member probes for its own index and corrects the file
//   a member is stopped                 its own packets wait in its own socket, nobody else's do
//
// Packets for QPs that nobody owns are left to the transport, which counts them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "datapath/directory/directory.h"
#include "datapath/udp/control.h"
#include "datapath/udp/group_file.h"
#include "datapath/udp/sockets.h"
#include "datapath/udp/steering.h"
#include "posix/descriptor.h"
#include "uroce/packet.h"
#include "uroce/time.h"

namespace uroce::datapath::udp {

class Group {
 public:
  static Result<std::unique_ptr<Group>> open(Directory& directory, std::uint16_t port);

  // Binds the socket and enters it; the order of binding is the order in the file.
  Result<ReceiveSocket> enter(const UdpOptions& options);

  // The program for the order without us is installed first; `drain` then passes on what still
  // waits in the socket for others, while they stand where they did, and closes it.
  template <typename Drain>
  void leave(Drain drain) {
    const bool locked = lock();
    if (locked) attach(members_without_us());
    drain();
    receive_socket_ = -1;
    if (!locked) return;
    file_->set_members(members_without_us());
    directory_.leave_udp_group();
    file_->unlock();
  }

  // Whether a packet is ours to deliver: our own QP's, or nobody's.
  [[nodiscard]] bool is_for_us(ConstBytes packet) const;

  // Sends a packet that is not ours to its owner's socket. False: it is lost.
  bool pass_on(const RxPacket& packet);
  // Somebody else's packet was steered to us.
  void suspect_order() { suspects_ = true; }

  // True if the control datagram was a packet passed on to us, which `packet` then is.
  bool unwrap(RxPacket& packet);

  // Looks for changes; two loads when there are none. Now and then also for members that were
  // killed: what the kernel then steers astray may all end at a stopped one, and nobody would know.
  void on_turn(Instant now) {
    if (now >= next_sweep_) sweep(now);
    if (suspects_ || directory_.epoch() != seen_epoch_ || file_->doubt_round() != seen_doubt_ ||
        own_index_.has_value()) {
      maintain(now);
    }
  }

  void abandon_in_child();

 private:
  Group(Directory& directory, std::unique_ptr<GroupFile> file, std::uint16_t port)
      : directory_(directory), file_(std::move(file)), port_(port) {}

  Result<ReceiveSocket> bind_socket(const UdpOptions& options);
  [[nodiscard]] Member own() const;
  bool lock();
  [[nodiscard]] std::vector<Member> members_without_us() const;
  bool remove_dead(std::vector<Member>& members) const;
  void renew();
  int attach(const std::vector<Member>& members);
  [[nodiscard]] std::vector<OwnedBlock> owned_blocks(const std::vector<Member>& members) const;
  void sweep(Instant now);
  void maintain(Instant now);
  void send_probes();
  void correct_own_index();
  bool send_control(ControlKind kind, std::size_t member, Member recipient, const RxPacket* packet);

  Directory& directory_;
  std::unique_ptr<GroupFile> file_;
  std::uint16_t port_;
  int receive_socket_ = -1;
  posix::Descriptor control_socket_;
  posix::Descriptor sign_;  // group_sign.h
  std::uint64_t seen_epoch_ = 0;
  std::uint32_t seen_doubt_ = 0;
  bool suspects_ = false;
  unsigned suspicions_ = 0;  // in a row, each after the program was renewed
  Instant next_sweep_;
  Instant next_maintenance_;
  Instant last_suspicion_;
  std::uint32_t probe_round_ = 0;
  std::uint32_t answered_round_ = 0;
  std::optional<std::uint16_t> own_index_;  // as probed, while the file may say something else
};

}  // namespace uroce::datapath::udp
