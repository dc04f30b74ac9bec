// SPDX-License-Identifier: Apache-2.0
//
// Ports of a call that the caller reaches on the host's loopback: `coffer run --publish PORT`.
//
// For a server inside that a browser of the desktop looks at, or that waits for a browser's
// callback. The caller declares the ports; the payload cannot ask for one. The listeners are made
// after the boundary's init, so nothing inside ever holds them, on 127.0.0.1 only. They go to the
// call's forwarder (port_forwarder.h) through a channel of its own. The forwarder connects to the
// port inside for each connection that comes. The way leads inwards only: the payload reaches
// nothing of the host by it. Every user of the host can connect, as to any server on its loopback.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "call/run/run_request.h"

namespace coffer::call {

class PublishedPorts {
 public:
  PublishedPorts() = default;

  // Listens on every host port. Fails with policy.publish if one is taken or not the caller's to take.
  static Result<PublishedPorts> Open(const std::vector<RunRequest::Publish>& wanted);

  // The forwarder's end, with all offers in it.
  int forwarder_channel() const { return theirs_.get(); }
  // As asked for, with the number that the host chose where it was left to it.
  const std::vector<RunRequest::Publish>& ports() const { return ports_; }

 private:
  UniqueFd ours_;  // open as long as the call: a forwarder without a channel would spin
  UniqueFd theirs_;
  UniqueFd life_;  // closed with us: then the forwarder forgets the listeners
  std::vector<RunRequest::Publish> ports_;
};

}  // namespace coffer::call
