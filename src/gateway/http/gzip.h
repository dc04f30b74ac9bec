// SPDX-License-Identifier: Apache-2.0
//
// Large texts of answers, compressed for clients that accept it (RFC 9110 section 12.5.3, RFC 1952).
//
// It happens where an answer is made, on a worker in its tenant's turn, never on the loop. The body is taken piece by
// piece, and each piece is freed when it went in, so a text and its compressed form are never held as a whole beside
// each other. Texts that are streamed are compressed on the way (text_stream.h); events and files are sent as they are.
//
// Compressing a secret beside text that an attacker chooses can tell the secret by the size. No answer repeats the
// client's credential, and a new key is far smaller than what is compressed here.
#pragma once

#include <functional>

#include "gateway/http/message.h"

namespace coffer::gateway {

// What is smaller is sent as it is: it fits into a few packets.
inline constexpr size_t kCompressedBytes = 16 << 10;

// Whether the client takes gzip: it is named, or `*` is, with a weight that is not 0. A field that
// makes no sense counts as not there, as the standard allows.
bool AcceptsGzip(const Head& head);

// Compresses the body of a large text if `accepted`, and says in the head what it is and that it
// depends on the client. Stops early when `gone` says so. What zlib cannot do (no memory) leaves
// the answer as it is, if nothing was taken from it.
void CompressBody(bool accepted, const std::function<bool()>& gone, Response* response);

}  // namespace coffer::gateway
