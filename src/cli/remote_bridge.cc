// SPDX-License-Identifier: Apache-2.0
#include "cli/remote_bridge.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/exit_codes.h"
#include "base/print.h"
#include "base/text.h"
#include "call/run/egress_listeners.h"

namespace coffer::cli {
namespace {

using ExchangeKind = RemoteExchange::Kind;
using std::chrono::milliseconds;

constexpr size_t kMostExchanges = 16;  // at the same time; further messages wait
constexpr size_t kMostIdle = 4;
constexpr size_t kMostQueuedOut = size_t{8} << 20;  // that is not read on stdout
constexpr size_t kMostResumes = 64;                 // streams that wait to be taken up again
constexpr milliseconds kSoonestRetry{200}, kLatest{60'000}, kGoodbye{1000};
constexpr size_t kLongestVersion = 32;

gateway::McpId IdOf(const Json& message) {
  const auto id = message.find("id");
  return id == message.end() || !(id->is_string() || id->is_number_integer()) ? "" : PrintJson(*id);
}

std::string MethodOf(const Json& message) {
  const auto method = message.find("method");
  return method == message.end() || !method->is_string() ? "" : method->get<std::string>();
}

// It goes into a field of a head.
bool IsVersion(std::string_view text) {
  return !text.empty() && text.size() <= kLongestVersion &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '.';
         });
}

}  // namespace

milliseconds NextPause(milliseconds last, std::optional<milliseconds> asked, bool heard) {
  const milliseconds wanted = asked.value_or(kSoonestRetry * 5);
  return std::clamp(heard ? wanted : std::max(wanted, last * 2), kSoonestRetry, kLatest);
}

RemoteBridge::RemoteBridge(RemotePlace place, uint16_t proxy_port, LineReader& in, LineWriter& out)
    : place_(std::move(place)),
      secrets_(place_.headers),
      proxy_port_(proxy_port),
      in_(in),
      out_(out) {}

RemoteBridge::~RemoteBridge() = default;

std::string RemoteBridge::Request(ExchangeKind kind, const RemoteMessage& message,
                                  const std::string& last_id) const {
  const bool post = kind == ExchangeKind::kPost;
  std::string head =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: cofferdam/{}\r\nAccept: {}\r\n",
                  post                            ? "POST"
                  : kind == ExchangeKind::kDelete ? "DELETE"
                                                  : "GET",
                  place_.url, place_.host, COFFER_VERSION,
                  post ? "application/json, text/event-stream" : "text/event-stream");
  if (post) {
    head += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n",
                        message.body.size());
  }
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) {
      head += fmt::format("{}: {}\r\n", name, value);
    }
  };
  add("MCP-Protocol-Version", version_);
  add("Mcp-Session-Id", session_);
  add("Last-Event-ID", last_id);
  for (const auto& [name, value] : place_.headers) {
    add(name, value);
  }
  return head + "\r\n" + message.body;
}

void RemoteBridge::Fail(const RemoteMessage& message, const std::string& why) {
  const std::string words = secrets_.Remove(why);
  if (!message.id.empty()) {
    out_.Add(
        gateway::McpErrorLine(message.id, {gateway::McpErrorCode{kNoRemoteAnswer}, words, {}}));
  } else {
    PrintError(Printable(words));
  }
}

void RemoteBridge::Begin(ExchangeKind kind, RemoteMessage message, const std::string& last_id) {
  std::unique_ptr<ProxiedConnection> connection;
  std::erase_if(idle_, [](const auto& one) { return one->spent(); });
  if (!idle_.empty()) {
    connection = std::move(idle_.back());
    idle_.pop_back();
  } else {
    Result<std::unique_ptr<ProxiedConnection>> opened = ProxiedConnection::Open(proxy_port_);
    if (!opened.ok()) {
      Fail(message, opened.error().message);
      return;
    }
    connection = std::move(opened).value();
  }
  std::string request = Request(kind, message, last_id);
  exchanges_.push_back(std::make_unique<RemoteExchange>(
      kind, std::move(message),
      [this](RemoteExchange& exchange, const std::string& text) { Deliver(exchange, text); }));
  exchanges_.back()->Begin(std::move(connection), std::move(request));
}

void RemoteBridge::TakeLine(std::string_view line) {
  const Result<Json> message = ParseJson(line);
  if (!message.ok() || !message->is_object()) {
    return;  // the other end is ours
  }
  const std::string method = MethodOf(*message);
  if (method == "notifications/cancelled") {
    CancelRequest(*message);
  }
  waiting_.push_back({method, method.empty() ? "" : IdOf(*message), std::string(line)});
}

