// SPDX-License-Identifier: Apache-2.0
//
// Descriptors that came with a message (SCM_RIGHTS, unix(7)).
//
// The kernel pads the room for control data, so room for one descriptor takes two: a sender can
// deliver more than the receiver expects, without MSG_CTRUNC. All of them are open in the receiver
// from then on. So every receiver takes all that came as owners, and then looks whether the number
// is right.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <span>
#include <vector>

#include "base/unique_fd.h"

namespace coffer {

inline constexpr size_t kMostPassedFds = 10;

// One message, with at most kMostPassedFds descriptors. Waits if the socket does and is full, unless
// `flags` has MSG_DONTWAIT. The bytes that were sent, or -errno, EINTR included.
long SendWithFds(int socket, std::span<const std::byte> message, std::span<const int> fds,
                 int flags = 0);

struct MessageWithFds {
  long got = 0;      // bytes of the message; 0: the peer has closed; or -errno, EINTR included
  bool cut = false;  // a part of the bytes or of the descriptors had no room
  std::vector<UniqueFd> fds;
};
// One message, into `room`. Waits, unless `flags` has MSG_DONTWAIT.
MessageWithFds ReceiveWithFds(int socket, std::span<std::byte> room, int flags = 0);

// The same for a message of one byte. 0 or -errno.
long SendPassedFds(int socket, char word, std::span<const int> fds, int flags = 0);

struct PassedFds {
  long got = 0;  // as above
  char word = 0;
  std::vector<UniqueFd> fds;
};
// What SendPassedFds has sent.
PassedFds ReceivePassedFds(int socket, int flags = 0);

}  // namespace coffer
