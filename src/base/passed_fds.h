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

// For a header that recvmsg has filled, with MSG_CMSG_CLOEXEC and without an error.
std::vector<UniqueFd> TakePassedFds(msghdr& header);

inline constexpr size_t kMostPassedFds = 4;

// One message of one byte, with at most kMostPassedFds descriptors. Waits if the socket does and is
// full, unless `flags` has MSG_DONTWAIT. 0 or -errno.
long SendPassedFds(int socket, char word, std::span<const int> fds, int flags = 0);

struct PassedFds {
  long got = 0;  // bytes of the message; 0: the peer has closed; or -errno
  char word = 0;
  std::vector<UniqueFd> fds;
};
// What SendPassedFds has sent. Waits, unless `flags` has MSG_DONTWAIT.
PassedFds ReceivePassedFds(int socket, int flags = 0);

}  // namespace coffer
