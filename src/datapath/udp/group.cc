// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/udp/group.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "datapath/directory/table.h"
#include "datapath/udp/group_sign.h"
#include "posix/uncancelled.h"
#include "posix/wait_for_lock.h"
#include "wire/bth.h"
#include "wire/bytes.h"

namespace uroce::datapath::udp {
namespace {

constexpr Duration kSweepInterval = milliseconds(50);
constexpr Duration kMaintenanceInterval = milliseconds(1);
constexpr Duration kSuspicionInterval = milliseconds(20);
constexpr Duration kSuspicionMemory = milliseconds(500);
// Sockets that the kernel may have and the file does not: whoever held them is dead, but a child
// that it cloned past us (no fork handler ran) lives.
constexpr std::size_t kOrphansMax = 16;

Member member_of(SlotHandle handle) {
  return BlockWord::owned(handle.index, handle.generation).value;
}

SlotHandle handle_of(Member member) {
  const BlockWord word{member};
  return {word.slot(), word.stamp()};
}

// As the kernel does it: the last one moves into the hole. Whether it has done it yet, nobody
// knows: a child may hold the socket of a parent that died.
void remove_member(std::vector<Member>& members, std::size_t index) {
  members[index] = members.back();
  members.pop_back();
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

Result<std::unique_ptr<Group>> Group::open(Directory& directory, std::uint16_t port) {
  Result<std::unique_ptr<GroupFile>> file = GroupFile::open(directory.folder(), port);
  if (!file) return file.error();
  std::unique_ptr<Group> group(new Group(directory, std::move(*file), port));
  group->control_socket_ =
      posix::Descriptor(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return group;
}

Member Group::own() const { return member_of(directory_.own_slot()); }

bool Group::lock() {
  return posix::wait_for_lock([this] { return file_->try_lock(); });
}

Result<ReceiveSocket> Group::enter(const UdpOptions& options) {
  if (!lock()) {
    return Error{EBUSY, "cannot join the processes on UDP port " + std::to_string(port_) +
                            ": one of them was stopped while it changed their list; let it go on"};
  }
  Result<ReceiveSocket> socket = bind_socket(options);
  if (socket) {
    receive_socket_ = socket->descriptor.get();
    std::vector<Member> members = file_->members();
    if (remove_dead(members)) file_->raise_doubt();
    members.push_back(own());
    file_->set_members(members);
    directory_.enter_udp_group();
    renew();
    seen_doubt_ = file_->doubt_round() - 1;  // ours is the end of the list, unless it is not whole
  }
  file_->unlock();
  return socket;
}

Result<ReceiveSocket> Group::bind_socket(const UdpOptions& options) {
  Result<posix::Descriptor> sign = put_up_sign(directory_, port_);
  if (!sign) return sign.error();
  sign_ = std::move(*sign);
  return open_receive_socket(options);
}

std::vector<Member> Group::members_without_us() const {
  std::vector<Member> members = file_->members();
  remove_dead(members);
  const auto self = std::find(members.begin(), members.end(), own());
  if (self != members.end())
    remove_member(members, static_cast<std::size_t>(self - members.begin()));
  return members;
}

// True if there were any: it is not certain any more in which order the others stand.
bool Group::remove_dead(std::vector<Member>& members) const {
  const std::size_t before = members.size();
  for (std::size_t i = 0; i < members.size();) {
    if (members[i] == kNobody || directory_.is_alive(handle_of(members[i]))) {
      ++i;
    } else {
      remove_member(members, i);
    }
  }
  return members.size() != before;
}

// Under the lock: brings file and program in line with who is there now.
void Group::renew() {
  const std::uint64_t epoch = directory_.epoch();
  std::vector<Member> members = file_->members();
  if (remove_dead(members)) {
    file_->raise_doubt();
    file_->set_members(members);
  }
  attach(members);
  file_->set_attached_epoch(epoch);
  seen_epoch_ = epoch;
}

int Group::attach(const std::vector<Member>& members) {
  return attach_steering_program(receive_socket_, owned_blocks(members));
}

std::vector<OwnedBlock> Group::owned_blocks(const std::vector<Member>& members) const {
  std::vector<OwnedBlock> blocks;
  for (std::uint32_t block = 0; block < kBlockCount; ++block) {
    const auto owner = directory_.owner(Qpn{block * kQpnsPerBlock});
    if (!owner) continue;
    const auto found = std::find(members.begin(), members.end(), member_of(*owner));
    if (found == members.end()) continue;
    blocks.push_back(
        {static_cast<std::uint16_t>(block), static_cast<std::uint16_t>(found - members.begin())});
  }
  return blocks;
}

bool Group::is_for_us(ConstBytes packet) const {
  const auto owner = directory_.owner(packet);
  return !owner || *owner == directory_.own_slot();
}

bool Group::pass_on(const RxPacket& packet) {
  const auto owner = directory_.owner(packet.bytes);
  if (!owner) return false;
  const std::vector<Member> members = file_->members();
  const auto found = std::find(members.begin(), members.end(), member_of(*owner));
  if (found == members.end()) return false;
  return send_control(ControlKind::kForwarded, static_cast<std::size_t>(found - members.begin()),
                      *found, &packet);
}

bool Group::send_control(ControlKind kind, std::size_t member, Member recipient,
                         const RxPacket* packet) {
  const posix::Uncancelled whole;
  ControlHeader header;
  header.kind = kind;
  header.round = Be32(probe_round_);
  header.member = Be16(static_cast<std::uint16_t>(member));
  header.recipient = Be64(recipient);
  header.secret = file_->secret();
  ForwardedFrom from;
  std::array<iovec, 3> pieces = {iovec{&header, sizeof header}, {}, {}};
  sockaddr_in to = loopback(port_);
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = sizeof to;
  message.msg_iov = pieces.data();
  message.msg_iovlen = 1;
  if (packet != nullptr) {
    from = {*packet->source, *packet->destination, packet->traffic_class, packet->hop_limit, {}};
    pieces[1] = {&from, sizeof from};
    pieces[2] = {const_cast<std::byte*>(packet->bytes.data()), packet->bytes.size()};
    message.msg_iovlen = 3;
  }
  return sendmsg(control_socket_.get(), &message, MSG_DONTWAIT) >= 0;
}

bool Group::unwrap(RxPacket& packet) {
  const ConstBytes bytes = packet.bytes;
  const auto header = wire::load<ControlHeader>(bytes.data());
  if (header.secret != file_->secret() || header.recipient.get() != own()) return false;
  if (header.kind == ControlKind::kProbe) {
    // The first of a round is at the index it names. Those behind the last socket go by hash, and
    // so perhaps to us as well.
    if (header.round.get() == answered_round_) return false;
    answered_round_ = header.round.get();
    own_index_ = header.member.get();
    return false;
  }
  constexpr std::size_t kEnvelopeBytes = sizeof(ControlHeader) + sizeof(ForwardedFrom);
  if (bytes.size() < kEnvelopeBytes + sizeof(wire::BthWire)) return false;
  const std::byte* const from = bytes.data() + sizeof(ControlHeader);
  packet.source = reinterpret_cast<const Gid*>(from + offsetof(ForwardedFrom, source));
  packet.destination = reinterpret_cast<const Gid*>(from + offsetof(ForwardedFrom, destination));
  packet.traffic_class = wire::load<ForwardedFrom>(from).traffic_class;
  packet.hop_limit = wire::load<ForwardedFrom>(from).hop_limit;
  packet.bytes = bytes.subspan(kEnvelopeBytes);
  return true;
}

void Group::sweep(Instant now) {
  next_sweep_ = now + kSweepInterval;
  directory_.sweep();
}

void Group::maintain(Instant now) {
  // A block claimed just now must be in the program before its first packet comes.
  const bool has_changed = seen_epoch_ != directory_.epoch();
  if ((now < next_maintenance_ && !has_changed) || !file_->try_lock()) return;
  next_maintenance_ = now + kMaintenanceInterval;
  if (suspects_) {
    // A member may have been killed, and nobody has said so yet.
    directory_.sweep();
    if (now - last_suspicion_ > kSuspicionMemory) suspicions_ = 0;
    if (++suspicions_ > 1) file_->raise_doubt();
    last_suspicion_ = now;
    next_maintenance_ = now + kSuspicionInterval;
  }
  if (suspects_ || file_->attached_epoch() != directory_.epoch()) renew();
  seen_epoch_ = file_->attached_epoch();
  suspects_ = false;
  correct_own_index();
  file_->unlock();
  if (const std::uint32_t round = file_->doubt_round(); round != seen_doubt_) {
    seen_doubt_ = round;
    send_probes();
  }
}

// To every index that there may be; the first that comes back to us is ours.
void Group::send_probes() {
  ++probe_round_;
  const std::size_t count = file_->members().size() + kOrphansMax;
  for (std::size_t i = 0; i < count; ++i) send_control(ControlKind::kProbe, i, own(), nullptr);
}

void Group::correct_own_index() {
  if (!own_index_) return;
  std::vector<Member> members = file_->members();
  const auto listed = std::find(members.begin(), members.end(), own());
  const std::size_t index = *own_index_;
  own_index_.reset();
  if (listed == members.end() || index >= kMembersMax) return;
  const auto listed_index = static_cast<std::size_t>(listed - members.begin());
  if (index == listed_index) return;
  if (index >= members.size()) members.resize(index + 1, kNobody);
  std::swap(members[listed_index], members[index]);
  while (members.back() == kNobody) members.pop_back();
  file_->set_members(members);
  attach(members);
}

void Group::abandon_in_child() {
  control_socket_.close();
  sign_.close();
  file_->abandon_in_child();
}

}  // namespace uroce::datapath::udp
