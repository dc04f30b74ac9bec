// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "gateway/http/head_checks.h"
#include "net/http_chunks.h"

namespace coffer::gateway {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using View = boost::beast::string_view;

}  // namespace

// Collects what Beast finds in a head; it never sees a body.
class HeadCollector : public http::basic_parser<true> {
 public:
  HeadCollector() {
    body_limit(boost::none);  // the limit depends on the route: ParseBody has it
    header_limit(1 << 20);    // FindHead has the real one
  }

  Head* head = nullptr;

 private:
  void on_request_impl(http::verb, View method, View target, int version, error_code&) override {
    head->method = FindMethod({method.data(), method.size()});
    head->target.assign(target.data(), target.size());
    head->version = version;
  }
  void on_response_impl(int, View, int, error_code& error) override {
    error = http::error::bad_version;
  }
  void on_field_impl(http::field, View name, View value, error_code&) override {
    head->headers.push_back({{name.data(), name.size()}, {value.data(), value.size()}});
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(boost::optional<std::uint64_t> const&, error_code&) override {}
  std::size_t on_body_impl(View, error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, View, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, View, error_code&) override { return 0; }
  void on_finish_impl(error_code&) override {}
};

struct RequestParser::Impl {
  std::optional<HeadCollector> collector;
  net::ChunkDecoder chunks;
  bool chunked = false;
  uint64_t left = 0;  // of a body with a known length
  uint64_t body_bytes = 0;
};

RequestParser::RequestParser(const HttpLimits& limits)
    : impl_(std::make_unique<Impl>()), limits_(limits) {
  Reset();
}
RequestParser::~RequestParser() = default;

void RequestParser::Reset() {
  impl_->collector.emplace();
  impl_->chunks = {};
  impl_->chunked = false;
  impl_->left = impl_->body_bytes = 0;
  searched_ = 0;
}

bool RequestParser::body_done() const {
  return head_done() && (impl_->chunked ? impl_->chunks.done() : impl_->left == 0);
}
bool RequestParser::head_done() const { return impl_->collector->is_header_done(); }

size_t RequestParser::FindHead(std::string_view bytes, std::optional<Problem>* problem) {
  // A byte that cannot begin a method will not become one: TLS on a plain port, an empty line, binary junk.
  if (!bytes.empty() && searched_ == 0 && !(bytes.front() >= 'A' && bytes.front() <= 'Z') &&
      !(bytes.front() >= 'a' && bytes.front() <= 'z')) {
    *problem = FatalProblem(400, "http.malformed", "this is not an HTTP request");
    return 0;
  }
  const std::string_view view = bytes.substr(0, limits_.head_bytes);
  const size_t from = searched_ < 3 ? 0 : searched_ - 3;
  const size_t end = view.find("\r\n\r\n", from);
  if (end != std::string_view::npos) {
    return end + 4;
  }
  searched_ = view.size();
  if (bytes.size() >= limits_.head_bytes) {
    *problem = FatalProblem(431, "http.head_too_large",
                            "the head of the request is larger than the limit");
  }
  return 0;
}

std::optional<Problem> RequestParser::ParseHead(std::string_view bytes, Head* head) {
  if (auto problem = CheckRawHead(bytes, limits_); problem.has_value()) {
    return problem;
  }
  HeadCollector& collector = *impl_->collector;
  collector.head = head;
  collector.eager(false);
  error_code error;
  size_t used = collector.put({bytes.data(), bytes.size()}, error);
  // Without eagerness Beast stops after the request line.
  while (!error && !collector.is_header_done() && used < bytes.size()) {
    used += collector.put({bytes.data() + used, bytes.size() - used}, error);
  }
  collector.head = nullptr;
  if (error == http::error::bad_version) {
    return FatalProblem(505, "http.version", "only HTTP/1.1 and HTTP/1.0 are spoken here");
  }
  const bool framing = error == http::error::bad_content_length ||
                       error == http::error::multiple_content_length ||
                       error == http::error::bad_transfer_encoding;
  if (framing) {
    return FatalProblem(400, "http.framing",
                        "the length of the body is missing, wrong or given more than once");
  }
  if (error || !collector.is_header_done() || used != bytes.size()) {
    return FatalProblem(400, "http.malformed", "the head of the request is malformed");
  }
  if (auto problem = CheckFraming(*head); problem.has_value()) {
    return problem;
  }
  head->keep_alive = collector.keep_alive() && head->version == 11;
  head->chunked = collector.chunked();
  if (const auto length = collector.content_length(); length.has_value()) {
    head->content_length = *length;
    impl_->left = *length;
  }
  impl_->chunked = head->chunked;
  return std::nullopt;
}

RequestParser::BodyStep RequestParser::ParseBody(std::string_view bytes, uint64_t limit) {
  BodyStep step;
  if (impl_->chunked) {
    step.consumed = impl_->chunks.Feed(bytes, &step.data);
  } else {
    step.consumed = static_cast<size_t>(std::min<uint64_t>(impl_->left, bytes.size()));
    step.data = bytes.substr(0, step.consumed);
    impl_->left -= step.consumed;
  }
  impl_->body_bytes += step.data.size();
  if (impl_->chunks.broken()) {
    step.problem = FatalProblem(400, "http.chunking", "the body is not properly chunked",
                                "chunk extensions and trailers are not taken");
  } else if (impl_->body_bytes > limit) {
    step.problem = FatalProblem(413, "body.too_large", "the body is larger than the limit");
  }
  step.done = body_done();
  return step;
}

}  // namespace coffer::gateway
