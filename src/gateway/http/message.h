// SPDX-License-Identifier: Apache-2.0
//
// A request and a response of HTTP/1.1 as plain values, free of the library that parses them.
//
// What is in a Head has passed the parser and the strict checks of head_checks.h; nothing here is trusted beyond that.
// A response is a body, or a body in pieces of which each is freed when it is sent, or a stream that is asked for one
// piece at a time. A text that may be large becomes one of these (text_stream.h).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_pieces.h"
#include "gateway/http/problem.h"
#include "gateway/service.h"

namespace coffer::gateway {

enum class Method { kGet, kHead, kPost, kPut, kDelete, kOther };
std::string_view MethodName(Method method);
Method FindMethod(std::string_view text);

struct Header {
  std::string name;
  std::string value;
};

struct Head {
  Method method = Method::kOther;
  std::string target;  // as sent
  int version = 11;    // 10 or 11
  bool keep_alive = true;
  std::vector<Header> headers;
  std::optional<uint64_t> content_length;
  bool chunked = false;

  bool HasBody() const { return chunked || content_length.value_or(0) > 0; }
  // The first field of that name (ASCII case does not matter), or nothing.
  const std::string* Find(std::string_view name) const;
  size_t Count(std::string_view name) const;
};

// The connection a request came through.
struct Channel {
  bool tls = false;
  bool unix_socket = false;
  std::string address;        // of the peer: "127.0.0.1", "unix"
  std::string local_address;  // ours: "127.0.0.1"; "" on a unix socket
  std::optional<Credential::Peer> peer;
};

// A body that is made while it is sent. Destroyed when the client is gone.
class BodyStream {
 public:
  struct Piece {
    std::string bytes;
    bool end = false;
    bool failed = false;  // the connection is cut, so that the client notices
  };
  virtual ~BodyStream() = default;
  // One at a time; `next` is invoked once, on the loop's thread, unless the stream is destroyed first.
  virtual void Next(std::function<void(Piece)> next) = 0;
};

struct Response {
  int status = 200;
  std::string content_type;  // "" without a body
  std::string body;
  std::deque<std::string> pieces;    // instead of `body`, if there are any
  std::shared_ptr<JsonPieces> text;  // not made yet
  std::vector<Header> headers;
  std::shared_ptr<void> room;  // memory that the answer takes, until it is sent
  std::shared_ptr<BodyStream> stream;
  std::optional<uint64_t> stream_size;  // known: Content-Length, otherwise chunked
  bool chunked = true;  // false for HTTP/1.0: the end of the connection ends the stream
  bool close = false;
};

Response ProblemResponse(const Problem& problem);
Response JsonResponse(int status, std::string json_text);
Response JsonResponse(int status, JsonPieces text);
// Of body or pieces, not of a stream.
size_t BodySize(const Response& response);

// Status line and fields, up to the empty line.
std::string FormatResponseHead(const Response& response, bool keep_alive, std::string_view date);
std::string_view ReasonPhrase(int status);
std::string HttpDate(Nanos since_epoch);

}  // namespace coffer::gateway
