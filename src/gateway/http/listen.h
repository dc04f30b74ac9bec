// SPDX-License-Identifier: Apache-2.0
//
// Sockets to listen on, and what can be learnt about a client from an accepted one.
//
// The unix socket exists with its final mode before a client can connect: it is bound, changed, and only then listens.
// A socket file that a process still listens on is never replaced; one that is left over is.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "gateway/http/message.h"

namespace coffer::gateway {

// All are non-blocking and close-on-exec.
Result<UniqueFd> ListenTcp(const std::string& address, uint16_t port);
Result<UniqueFd> ListenUnix(const std::string& path, unsigned mode);

Result<uint16_t> PortOf(int fd);
// AF_INET, AF_INET6 or AF_UNIX.
Result<int> FamilyOf(int fd);

// Addresses of a TCP connection, or the credentials of a unix socket's peer (as they were when it connected:
// unix(7), SO_PEERCRED). Fails if the peer is gone.
Result<Channel> DescribeChannel(int fd);

// Who counts as one peer for the limit of connections: the address, an IPv6 /64, or the uid.
std::string PeerKey(const Channel& channel);

// Small answers are not held back for more to come (TCP_NODELAY), dead peers are noticed (SO_KEEPALIVE).
void TuneTcp(int fd);

// Writes what the socket takes at once, and no more.
void SendAtOnce(int fd, std::string_view text);

void RemoveSocketFile(const std::string& path);

}  // namespace coffer::gateway
