// SPDX-License-Identifier: Apache-2.0
#include "cli/remote_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"

namespace coffer::cli {
namespace {

constexpr size_t kMostRefusal = size_t{64} << 10;
constexpr size_t kLongestSession = 1024;
constexpr const char* kRefusalField = "X-Coffer-Egress";  // of the proxy

// It is sent back in a head, so it has no character that ends a field.
bool IsSessionId(std::string_view id) {
  return !id.empty() && id.size() <= kLongestSession &&
         std::all_of(id.begin(), id.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

// Without parameters.
std::string_view MediaType(const net::HttpFields& fields) {
  const std::string* const type = fields.Find("Content-Type");
  std::string_view plain = type == nullptr ? std::string_view() : *type;
  plain = plain.substr(0, plain.find(';'));
  while (plain.ends_with(' ') || plain.ends_with('\t')) {
    plain.remove_suffix(1);
  }
  return plain;
}

}  // namespace

RemoteExchange::RemoteExchange(Kind kind, RemoteMessage message,
                               std::function<void(RemoteExchange&, const std::string&)> take)
    : kind_(kind), message_(std::move(message)), take_(std::move(take)) {}

void RemoteExchange::Begin(std::unique_ptr<ProxiedConnection> connection,
                           std::string head_and_body) {
  connection_ = std::move(connection);
  const std::string_view method = kind_ == Kind::kPost     ? "POST"
                                  : kind_ == Kind::kDelete ? "DELETE"
                                                           : "GET";
  connection_->Begin(method, std::move(head_and_body), *this);
}

std::unique_ptr<ProxiedConnection> RemoteExchange::TakeConnection() {
  if (connection_ != nullptr && (connection_->busy() || connection_->spent())) {
    connection_.reset();
  }
  return std::move(connection_);
}

void RemoteExchange::SetAnswered() {
  answered_ = true;
  if (shape_ == Shape::kEvents) {
    Cancel("");
  }
}

void RemoteExchange::Cancel(const std::string& why) {
  if (connection_ != nullptr && connection_->busy()) {
    connection_->Drop();
  }
  problem_ = why;
  done_ = true;
}

void RemoteExchange::ReadStatus(const net::HttpResponseHead& head) {
  const bool wants_answer = !message_.id.empty();
  if (status_ >= 300 && status_ < 400) {
    const std::string* const to = head.fields.Find("Location");
    problem_ = fmt::format(
        "it redirects to {}; redirects are not followed, so --url must be the place itself",
        to == nullptr ? "nowhere" : Printable(*to));
  } else if (status_ == 401 || (status_ == 403 && head.fields.Find(kRefusalField) == nullptr)) {
    problem_ = fmt::format(
        "it wants a credential, or another one (HTTP status {}): --header-file, --token-env",
        status_);
  } else if (status_ >= 400 || status_ < 200) {
    problem_ = fmt::format("it answers with the HTTP status {}", status_);
  } else if (shape_ == Shape::kIgnored && wants_answer) {
    const std::string_view type = MediaType(head.fields);
    problem_ = type.empty() ? "it gives no answer"
                            : fmt::format("it answers with the content type {}", Printable(type));
  }
}

void RemoteExchange::TakeHead(const net::HttpResponseHead& head) {
  status_ = head.status;
  const std::string_view type = MediaType(head.fields);
  const bool good = status_ == 200;
  if (head.fields.Find(kRefusalField) != nullptr) {
    shape_ = Shape::kRefusal;
  } else if (good && kind_ != Kind::kDelete && net::SameText(type, "text/event-stream")) {
    shape_ = Shape::kEvents;
  } else if ((good || status_ >= 400) && kind_ == Kind::kPost &&
             net::SameText(type, "application/json")) {
    shape_ = Shape::kJson;  // of an error too: it may have the answer
  }
  ReadStatus(head);
  const std::string* const coding = head.fields.Find("Content-Encoding");
  if (coding != nullptr && !net::SameText(*coding, "identity") && shape_ != Shape::kIgnored) {
    shape_ = Shape::kIgnored;
    problem_ = "its answer is compressed, which was not asked for";
  }
  if (const std::string* const session = head.fields.Find("Mcp-Session-Id")) {
    if (IsSessionId(*session) && head.fields.Count("Mcp-Session-Id") == 1) {
      session_ = *session;
    } else if (problem_.empty()) {
      problem_ = "its Mcp-Session-Id is malformed";
    }
  }
  if (shape_ == Shape::kIgnored || (!problem_.empty() && shape_ == Shape::kEvents)) {
    // Its body, however long, is not read.
    const bool empty = head.body.kind == net::HttpBody::Kind::kNone ||
                       (head.body.kind == net::HttpBody::Kind::kLength && head.body.length == 0);
    if (!empty) {
      Cancel(problem_);
    }
  }
}

void RemoteExchange::TakeBody(std::string_view piece) {
  if (done_ || shape_ == Shape::kIgnored) {
    return;
  }
  if (shape_ == Shape::kEvents) {
    const bool bounded = events_.Feed(piece, [this](const std::string& data) {
      if (!done_) {
        heard_ = true;
        take_(*this, data);
      }
    });
    if (!bounded && !done_) {
      Cancel(fmt::format("it sends an event longer than {} MiB", gateway::kMaxMcpLine >> 20));
    }
    return;
  }
  text_ += piece;
  const size_t most = shape_ == Shape::kJson ? gateway::kMaxMcpLine : kMostRefusal;
  if (text_.size() > most) {
    Cancel(problem_.empty() ? fmt::format("its answer is longer than {} MiB", most >> 20)
                            : problem_);
  }
}

void RemoteExchange::ReadRefusal() {
  const Result<Json> refusal = ParseJson(text_);
  const auto text = [&](const char* name) {
    const auto found =
        refusal.ok() && refusal->is_object() ? refusal->find(name) : Json::const_iterator();
    return refusal.ok() && refusal->is_object() && found != refusal->end() && found->is_string()
               ? found->get<std::string>()
               : std::string();
  };
  if (const std::string why = text("message"); !why.empty()) {
    const std::string fix = text("fix");
    problem_ = "it was not reached: " + why + (fix.empty() ? "" : " (" + fix + ")");
  }
}

void RemoteExchange::TakeEnd(const std::string& problem) {
  if (done_) {
    return;
  }
  done_ = true;
  if (shape_ == Shape::kRefusal) {
    ReadRefusal();
  }
  if (!problem.empty()) {
    problem_ = problem_.empty() ? problem : problem_;
    return;
  }
  if (shape_ == Shape::kJson) {
    heard_ = true;
    take_(*this, text_);
  } else if (shape_ == Shape::kEvents && kind_ != Kind::kListen && problem_.empty()) {
    problem_ = "its stream of events ended before the answer";
  }
}

}  // namespace coffer::cli
