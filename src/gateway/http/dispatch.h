// SPDX-License-Identifier: Apache-2.0
//
// The order in which a request is let in, the same for every route:
// site (Host, Origin), route, method, credential, role, values of the path, shape of the body.
//
// Nothing of the body is read before the caller is known and has the role; a handler never runs without.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "gateway/http/exchange.h"

namespace coffer::gateway {

// `decided` gets the answer if the request is refused, nothing if the body may be read and Route::handler be called.
// exchange->api, ->channel and ->head are set; this sets the rest, except body and reader.
void Admit(const std::shared_ptr<Exchange>& exchange,
           std::function<void(std::optional<Response>)> decided);

// The most that the body of this exchange may have.
uint64_t BodyLimit(const Exchange& exchange);

}  // namespace coffer::gateway
