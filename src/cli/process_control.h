// SPDX-License-Identifier: Apache-2.0
//
// How a verb talks to the keeper of a background process (process_keeper.h): a socket called `control` in the process's
// own directory.
//
// The socket is there and is listened on for as long as the process lives, so a connection is the
// proof that it does: no pid is written down anywhere, and none can be mistaken for another. Both
// sides ask the kernel who the other is (SO_PEERCRED) and answer their own user only. A keeper
// keeps the connection open until the process is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::cli {

enum class KeeperVerb : uint32_t {
  kChannel = 1,  // a descriptor that leads to the process's ports (call/run/port_forwarder.h)
  kSignal = 2,   // the value is a signal for the command
  kStop = 3,     // the value is a StopReason
};

enum class StopReason : int32_t {
  kNone = 0,
  kAsked = 1,         // by `coffer sessions stop`: the command may tidy up, for a few seconds
  kSessionEnded = 2,  // it is killed
  kKeeperTold = 3,    // the keeper got a signal
};

// Makes the socket in `dir` and listens. Removes one that a dead keeper left.
Result<UniqueFd> ListenForVerbs(int dir);
// The next connection of our own user; nothing if there is none.
UniqueFd AcceptVerb(int listener);

struct KeeperRequest {
  KeeperVerb verb = KeeperVerb::kChannel;
  int32_t value = 0;
};
// Keeper: the request that waits on `connection`; nothing if it is not one, or if the verb has gone.
std::optional<KeeperRequest> ReadRequest(int connection);
// Keeper: the answer, with a descriptor unless `given` is -1. Never waits.
void SendAnswer(int connection, bool good, int given);

// Verb: connected to the keeper of the process in `dir`, or nothing if it does not live.
Result<std::optional<UniqueFd>> FindKeeper(int dir);
// Verb: asks and waits for the answer. The descriptor is empty unless one was asked for.
Result<UniqueFd> AskKeeper(int connection, KeeperRequest request);
// Verb: true when the keeper has gone, false if it has not after `limit`.
bool AwaitEnd(int connection, std::chrono::milliseconds limit);

}  // namespace coffer::cli
