// SPDX-License-Identifier: Apache-2.0
//
// The head of an HTTP/1.1 message, read so strictly that two readers cannot disagree about it.
//
// Lines end with CR LF and nothing else; no control characters, no folded fields, no space before a colon; names are
// tokens. A body has one length or the chunked coding, said once (RFC 9112 section 6). What is refused here is what
// request smuggling is made of. Pure: bytes in, values out; the bytes may come from an attacker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace coffer::net {

inline constexpr size_t kMostHeadBytes = 16 << 10;
inline constexpr size_t kMostHeadFields = 128;
// Each field of a message is looked for among them.
inline constexpr size_t kMostConnectionNames = 32;

bool IsToken(std::string_view text);
// ASCII case does not matter.
bool SameText(std::string_view a, std::string_view b);

struct HttpField {
  std::string name;
  std::string value;  // without spaces around it
};

struct HttpFields {
  std::vector<HttpField> list;
  // The first of that name, or nothing.
  const std::string* Find(std::string_view name) const;
  size_t Count(std::string_view name) const;
  // Whether a list field ("close, TE") has that member; it may be given several times.
  bool HasMember(std::string_view name, std::string_view member) const;
};

struct HttpBody {
  enum class Kind : uint8_t { kNone, kLength, kChunked, kUntilClose };
  Kind kind = Kind::kNone;
  uint64_t length = 0;  // of kLength
};

struct HttpRequestHead {
  std::string method;  // a token
  std::string target;  // visible ASCII and bytes over 0x7f, not empty
  int version = 11;    // 10 or 11
  HttpFields fields;
  HttpBody body;  // kNone, kLength or kChunked
};

struct HttpResponseHead {
  int status = 0;  // 100 to 599
  std::string reason;
  int version = 11;
  HttpFields fields;
  HttpBody body;  // after what the request's method says about it
};

// The size of the complete head at the front of `bytes`; 0: more is needed. `from` is how far an earlier search came.
size_t FindHeadEnd(std::string_view bytes, size_t from = 0);

// `raw` is exactly one head, with its empty line. Codes of errors: "http.malformed", "http.version", "http.framing",
// "http.transfer_coding", "http.too_many_fields".
Result<HttpRequestHead> ParseRequestHead(std::string_view raw);
// `method` is that of the request: HEAD has no body.
Result<HttpResponseHead> ParseResponseHead(std::string_view raw, std::string_view method);

}  // namespace coffer::net
