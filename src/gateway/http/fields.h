// SPDX-License-Identifier: Apache-2.0
//
// The header fields that mean something to this API, read strictly: a field that is sent and wrong is refused, never
// ignored, with the exception of traceparent, where the standard asks for that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gateway/http/message.h"
#include "gateway/http/problem.h"
#include "gateway/service.h"

namespace coffer::gateway {

// The bearer token, "" if there is no Authorization field.
Answer<std::string> ReadBearer(const Head& head);

// As in the IETF draft (a structured-field string: "k") and as most clients send it (k without quotes): 1 to 255
// visible ASCII characters. Nothing if the field is not there.
Answer<std::optional<std::string>> ReadIdempotencyKey(const Head& head);

// A valid version 00 traceparent (W3C Trace Context), or nothing.
std::optional<std::string> ReadTraceparent(const Head& head);

// Prefer: respond-async (RFC 7240).
bool PrefersAsync(const Head& head);

// Last-Event-ID of an event stream; 0 is the beginning.
Answer<uint64_t> ReadLastEventId(const Head& head);

// A JSON body must be declared as application/json, not compressed; this also keeps forms of web pages out.
std::optional<Problem> CheckJsonBody(const Head& head);

// A decimal number of at most 18 digits.
std::optional<uint64_t> ReadNumber(std::string_view text);

}  // namespace coffer::gateway
