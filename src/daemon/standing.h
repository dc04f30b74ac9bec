// SPDX-License-Identifier: Apache-2.0
//
// Whether an identity may act now, asked on the worker that acts and not only when its request began.
//
// A request can take long: its body arrives as slowly as the client likes. Meanwhile its key is
// revoked, its token expires, or a switch stops its agent or its tenant. A switch outranks every
// role: a stopped operator makes no key, opens no session and lifts no switch, not even the one that
// stops him. He can still read the record: calls, receipts, sessions, the audit list, the switches.
// Everything else in the service goes through here.
//
// The owner of the daemon and root, on the unix socket without a key, are stopped by no switch: they could edit the
// store. With `coffer switch` they lift what a tenant cannot lift itself.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "daemon/service_context.h"
#include "gateway/service.h"
#include "store/store.h"

namespace coffer::daemon {

// The owner of the daemon, or root, on the unix socket.
bool IsOwner(const gateway::Identity& who);

// Why this key or token no longer counts, or nothing.
std::optional<gateway::Refusal> FindLapse(store::Store& store, const gateway::Identity& who);

// The same, or the switch that stops its agent or tenant.
std::optional<gateway::Refusal> FindObstacle(store::Store& store, const gateway::Identity& who);

// How long its key or token still counts; nothing: for ever. What it makes lives no longer.
Result<std::optional<Nanos>> TimeLeft(store::Store& store, const gateway::Identity& who);

// As Answer (service_context.h), unless something stands in the way.
template <typename T>
void AnswerIfStanding(ServiceContext& context, const gateway::Identity& who,
                      gateway::Reply<T> reply, std::function<gateway::Answer<T>()> work) {
  Answer<T>(context, std::move(reply),
            [&context, who, work = std::move(work)]() -> gateway::Answer<T> {
              if (std::optional<gateway::Refusal> no = FindObstacle(context.store(), who)) {
                return std::move(*no);
              }
              return work();
            });
}

}  // namespace coffer::daemon
