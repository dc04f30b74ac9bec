// SPDX-License-Identifier: Apache-2.0
#include "egress/dial.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <time.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <charconv>
#include <map>

#include "base/clock.h"
#include "egress/buffered_stream.h"
#include "egress/connect.h"
#include "egress/deliver_receiver.h"
#include "egress/name_lookup.h"
#include "egress/upstream_trust.h"
#include "egress/watchdog.h"
#include "net/asio.h"
#include "net/http_head.h"

namespace coffer::egress {
namespace {

using net::Task;
using policy::IpAddress;
using Addresses = std::vector<IpAddress>;

constexpr std::chrono::seconds kWholeDelivery{10};
constexpr Nanos kRemembered = std::chrono::seconds(30);
constexpr size_t kMostAtOnce = 128;
constexpr size_t kMostHead = 8 << 10;
constexpr uint32_t kLongestRetry = 24 * 3600;

struct Outcome {
  DeliverResult result = DeliverResult::kUnreachable;
  uint32_t status = 0;
  uint32_t retry_after = 0;
};

Outcome Failed(Nanos until) {
  return {BootTime() >= until ? DeliverResult::kTimeout : DeliverResult::kUnreachable, 0, 0};
}

// The head of the request, with the length of the body that follows it.
std::string HeadOf(const EgressReceiver& to, const DeliverHeader& header, std::string_view body) {
  const Receiver& receiver = to.receiver;
  const bool v6 = receiver.host.find(':') != std::string::npos;
  const bool usual_port = receiver.port == (receiver.tls ? 443 : 80);
  std::string head = fmt::format("POST {} HTTP/1.1\r\nHost: {}{}{}{}\r\n", receiver.target,
                                 v6 ? "[" : "", receiver.host, v6 ? "]" : "",
                                 usual_port ? "" : fmt::format(":{}", receiver.port));
  const auto add = [&head](std::string_view name, std::string_view value) {
    head += fmt::format("{}: {}\r\n", name, value);
  };
  add("User-Agent", "cofferdam/" COFFER_VERSION);
  add("Connection", "close");
  if (receiver.kind == Receiver::Kind::kOtlp) {
    add("Content-Type", "application/json");
    for (const auto& [name, value] : to.headers) {
      add(name, value);
    }
  } else {
    add("Content-Type", "application/cloudevents+json; charset=utf-8");
    add("Webhook-Id", header.id);
    add("Webhook-Timestamp", std::to_string(header.time));
    if (!to.secret.empty()) {
      add("Webhook-Signature", SignatureOf(to.secret, header.id, header.time, body));
    }
  }
  add("Content-Length", std::to_string(body.size()));
  return head + "\r\n";
}

// What the head of an answer says; nothing of the body is read, however much it announces.
Outcome OutcomeOf(const net::HttpResponseHead& head) {
  Outcome outcome{DeliverResult::kAnswered, static_cast<uint32_t>(head.status), 0};
  if (const std::string* const said = head.fields.Find("Retry-After"); said != nullptr) {
    outcome.retry_after = ParseRetryAfter(
        *said, std::chrono::duration_cast<std::chrono::seconds>(WallTime()).count());
  }
  return outcome;
}

class ReceiverDialer : public Dialer {
 public:
  ReceiverDialer(net::Loop& loop, const std::vector<EgressReceiver>& receivers,
                 const AddressGuard& guard)
      : executor_(net::ContextOf(loop).get_executor()),
        names_(executor_),
        receivers_(receivers),
        guard_(guard) {}

  Status Load() {
    if (std::any_of(receivers_.begin(), receivers_.end(),
                    [](const EgressReceiver& one) { return one.receiver.tls; })) {
      TRY_ASSIGN(trust_, UpstreamTrust::OfThisHost().With(""));
    }
    return {};
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
    net::asio::co_spawn(executor_, Deliver(*found, header, std::move(body)),
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
    const Receiver& receiver = to.receiver;
    Outcome refused;
    Addresses addresses = co_await Resolve(receiver, refused);
    if (addresses.empty()) {
      co_return refused;
    }
    const Nanos until = BootTime() + kWholeDelivery;
    Connected connected =
        co_await ConnectToOneOf(executor_, std::move(addresses), receiver.port, until);
    if (connected.stream == nullptr) {
      remembered_.erase(receiver.name);
      co_return Failed(until);
    }
    std::unique_ptr<net::Stream> stream = std::move(connected.stream);
    net::Stream* open = stream.get();
    Watchdog watchdog(executor_, [open] { open->Close(); });
    watchdog.Until(until);
    if (receiver.tls) {
      UniqueSsl ssl = MakeTlsClient(trust_->context(), receiver.host);
      if (ssl == nullptr) {
        co_return Outcome{};
      }
      auto tls = std::make_unique<TlsStream>(std::move(stream), std::move(ssl), "");
      const bool shaken = co_await tls->Handshake();
      if (::SSL_get_verify_result(tls->ssl()) != X509_V_OK) {
        co_return Outcome{DeliverResult::kUntrusted, 0, 0};
      }
      if (!shaken) {
        co_return Failed(until);
      }
      stream = std::move(tls);
    }
    BufferedStream server(std::move(stream));
    const std::string head = HeadOf(to, header, body);
    const bool sent = co_await server.stream().Write(head, body);
    std::optional<std::string> answer;
    if (sent) {
      answer = co_await server.ReadHead(kMostHead);
    }
    if (!answer) {
      co_return Failed(until);
    }
    const Result<net::HttpResponseHead> read = net::ParseResponseHead(*answer, "POST");
    co_return read.ok() ? OutcomeOf(*read) : Outcome{};
  }

  // The addresses that may be dialled. None: `refused` says why.
  Task<Addresses> Resolve(const Receiver& receiver, Outcome& refused) {
    const auto known = remembered_.find(receiver.name);
    if (known != remembered_.end() && known->second.until > BootTime()) {
      co_return known->second.addresses;
    }
    Addresses found;
    if (const std::optional<IpAddress> written = IpAddress::Parse(receiver.host)) {
      found.push_back(*written);
    } else {
      found = co_await names_.Find(receiver.host);
    }
    Addresses good;
    for (const IpAddress& address : found) {
      if (MayDial(receiver, guard_, address)) {
        good.push_back(address);
      }
    }
    if (good.empty()) {
      refused.result = found.empty() ? DeliverResult::kUnreachable : DeliverResult::kForbidden;
      co_return good;
    }
    remembered_[receiver.name] = {good, BootTime() + kRemembered};
    co_return good;
  }

  struct Remembered {
    Addresses addresses;
    Nanos until{0};
  };
  const net::IoExecutor executor_;
  NameLookup names_;
  std::shared_ptr<ServerTrust> trust_;  // null: no receiver has TLS
  const std::vector<EgressReceiver>& receivers_;
  const AddressGuard& guard_;
  std::map<std::string, Remembered> remembered_;
  size_t running_ = 0;
};

}  // namespace

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
  auto made = std::make_unique<ReceiverDialer>(loop, receivers, guard);
  TRY(made->Load());
  return std::unique_ptr<Dialer>(std::move(made));
}

}  // namespace coffer::egress
