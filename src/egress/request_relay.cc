// SPDX-License-Identifier: Apache-2.0
#include "egress/request_relay.h"

#include <fmt/format.h>

#include "egress/body_relay.h"
#include "egress/carry.h"
#include "egress/peer_watch.h"

namespace coffer::egress {
namespace {

using Kind = net::HttpBody::Kind;
using net::Task;

constexpr int kMostInterim = 8;  // responses of 1xx before the one that counts

// The line of a value that would leave in what comes before the body; 0: none.
size_t FindInHead(const WatchedValues& values, const ProxyRequest& request) {
  const size_t line = values.FindIn(request.UpstreamHead());
  return line != 0 ? line : values.FindInTarget(request.path.text() + request.query);
}

}  // namespace

Task<void> RequestRelay::Run(std::string head) {
  for (bool more = true; more;) {
    if (head.empty()) {
      watchdog_.Within(kBetweenTime);
      if (client_.buffer().empty()) {
        const bool any = co_await client_.Fill();
        if (!any) {
          co_return;
        }
      }
      watchdog_.Within(kHeadTime);
      std::optional<std::string> read = co_await client_.ReadHead(net::kMostHeadBytes);
      if (!read) {
        if (client_.buffer().size() >= net::kMostHeadBytes) {
          co_await Refuse(431, "head_too_long", "the head of the request is too long", "");
        } else if (!client_.buffer().empty()) {
          DenyUnread();
        }
        co_return;
      }
      head = std::move(*read);
    }
    more = co_await Exchange(std::exchange(head, {}));
  }
  co_await client_.stream().FinishWriting();
}

// Bytes came and no head.
void RequestRelay::DenyUnread() {
  Traffic traffic;
  if (tunnel_) {
    traffic.host = tunnel_->host.text();
    traffic.port = tunnel_->port;
  }
  OpenTraffic open(context_, std::move(traffic));
  open.Deny(kNoHead, tunnel_ && !tls_ ? AnyBytesFix(context_.grants.of_tool, open.traffic()) : "");
}

// The time of the grant, or the time that the rule allows, is over.
void RequestRelay::EndBoth() {
  client_.stream().Close();
  End();
}

void RequestRelay::End() {
  if (upstream_ != nullptr) {
    upstream_->stream().Close();
  }
}

Task<void> RequestRelay::Refuse(int status, std::string code, std::string message,
                                std::string fix) {
  if (!answered_) {
    const std::string answer = RefusalAnswer(status, code, message, fix);
    const bool told = co_await client_.Write(answer);
    (void)told;  // a client that is gone need not know
  }
}

Task<void> RequestRelay::RefuseValue(OpenTraffic& open, size_t line) {
  open.DenyValue(line);
  co_await Refuse(403, "never_send", open.traffic().reason, open.traffic().fix);
}

// One request with its answer. False: the connection ends.
Task<bool> RequestRelay::Exchange(const std::string& head) {
  answered_ = false;
  const Result<ProxyRequest> request =
      tunnel_ ? ParseTunnelRequest(head, *tunnel_, tls_) : ParseProxyRequest(head);
  Traffic traffic;
  if (tunnel_) {
    traffic.host = tunnel_->host.text();
    traffic.port = tunnel_->port;
  }
  if (!request.ok()) {
    OpenTraffic open(context_, std::move(traffic));
    // What is wrong with it may quote the value.
    const size_t quoted = context_.watched == nullptr ? 0 : context_.watched->FindInTarget(head);
    if (quoted != 0) {
      co_await RefuseValue(open, quoted);
      co_return false;
    }
    open.Deny(request.error().message, "");
    co_await Refuse(RefusalStatus(request.error()), request.error().code, request.error().message,
                    "");
    co_return false;
  }
  traffic.host = request->to.host.text();
  traffic.port = request->to.port;
  traffic.method = request->method;
  traffic.path = request->path.text();
  if (request->form == ProxyRequest::Form::kConnect) {
    OpenTraffic open(context_, std::move(traffic));
    open.Deny("CONNECT on a connection that was used before", "");
    co_await Refuse(400, "connect_not_first", "CONNECT needs a connection of its own", "");
    co_return false;
  }
  // Before everything that could wait, dial or write the path down.
  const size_t held = context_.watched == nullptr ? 0 : FindInHead(*context_.watched, *request);
  if (held != 0) {
    traffic.path.clear();
    if (context_.watched->FindIn(traffic.method) != 0) {
      traffic.method.clear();
    }
    if (context_.watched->FindIn(traffic.host) != 0) {
      traffic.host.clear();
    }
    OpenTraffic open(context_, std::move(traffic));
    co_await RefuseValue(open, held);
    co_return false;
  }
  const policy::EgressVerdict verdict = policy::Judge(context_.grants.rules, request->request());
  OpenTraffic open(context_, std::move(traffic));
  open.Deny(verdict.message, verdict.fix);  // what is written down if the call ends while it waits
  if (verdict.asks != nullptr) {
    watchdog_.Stop();  // the request for access has a time of its own
  }
  const AccessVerdict admission = co_await context_.access.Admit(
      verdict, request->to, [this] { return client_.stream().PeerGone(); });
  watchdog_.Within(kHeadTime);
  if (admission.rule == nullptr) {
    open.Deny(admission.message, admission.fix);
    co_await Refuse(403, admission.reason, admission.message, admission.fix);
    co_return false;
  }
  open.Allow(admission.rule_text);
  if (admission.until.count() != 0) {
    access_end_.Until(admission.until);
  } else {
    access_end_.Stop();
  }
  RuleMeter& meter = context_.meters.Of(*admission.rule);
  if (const std::optional<std::string> refusal = meter.Refusal(BootTime())) {
    open.Deny(*refusal, "");
    co_await Refuse(429, "limit_reached", *refusal, "");
    co_return false;
  }
  const MeteredUse use(meter, BootTime());
  Watchdog overtime(context_.executor, [this] { EndBoth(); });
  if (const Nanos end = meter.EndOf(BootTime()); end != Nanos(0)) {
    overtime.Until(end);
  }
  const bool reached = co_await Reach(*request, open);
  if (!reached) {
    co_return false;
  }
  upstream_->Charge(meter.bytes());
  const uint64_t sent = upstream_->sent();
  const uint64_t received = upstream_->received();
  bool more = co_await SendRequest(*request, open);
  if (const std::optional<std::string> spent = meter.bytes().Spent()) {
    co_await Refuse(429, "limit_reached", *spent, "");
    more = false;
  } else if (more) {
    more = co_await Answer(*request, open);
  }
  if (upstream_ != nullptr) {
    open.traffic().bytes_out = upstream_->sent() - sent;
    open.traffic().bytes_in = upstream_->received() - received;
  }
  if (const std::optional<std::string> spent = meter.bytes().Spent()) {
    open.Deny(*spent, "");
  }
  if (overtime.expired()) {
    open.Deny(meter.Overtime(), "");
    more = false;
  }
  if (access_end_.expired()) {
    open.Fail(kAccessEnded);
    more = false;
  }
  if (!more && upstream_ != nullptr) {
    upstream_->stream().Close();
    upstream_.reset();
  }
  co_return more;
}

// An upstream connection for the request: the one there is, or a new one.
Task<bool> RequestRelay::Reach(const ProxyRequest& request, OpenTraffic& open) {
  if (upstream_ != nullptr && !upstream_ends_ && upstream_to_ == request.to &&
      upstream_tls_ == request.tls && upstream_->buffer().empty() &&
      !upstream_->stream().PeerGone()) {
    co_return true;
  }
  upstream_.reset();
  watchdog_.Within(context_.times.idle);  // dialling has times of its own
  Dialed dialed;
  if (request.tls) {
    dialed = co_await context_.upstream.DialTls(request.to.host, request.to.port);
  } else {
    dialed = co_await context_.upstream.Dial(request.to.host, request.to.port);
  }
  if (dialed.stream == nullptr) {
    if (dialed.refusal != Dialed::Refusal::kNone) {
      open.Deny(dialed.problem, dialed.fix);
      open.traffic().leads_to = dialed.leads_to;
    } else {
      open.Fail(dialed.problem);
    }
    co_await Refuse(dialed.status(), dialed.reason(), dialed.problem, dialed.fix);
    co_return false;
  }
  upstream_ = std::make_unique<BufferedStream>(std::move(dialed.stream));
  upstream_to_ = request.to;
  upstream_tls_ = request.tls;
  upstream_ends_ = false;
  co_return true;
}

Task<bool> RequestRelay::SendRequest(const ProxyRequest& request, OpenTraffic& open) {
  watchdog_.Within(context_.times.idle);
  if (request.expects_continue) {
    const bool told = co_await client_.Write("HTTP/1.1 100 Continue\r\n\r\n");
    if (!told) {
      co_return false;
    }
  }
  const std::string head = request.UpstreamHead();
  const bool sent = co_await upstream_->Write(head);
  taken_whole_ = request.body.kind == Kind::kNone;
  if (sent && request.body.kind != Kind::kNone) {
    // A server that takes nothing: its program may have given up long ago.
    const PeerWatch program(
        context_.executor, client_.stream(), context_.times.half_open,
        [this] { upstream_->stream().Close(); }, [this] { return upstream_->sent(); });
    std::optional<WatchedStream> watched;
    if (context_.watched != nullptr) {
      watched.emplace(*context_.watched);
    }
    const BodyEnd end =
        co_await RelayBody(client_, request.body, *upstream_, request.body.kind, watchdog_,
                           context_.times.idle, watched ? &*watched : nullptr);
    if (end == BodyEnd::kValueFound) {
      upstream_->stream().Close();  // a message that cannot be taken for a whole one
      co_await RefuseValue(open, watched->found());
      co_return false;
    }
    if (program.gone()) {
      open.Fail("the program ended the connection while its request was sent");
      co_return false;
    }
    if (end == BodyEnd::kSourceBroken) {
      open.Fail("the request's body ended early or is not well formed");
      co_await Refuse(400, "body_broken", "the request's body is not well formed", "");
      co_return false;
    }
    taken_whole_ = end == BodyEnd::kWhole;
  }
  // A server may answer before it has read everything; so its answer is looked for in any case.
  co_return true;
}

Task<bool> RequestRelay::Answer(const ProxyRequest& request, OpenTraffic& open) {
  std::string problem = "the server ended the connection without an answer";
  const auto give_up = [this] { upstream_->stream().Close(); };
  Watchdog silent(context_.executor, give_up);
  for (int interim = 0; interim < kMostInterim; ++interim) {
    watchdog_.Within(context_.times.idle);
    silent.Within(context_.times.answer);
    // Until the answer begins: a program that has closed its side may still take a long one.
    std::optional<PeerWatch> program(std::in_place, context_.executor, client_.stream(),
                                     context_.times.half_open, give_up);
    const std::optional<std::string> raw = co_await upstream_->ReadHead(net::kMostHeadBytes);
    const bool gone = program->gone();
    program.reset();
    silent.Stop();
    if (!raw) {
      if (gone) {
        problem = "the program ended the connection before the server answered";
      } else if (silent.expired()) {
        problem =
            fmt::format("the server did not answer within {} s", context_.times.answer.count());
      }
      break;
    }
    const Result<net::HttpResponseHead> head = net::ParseResponseHead(*raw, request.method);
    if (!head.ok()) {
      problem = fmt::format("the server's answer is not HTTP/1.1: {}", head.error().message);
      break;
    }
    if (head->status == 101) {
      if (!request.websocket) {
        problem = "the server changed the protocol without being asked";
        break;
      }
      answered_ = true;
      const std::string change = DownstreamHead(*head, head->body, /*keep_alive=*/true);
      const bool told = co_await client_.Write(change);
      if (told) {
        const std::string ended = co_await CarryBothWays(client_, *upstream_, watchdog_,
                                                         context_.times.idle, context_.pipes);
        open.Fail(ended);
      }
      co_return false;
    }
    if (head->status < 200) {
      continue;
    }
    // A client of HTTP/1.0 knows no chunks.
    net::HttpBody as = head->body;
    if (request.version == 10 && as.kind == Kind::kChunked) {
      as.kind = Kind::kUntilClose;
    }
    // What is left of a body that the server did not take must not be read as the next request.
    const bool keep = request.keep_alive && taken_whole_ && as.kind != Kind::kUntilClose;
    answered_ = true;
    const std::string forwarded = DownstreamHead(*head, as, keep);
    const bool told = co_await client_.Write(forwarded);
    if (!told) {
      co_return false;
    }
    // Nothing but its end says that such an answer is whole.
    client_.ResetOnClose(as.kind == Kind::kUntilClose);
    const BodyEnd end = co_await RelayBody(*upstream_, head->body, client_, as.kind, watchdog_,
                                           context_.times.idle);
    if (end == BodyEnd::kWhole) {
      client_.ResetOnClose(false);
    }
    if (end == BodyEnd::kSourceBroken) {
      open.Fail("the server's answer ended early or is not well formed");
      client_.stream().Close();  // an end that cannot be taken for a whole answer
    }
    upstream_ends_ = request.body_may_stay_unread() || head->version != 11 ||
                     head->fields.HasMember("Connection", "close");
    const bool whole = end == BodyEnd::kWhole;
    co_return keep&& whole;
  }
  open.Fail(problem);
  co_await Refuse(silent.expired() ? 504 : 502,
                  silent.expired() ? "upstream_silent" : "upstream_broken", problem, "");
  co_return false;
}

}  // namespace coffer::egress
