// SPDX-License-Identifier: Apache-2.0
//
// A large text of an answer as a stream: each piece is made, and compressed where the client takes
// it, while the client reads the one before. It happens on a worker in the turn of the answer's
// tenant, never on the loop. So an answer is held once, as what it is made from, and a piece of it;
// and for a client that is gone nothing more is made.
#pragma once

#include <memory>

#include "gateway/http/exchange.h"

namespace coffer::gateway {

// Of what a text is made from. What is smaller is made at once, and sent with its length.
inline constexpr size_t kStreamedBytes = 65536;

// Turns the text of a response into its body, or into a stream. Does nothing without a text. Makes a
// small text at once: not on the loop.
void PrepareText(const std::shared_ptr<const Api>& api, const std::shared_ptr<Asker>& asker,
                 bool gzip, Response* response);

// Makes the text the stream of a response, whatever its size; compressed if `gzip`.
void StreamText(const std::shared_ptr<const Api>& api, const std::shared_ptr<Asker>& asker,
                bool gzip, std::shared_ptr<JsonPieces> text, Response* response);

// A text of JSON, or one around it, as a stream that is not compressed.
std::shared_ptr<BodyStream> MakeTextStream(const std::shared_ptr<const Api>& api,
                                           const std::shared_ptr<Asker>& asker,
                                           std::shared_ptr<JsonPieces> text);

}  // namespace coffer::gateway