// Its answer is not wanted any more, so its connection is not.
void RemoteBridge::CancelRequest(const Json& message) {
  const auto params = message.find("params");
  if (params == message.end() || !params->is_object() || !params->contains("requestId")) {
    return;
  }
  const gateway::McpId id = PrintJson(params->at("requestId"));
  std::erase_if(waiting_, [&](const RemoteMessage& one) { return one.id == id; });
  std::erase_if(resumes_, [&](const Resume& one) { return one.message.id == id; });
  for (const std::unique_ptr<RemoteExchange>& exchange : exchanges_) {
    if (exchange->message().id == id) {
      exchange->SetAnswered();
      exchange->Cancel("");
    }
  }
}

// A conversation begins with one message after the other; then they go side by side.
bool RemoteBridge::Blocked() const {
  const auto begins = [](const std::unique_ptr<RemoteExchange>& one) {
    return one->message().method == "initialize" ||
           one->message().method == "notifications/initialized";
  };
  return exchanges_.size() >= kMostExchanges ||
         std::any_of(exchanges_.begin(), exchanges_.end(), begins);
}

void RemoteBridge::BeginWaiting() {
  const Clock::time_point now = Clock::now();
  while (!waiting_.empty() && !Blocked()) {
    RemoteMessage message = std::move(waiting_.front());
    waiting_.pop_front();
    Begin(ExchangeKind::kPost, std::move(message), "");
  }
  for (size_t i = 0; i < resumes_.size();) {  // each has a pause of its own
    if (resumes_[i].at > now) {
      ++i;
      continue;
    }
    Resume resume = std::move(resumes_[i]);
    resumes_.erase(resumes_.begin() + static_cast<std::ptrdiff_t>(i));
    Begin(ExchangeKind::kResume, std::move(resume.message), resume.last_id);
  }
  if (listen_at_ && *listen_at_ <= now) {
    listen_at_.reset();
    Begin(ExchangeKind::kListen, {}, listen_id_);
  }
}

void RemoteBridge::DeliverOne(RemoteExchange& exchange, Json message) {
  if (!message.is_object()) {
    return;
  }
  const bool answers = MethodOf(message).empty() && !exchange.message().id.empty() &&
                       IdOf(message) == exchange.message().id;
  if (answers && exchange.message().method == "initialize" && message.contains("result") &&
      message.at("result").is_object()) {
    const auto version = message.at("result").find("protocolVersion");
    if (version != message.at("result").end() && version->is_string() &&
        IsVersion(version->get_ref<const std::string&>())) {
      version_ = version->get<std::string>();
    }
    session_ = exchange.session();
  }
  secrets_.Remove(message);
  if (!answers && exchange.status() >= 400) {  // why it has that status; no message of MCP
    const Json error = message.value("error", Json());
    if (error.is_object() && error.contains("message") && error.at("message").is_string()) {
      exchange.Explain(Printable(error.at("message").get<std::string>()));
    }
    return;
  }
  out_.Add(PrintJson(message) + "\n");
  if (answers) {
    exchange.SetAnswered();
  }
}

void RemoteBridge::Deliver(RemoteExchange& exchange, const std::string& text) {
  const Result<Json> message = ParseJson(text);
  if (!message.ok()) {
    if (exchange.problem().empty()) {
      exchange.Cancel("it sends what is not JSON");
    }
    return;
  }
  if (message->is_array()) {  // a batch, as 2025-03-26 has it
    for (const Json& one : *message) {
      DeliverOne(exchange, one);
    }
  } else {
    DeliverOne(exchange, *message);
  }
}

void RemoteBridge::EndListening(const RemoteExchange& exchange) {
  if (exchange.status() != 200 && exchange.status() < 500 && exchange.status() != 0) {
    return;  // it has no such stream
  }
  const bool failed = !exchange.problem().empty() || exchange.status() != 200;
  listen_delay_ = failed ? NextPause(listen_delay_, kSoonestRetry, false)
                         : NextPause(listen_delay_, exchange.events().retry(), exchange.heard());
  listen_id_ = exchange.events().last_id().empty() ? listen_id_ : exchange.events().last_id();
  listen_at_ = Clock::now() + listen_delay_;
}

void RemoteBridge::End(RemoteExchange& exchange) {
  const RemoteMessage& message = exchange.message();
  if (exchange.kind() == ExchangeKind::kListen) {
    EndListening(exchange);
    return;
  }
  if (exchange.kind() == ExchangeKind::kDelete) {
    return;
  }
  const bool stream = !exchange.events().last_id().empty();
  if (!exchange.answered() && stream && !message.id.empty() && resumes_.size() < kMostResumes) {
    RemoteMessage again = message;
    again.pause = NextPause(message.pause, exchange.events().retry(), exchange.heard());
    const Clock::time_point at = Clock::now() + again.pause;
    resumes_.push_back({std::move(again), exchange.events().last_id(), at});
    return;
  }
  // Servers that do not know a session say 404, and some 400.
  const bool lost = (exchange.status() == 404 || exchange.status() == 400) && !session_.empty() &&
                    !exchange.answered();
  if (!exchange.answered() && (!message.id.empty() || !exchange.problem().empty())) {
    Fail(message, lost                         ? "the server has ended the session"
                  : exchange.problem().empty() ? "its answer is for another request"
                                               : exchange.problem());
  }
  if (lost) {
    ending_ = true;  // the next call begins a new conversation
    session_.clear();
  }
  if (message.method == "notifications/initialized" && exchange.problem().empty()) {
    listen_at_ = Clock::now();
  }
}

