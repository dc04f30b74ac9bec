// SPDX-License-Identifier: Apache-2.0
#include "egress/dial.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <time.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <charconv>
#include <cstdlib>
#include <map>

#include "base/clock.h"
#include "base/sys.h"
#include "base/trust_files.h"
#include "net/asio.h"
#include "policy/address_class.h"

namespace coffer::egress {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;
using net::IoExecutor;
using net::kAwaitTuple;
using net::Task;
using tcp = boost::asio::ip::tcp;

using TcpStream = beast::basic_stream<tcp, IoExecutor>;
using Resolver = asio::ip::basic_resolver<tcp, IoExecutor>;
using Request = http::request<http::string_body>;
using Endpoints = std::vector<tcp::endpoint>;

constexpr std::chrono::seconds kWholeDelivery{10};
constexpr Nanos kRemembered = std::chrono::seconds(30);
constexpr size_t kMostAtOnce = 128;
constexpr uint32_t kMostHead = 8 * 1024;
constexpr uint32_t kLongestRetry = 24 * 3600;

struct Outcome {
  DeliverResult result = DeliverResult::kUnreachable;
  uint32_t status = 0;
  uint32_t retry_after = 0;
};

Outcome Failed(error_code error) {
  return {error == beast::error::timeout ? DeliverResult::kTimeout : DeliverResult::kUnreachable, 0,
          0};
}

Status LoadTrust(ssl::context& context) {
  SSL_CTX* const raw = context.native_handle();
  ::SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  context.set_verify_mode(ssl::verify_peer);
  const char* const named = ::getenv("SSL_CERT_FILE");
  if (named != nullptr) {
    if (::SSL_CTX_load_verify_file(raw, named) != 1) {
      ::ERR_clear_error();
      return HostFault("daemon.trust", std::string("no certificates in ") + named,
                       "SSL_CERT_FILE names the file");
    }
    return {};
  }
  for (const char* const path : kTrustFiles) {
    if (::SSL_CTX_load_verify_file(raw, path) == 1) {
      return {};
    }
    ::ERR_clear_error();
  }
  return HostFault("daemon.trust", "this host has no list of trusted certificates",
                   "install ca-certificates, or name a file in SSL_CERT_FILE");
}

Request RequestFor(const EgressReceiver& to, const DeliverHeader& header, std::string body) {
  const Receiver& receiver = to.receiver;
  Request request(http::verb::post, receiver.target, 11);
  const bool v6 = receiver.host.find(':') != std::string::npos;
  std::string host = v6 ? "[" + receiver.host + "]" : receiver.host;
  if (receiver.port != (receiver.tls ? 443 : 80)) {
    host += fmt::format(":{}", receiver.port);
  }
  request.set(http::field::host, host);
  request.set(http::field::user_agent, "cofferdam/" COFFER_VERSION);
  request.set(http::field::connection, "close");
  if (receiver.kind == Receiver::Kind::kOtlp) {
    request.set(http::field::content_type, "application/json");
    for (const auto& [name, value] : to.headers) {
      request.set(name, value);
    }
  } else {
    request.set(http::field::content_type, "application/cloudevents+json; charset=utf-8");
    request.set("Webhook-Id", header.id);
    request.set("Webhook-Timestamp", std::to_string(header.time));
    if (!to.secret.empty()) {
      request.set("Webhook-Signature", SignatureOf(to.secret, header.id, header.time, body));
    }
  }
  request.body() = std::move(body);
  request.prepare_payload();
  return request;
}

// Sends, and reads the head of what comes back.
template <typename Stream>
Task<Outcome> Exchange(Stream& stream, const Request& request) {
  const auto [write_error, written] = co_await http::async_write(stream, request, kAwaitTuple);
  if (write_error) {
    co_return Failed(write_error);
  }
  beast::flat_buffer buffer(kMostHead);
  http::response_parser<http::empty_body> parser;
  parser.header_limit(kMostHead);
  parser.body_limit(boost::none);  // however much it announces, none of it is read
  const auto [read_error, read] =
      co_await http::async_read_header(stream, buffer, parser, kAwaitTuple);
  if (read_error) {
    co_return Failed(read_error);
  }
  const auto& head = parser.get();
  Outcome outcome{DeliverResult::kAnswered, head.result_int(), 0};
  if (outcome.status < 100 || outcome.status > 599) {
    co_return Outcome{};
  }
  const auto said = head[http::field::retry_after];
  outcome.retry_after =
      ParseRetryAfter({said.data(), said.size()},
                      std::chrono::duration_cast<std::chrono::seconds>(WallTime()).count());
  co_return outcome;
}

class BeastDialer : public Dialer {
 public:
  BeastDialer(net::Loop& loop, const std::vector<EgressReceiver>& receivers,
              const AddressGuard& guard)
      : executor_(net::ContextOf(loop).get_executor()),
        trust_(ssl::context::tls_client),
        receivers_(receivers),
        guard_(guard) {}

  Status Load() {
    const bool tls = std::any_of(receivers_.begin(), receivers_.end(),
                                 [](const EgressReceiver& one) { return one.receiver.tls; });
    return tls ? LoadTrust(trust_) : Status();
  }

