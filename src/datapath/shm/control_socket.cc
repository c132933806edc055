// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/shm/control_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "posix/uncancelled.h"

namespace uroce::datapath::shm {
namespace {

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

// sockaddr's subtypes are told apart by their family, not by their C type.
const sockaddr* generic(const sockaddr_un& address) {
  const void* at = &address;
  return static_cast<const sockaddr*>(at);
}

int make_socket() { return ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

// Room for what can come with a datagram: the sender's credentials and one descriptor.
struct Ancillary {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int))> bytes;
};

struct Attached {
  uid_t uid = static_cast<uid_t>(-1);
  int descriptor = -1;
};

Attached read_attached(msghdr& message) {
  Attached attached;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_CREDENTIALS) {
      ucred credentials;
      std::memcpy(&credentials, CMSG_DATA(part), sizeof credentials);
      attached.uid = credentials.uid;
    } else if (part->cmsg_type == SCM_RIGHTS) {
      std::memcpy(&attached.descriptor, CMSG_DATA(part), sizeof(int));
    }
  }
  return attached;
}

}  // namespace

Result<ControlSocket> ControlSocket::open(const Directory& directory) {
  const std::string path = directory.socket_path(directory.own_slot(), "shm");
  ::unlink(path.c_str());  // the slot is ours, so what lies there is a dead process's
  posix::Descriptor socket(make_socket());
  const sockaddr_un address = address_of(path);
  const int on = 1;
  if (!socket.is_open() ||
      ::setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
      ::bind(socket.get(), generic(address), sizeof address) != 0) {
    const int code = errno;
    return Error{code, "a socket in " + directory.folder() + ": " + std::strerror(code)};
  }
  return ControlSocket(std::move(socket));
}

std::optional<ControlSocket::Received> ControlSocket::receive() {
  const posix::Uncancelled whole;
  for (;;) {
    Received received;
    Ancillary ancillary;
    iovec room{.iov_base = &received.offer, .iov_len = sizeof received.offer};
    msghdr message{};
    message.msg_iov = &room;
    message.msg_iovlen = 1;
    message.msg_control = ancillary.bytes.data();
    message.msg_controllen = ancillary.bytes.size();
    const ssize_t bytes = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (bytes < 0) {
      if (errno == EINTR) continue;
      return std::nullopt;
    }
    const Attached attached = read_attached(message);
    const bool may = attached.uid == ::geteuid() || attached.uid == 0;
    if (may && bytes == sizeof received.offer && attached.descriptor >= 0 &&
        received.offer.format == RingOffer::kRingOfferFormat) {
      received.descriptor = attached.descriptor;
      return received;
    }
    if (attached.descriptor >= 0) ::close(attached.descriptor);
  }
}

int PeerSocket::connect(const std::string& path) {
  posix::Descriptor socket(make_socket());
  if (!socket.is_open()) return errno;
  const sockaddr_un address = address_of(path);
  if (::connect(socket.get(), generic(address), sizeof address) != 0) return EHOSTUNREACH;
  socket_ = std::move(socket);
  return 0;
}

int PeerSocket::offer(const RingOffer& offer, int descriptor) const {
  const posix::Uncancelled whole;
  RingOffer copy = offer;
  iovec piece{.iov_base = &copy, .iov_len = sizeof copy};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(part), &descriptor, sizeof(int));
  while (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    // So many of this user's descriptors wait in sockets already; as with a full queue, later.
    if (errno == ETOOMANYREFS) return EAGAIN;
    if (errno != EINTR) return errno;
  }
  return 0;
}

void PeerSocket::wake() const {
  const posix::Uncancelled whole;
  while (::send(socket_.get(), nullptr, 0, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno != EINTR) return;
  }
}

}  // namespace uroce::datapath::shm