void RemoteBridge::Sweep() {
  for (auto at = exchanges_.begin(); at != exchanges_.end();) {
    if (!(*at)->done()) {
      ++at;
      continue;
    }
    std::unique_ptr<RemoteExchange> exchange = std::move(*at);
    at = exchanges_.erase(at);
    End(*exchange);
    if (std::unique_ptr<ProxiedConnection> kept = exchange->TakeConnection();
        kept != nullptr && idle_.size() < kMostIdle) {
      idle_.push_back(std::move(kept));
    }
  }
}

int RemoteBridge::Timeout() const {
  Clock::time_point next = Clock::now() + kLatest;
  for (const Resume& resume : resumes_) {
    next = std::min(next, resume.at);
  }
  next = listen_at_ ? std::min(next, *listen_at_) : next;
  const auto left = std::chrono::ceil<milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::max<int64_t>(left, 0));
}

void RemoteBridge::Step() {
  const bool may_read = out_.pending() < kMostQueuedOut;
  std::vector<pollfd> polled = {
      {in_.ended() || ending_ || waiting_.size() > kMostExchanges ? -1 : STDIN_FILENO, POLLIN, 0},
      {out_.pending() > 0 ? STDOUT_FILENO : -1, POLLOUT, 0}};
  std::vector<ProxiedConnection*> connections;
  for (const std::unique_ptr<RemoteExchange>& exchange : exchanges_) {
    connections.push_back(exchange->connection());
    polled.push_back({connections.back()->fd(), connections.back()->events(may_read), 0});
  }
  ::poll(polled.data(), polled.size(), Timeout());
  for (size_t i = 0; i < connections.size(); ++i) {
    if (polled[i + 2].revents != 0) {
      connections[i]->Handle(polled[i + 2].revents);
    }
  }
  if (polled[1].revents != 0) {
    out_.Write();
  }
  if (polled[0].revents != 0) {
    in_.Read([this](std::string_view line) { TakeLine(line); }, [] {});
  }
  Sweep();
  BeginWaiting();
}

// The server may forget the session at once.
void RemoteBridge::SayGoodbye() {
  exchanges_.clear();
  listen_at_.reset();
  resumes_.clear();
  waiting_.clear();
  if (session_.empty()) {
    return;
  }
  Begin(ExchangeKind::kDelete, {}, "");
  const Clock::time_point until = Clock::now() + kGoodbye;
  while (!exchanges_.empty() && Clock::now() < until) {
    ProxiedConnection* const connection = exchanges_.front()->connection();
    pollfd polled{connection->fd(), connection->events(true), 0};
    ::poll(&polled, 1, 100);
    if (polled.revents != 0) {
      connection->Handle(polled.revents);
    }
    Sweep();
  }
}

void RemoteBridge::Serve(const std::vector<std::string>& early) {
  for (const std::string& line : early) {
    TakeLine(line);
  }
  BeginWaiting();
  while (!in_.ended() && !out_.broken() && !ending_) {
    Step();
  }
  while (ending_ && out_.pending() > 0 && !out_.broken()) {
    pollfd polled{STDOUT_FILENO, POLLOUT, 0};
    ::poll(&polled, 1, -1);
    out_.Write();
  }
  SayGoodbye();
}

int BridgeVerb() {
  LineReader in(STDIN_FILENO, gateway::kMaxMcpLine);
  LineWriter out(STDOUT_FILENO);
  std::optional<RemotePlace> place;
  std::vector<std::string> early;
  while (!place && !in.ended()) {
    in.Read(
        [&](std::string_view line) {
          if (place) {
            early.emplace_back(line);
            return;
          }
          Result<RemotePlace> read = RemotePlace::Read(line);
          if (read.ok()) {
            place = std::move(read).value();
          } else {
            PrintError(read.error());
          }
        },
        [] {});
  }
  if (!place) {
    PrintError(Refused("policy.usage", "coffer mcp wrap --url starts this, and nothing else does",
                       "write: coffer mcp wrap --url URL"));
    return kExitRefused;
  }
  RemoteBridge bridge(std::move(*place), call::kEgressPort, in, out);
  bridge.Serve(early);
  return 0;
}

}  // namespace coffer::cli