  void Post(const DeliverHeader& header, std::string body,
            std::function<void(const DeliverAnswer&)> done) override {
    const auto found = std::find_if(
        receivers_.begin(), receivers_.end(),
        [&](const EgressReceiver& one) { return one.receiver.name == header.receiver; });
    if (found == receivers_.end() || running_ >= kMostAtOnce) {
      DeliverAnswer answer;
      answer.number = header.number;
      answer.result = static_cast<uint32_t>(found == receivers_.end() ? DeliverResult::kUnknown
                                                                      : DeliverResult::kBusy);
      done(answer);
      return;
    }
    ++running_;
    asio::co_spawn(executor_, Deliver(*found, header, std::move(body)),
                   [this, number = header.number, done = std::move(done)](
                       const std::exception_ptr& thrown, Outcome outcome) {
                     --running_;
                     if (thrown) {
                       outcome = Outcome{};
                     }
                     DeliverAnswer answer;
                     answer.number = number;
                     answer.result = static_cast<uint32_t>(outcome.result);
                     answer.status = outcome.status;
                     answer.retry_after = outcome.retry_after;
                     done(answer);
                   });
  }

 private:
  Task<Outcome> Deliver(const EgressReceiver& to, DeliverHeader header, std::string body) {
    Outcome refused;
    Endpoints endpoints;
    const bool resolved = co_await Resolve(to.receiver, endpoints, refused);
    if (!resolved) {
      co_return refused;
    }
    const Request request = RequestFor(to, header, std::move(body));
    TcpStream plain(executor_);
    plain.expires_after(kWholeDelivery);
    const auto [connect_error, endpoint] = co_await plain.async_connect(endpoints, kAwaitTuple);
    if (connect_error) {
      remembered_.erase(to.receiver.name);
      co_return Failed(connect_error);
    }
    if (!to.receiver.tls) {
      const Outcome outcome = co_await Exchange(plain, request);
      co_return outcome;
    }
    ssl::stream<TcpStream> stream(std::move(plain), trust_);
    stream.set_verify_callback(ssl::host_name_verification(to.receiver.host));
    if (error_code not_numeric;
        asio::ip::make_address(to.receiver.host, not_numeric), not_numeric) {
      ::SSL_set_tlsext_host_name(stream.native_handle(), to.receiver.host.c_str());
    }
    const auto [handshake_error] =
        co_await stream.async_handshake(ssl::stream_base::client, kAwaitTuple);
    if (handshake_error) {
      const bool untrusted = ::SSL_get_verify_result(stream.native_handle()) != X509_V_OK;
      co_return untrusted ? Outcome{DeliverResult::kUntrusted, 0, 0} : Failed(handshake_error);
    }
    const Outcome outcome = co_await Exchange(stream, request);
    co_return outcome;
  }

  // The addresses that may be dialled.
  Task<bool> Resolve(const Receiver& receiver, Endpoints& endpoints, Outcome& refused) {
    const auto known = remembered_.find(receiver.name);
    if (known != remembered_.end() && known->second.until > BootTime()) {
      endpoints = known->second.endpoints;
      co_return true;
    }
    error_code not_numeric;
    const asio::ip::address written = asio::ip::make_address(receiver.host, not_numeric);
    Endpoints found;
    if (!not_numeric) {
      found.emplace_back(written, receiver.port);
    } else {
      Resolver resolver(executor_);
      const auto [error, results] = co_await resolver.async_resolve(
          receiver.host, std::to_string(receiver.port), kAwaitTuple);
      for (const auto& result : results) {
        found.push_back(result.endpoint());
      }
    }
    for (const tcp::endpoint& endpoint : found) {
      if (MayDial(receiver, guard_, endpoint.address().to_string())) {
        endpoints.push_back(endpoint);
      }
    }
    if (endpoints.empty()) {
      refused.result = found.empty() ? DeliverResult::kUnreachable : DeliverResult::kForbidden;
      co_return false;
    }
    remembered_[receiver.name] = {endpoints, BootTime() + kRemembered};
    co_return true;
  }

  struct Remembered {
    Endpoints endpoints;
    Nanos until{0};
  };
  const IoExecutor executor_;
  ssl::context trust_;
  const std::vector<EgressReceiver>& receivers_;
  const AddressGuard& guard_;
  std::map<std::string, Remembered> remembered_;
  size_t running_ = 0;
};

}  // namespace

bool MayDial(const Receiver& receiver, const AddressGuard& guard, const std::string& text) {
  const auto address = policy::IpAddress::Parse(text);
  if (!address) {
    return false;
  }
  const auto block = policy::BlockOf(policy::Unmapped(*address));
  if (block &&
      (block->kind == policy::AddressClass::kUnspecified ||
       block->kind == policy::AddressClass::kMulticast || block->range.text() == "240.0.0.0/4")) {
    return false;
  }
  if (policy::IpAddress::Parse(receiver.host)) {
    return true;  // the operator wrote this very address
  }
  if (block && block->kind == policy::AddressClass::kLoopback) {
    return receiver.this_host;
  }
  return !guard.Object(policy::HostName(), *address);
}

uint32_t ParseRetryAfter(std::string_view text, int64_t now) {
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc::result_out_of_range) {
    return kLongestRetry;
  }
  if (error != std::errc() || end != text.data() + text.size()) {
    tm parts{};
    const std::string date(text);
    const char* const rest = ::strptime(date.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    if (rest == nullptr || *rest != '\0') {
      return 0;
    }
    seconds = static_cast<int64_t>(::timegm(&parts)) - now;
  }
  return static_cast<uint32_t>(std::clamp<int64_t>(seconds, 0, kLongestRetry));
}

Result<std::unique_ptr<Dialer>> MakeDialer(net::Loop& loop,
                                           const std::vector<EgressReceiver>& receivers,
                                           const AddressGuard& guard) {
  auto made = std::make_unique<BeastDialer>(loop, receivers, guard);
  TRY(made->Load());
  return std::unique_ptr<Dialer>(std::move(made));
}

}  // namespace coffer::egress
