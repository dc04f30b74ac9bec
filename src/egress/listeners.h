// SPDX-License-Identifier: Apache-2.0
//
// The sockets of a boundary's network that its proxy serves. They are made in the boundary
// (isolation/child/helper.h), bound by its supervisor, and passed to the process that serves them.
#pragma once

#include "base/unique_fd.h"

namespace coffer::egress {

struct Listeners {
  UniqueFd proxy;     // TCP: CONNECT, forwarded requests, SOCKS
  UniqueFd resolver;  // UDP: DNS. Not valid where the kernel has no redirect
  UniqueFd redirect;  // TCP: what went to a synthetic address, which is its local address. Likewise
  UniqueFd redirect6;  // the same of IPv6. Not valid where the kernel has no redirect of IPv6
};

}  // namespace coffer::egress
