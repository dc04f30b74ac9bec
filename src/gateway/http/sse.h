// SPDX-License-Identifier: Apache-2.0
//
// A call's events as server-sent events (the WHATWG HTML standard, section 9.2), resumable by Last-Event-ID.
//
// Each event is JSON on one data line, so that bytes of a tool can never forge a line of the
// protocol. Output is {"text"} where a piece is UTF-8 and {"base64"} where it is not (a character
// may be cut in two), so nothing is lost. The stream holds one batch at a time: the next is asked
// for when the client has taken this one. Before a batch that comes more than a second after the
// last look, and at each heartbeat, the service is asked whether the client may still watch
// (Service::CheckWatcher); if not, the stream ends with an `end` event, which no `finished`
// follows.
#pragma once

#include <memory>
#include <string>

#include "gateway/http/exchange.h"
#include "gateway/http/message.h"
#include "gateway/service.h"

namespace coffer::gateway {

// "id: 3\nevent: stdout\ndata: {"text":"hi\n"}\n\n"
std::string FormatEvent(const CallEvent& event);
// All of a batch, with "event: gap" in front if events were lost.
std::string FormatBatch(const EventBatch& batch);

// Why a stream ends while its call runs: "event: end\ndata: {"code":"auth.key","message":"this key was revoked"}\n\n"
std::string FormatEnd(const Refusal& refusal);

// Answers with the stream, 204 if there is nothing after `after` and never will be, or a problem.
void RespondWithEvents(const std::shared_ptr<Exchange>& exchange, uint64_t after, Respond respond);

}  // namespace coffer::gateway
