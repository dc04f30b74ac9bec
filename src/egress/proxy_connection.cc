// SPDX-License-Identifier: Apache-2.0
#include "egress/proxy_connection.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "egress/boundary_ca.h"
#include "egress/carry.h"
#include "egress/client_hello.h"
#include "egress/peer_watch.h"
#include "egress/proxy_request.h"
#include "egress/second_hello.h"

namespace coffer::egress {
namespace {

using net::Task;
using policy::TlsMode;

constexpr std::chrono::seconds kLingerTime{1};
constexpr size_t kMostLinger = 16;  // reads of at most 64 KiB
constexpr char kSocks4 = 4;
constexpr char kSocks5 = 5;
constexpr char kTlsRecord = 0x16;
// A TLS alert, so that clients say more than "connection reset": fatal, unrecognized_name.
constexpr std::string_view kWrongName("\x15\x03\x01\x00\x02\x02\x70", 7);

// Sends the acknowledgement that the kernel would hold back for 40 ms (TCP_QUICKACK, tcp(7)).
void AcknowledgeNow(net::Socket& socket) {
  const int on = 1;
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

}  // namespace

ProxyConnection::ProxyConnection(const ProxyContext& context, net::Socket socket,
                                 std::optional<Destination> redirected)
    : context_(context),
      redirected_(redirected),
      client_(std::make_unique<BufferedStream>(net::MakePlainStream(std::move(socket)))),
      watchdog_(context.executor, [this] { End(); }),
      access_end_(context.executor, [this] { End(); }) {}

void ProxyConnection::End() {
  client_->stream().Close();
  if (upstream_ != nullptr) {
    upstream_->stream().Close();
  }
  if (relay_ != nullptr) {
    relay_->End();
  }
}

Task<void> ProxyConnection::Run() {
  if (redirected_) {
    co_await Redirected();
  } else {
    co_await Serve();
  }
  // Closing a socket with unread bytes resets the connection: the client would lose the refusal if
  // it was still sending a request's body.
  watchdog_.Within(kLingerTime);
  for (size_t left = kMostLinger; left > 0; --left) {
    client_->buffer().clear();
    const bool more = co_await client_->Fill();
    if (!more) {
      break;
    }
  }
  client_->stream().Close();
}

Task<void> ProxyConnection::Serve() {
  watchdog_.Within(kHeadTime);
  const bool any = co_await client_->Fill();
  if (!any) {
    co_return;
  }
  if (client_->buffer().front() == kSocks5) {
    co_await Socks();
    co_return;
  }
  if (client_->buffer().front() == kSocks4) {
    DenyUnread("this is SOCKS 4, and the proxy speaks HTTP and SOCKS 5");
    co_return;
  }
  std::optional<std::string> head = co_await client_->ReadHead(net::kMostHeadBytes);
  if (!head) {
    if (client_->buffer().size() >= net::kMostHeadBytes) {
      co_await TellRefused(Dialect::kHttp, 431, "head_too_long",
                           "the head of the request is too long", "");
    } else {
      DenyUnread(kNoHead);
    }
    co_return;
  }
  const Result<ProxyRequest> request = ParseProxyRequest(*head);
  if (request.ok() && request->form == ProxyRequest::Form::kConnect) {
    co_await Tunnel(request->to, Dialect::kHttp);
  } else {
    co_await Relay(std::nullopt, /*tls=*/false, std::move(*head));
  }
}

void ProxyConnection::DenyUnread(std::string reason) {
  OpenTraffic open(context_, {});
  open.Deny(std::move(reason), "");
}

Task<void> ProxyConnection::Relay(std::optional<policy::HostAndPort> tunnel, bool tls,
                                  std::string head) {
  RequestRelay relay(context_, *client_, watchdog_, std::move(tunnel), tls);
  relay_ = &relay;
  co_await relay.Run(std::move(head));
  relay_ = nullptr;
}

Task<bool> ProxyConnection::TellOpen(Dialect dialect) {
  if (dialect == Dialect::kSilent) {
    co_return true;
  }
  const std::string_view answer = dialect == Dialect::kHttp
                                      ? "HTTP/1.1 200 Connection established\r\n\r\n"
                                      : std::string_view("\x05\x00\x00\x01\0\0\0\0\0\0", 10);
  const bool told = co_await client_->Write(answer);
  co_return told;
}

Task<void> ProxyConnection::TellRefused(Dialect dialect, int status, std::string code,
                                        std::string message, std::string fix) {
  if (dialect == Dialect::kSilent) {
    co_await client_->stream().FinishWriting();
    co_return;
  }
  // SOCKS has numbers only: 2 not allowed, 4 host unreachable.
  const std::string answer = dialect == Dialect::kHttp
                                 ? RefusalAnswer(status, code, message, fix)
                                 : fmt::format("\x05{}{}", status != 502 ? '\x02' : '\x04',
                                               std::string_view("\x00\x01\0\0\0\0\0\0", 8));
  const bool told = co_await client_->Write(answer);
  if (told) {
    co_await client_->stream().FinishWriting();
  }
}

Task<void> ProxyConnection::Tunnel(policy::HostAndPort to, Dialect dialect) {
  const policy::EgressConnect connect{to.host, to.port};
  const policy::EgressVerdict verdict = policy::Judge(context_.grants.rules, connect);
  Traffic traffic;
  traffic.host = to.host.text();
  traffic.port = to.port;
  OpenTraffic open(context_, std::move(traffic));
  open.Deny(verdict.message, verdict.fix);  // what is written down if the call ends while it waits
  if (verdict.asks != nullptr) {
    watchdog_.Stop();  // the request for access has a time of its own
  }
  const AccessVerdict admission =
      co_await context_.access.Admit(verdict, to, [this] { return client_->stream().PeerGone(); });
  watchdog_.Within(kHeadTime);
  if (admission.rule == nullptr) {
    open.Deny(admission.message, admission.fix);
    co_await TellRefused(dialect, 403, admission.reason, admission.message, admission.fix);
    co_return;
  }
  open.Allow(admission.rule_text);
  if (admission.until.count() != 0) {
    access_end_.Until(admission.until);
  }
  if (admission.rule->tls == TlsMode::kIntercept || admission.rule->tls == TlsMode::kPlain) {
    co_await LookInto(to, dialect, open);
  } else {
    co_await Splice(to, *admission.rule, dialect, open);
  }
  if (access_end_.expired()) {
    open.Fail(kAccessEnded);
  }
  access_end_.Stop();
}

// The whole first message of TLS, which must ask for `host`.
Task<bool> ProxyConnection::ReadHello(const policy::HostName& host, OpenTraffic& open) {
  watchdog_.Within(kHeadTime);
  for (;;) {
    const ClientHelloStep step = ReadClientHello(client_->buffer());
    if (step.state == ClientHelloStep::State::kDone) {
      const std::optional<Error> wrong = CheckServerName(step.hello, host);
      if (!wrong) {
        co_return true;
      }
      open.Deny(wrong->message, "");
      break;
    }
    if (step.state == ClientHelloStep::State::kBroken) {
      open.Deny(fmt::format("only TLS may go to this host: {}", step.problem),
                AnyBytesFix(context_.grants.of_tool, open.traffic()));
      break;
    }
    const bool more = co_await client_->Fill();
    if (!more) {
      if (!client_->buffer().empty() || watchdog_.expired()) {
        open.Deny("the first message of TLS did not come", "");
      } else {
        open.Fail("the program ended the connection before it was used");
      }
      co_return false;
    }
  }
  const bool told = co_await client_->Write(kWrongName);
  if (told) {
    co_await client_->stream().FinishWriting();
  }
  co_return false;
}

// The hello that was read goes to the server. What the client sends behind it waits until the server has answered: if it
// asks for a second hello, that one is judged as well. True: what follows may be carried unread.
Task<bool> ProxyConnection::PassHello(const policy::HostName& host, OpenTraffic& open) {
  const size_t size = ReadClientHello(client_->buffer()).size;
  bool moves = co_await upstream_->Write(client_->Take(size));
  watchdog_.Within(context_.times.idle);
  const PeerWatch program(context_.executor, client_->stream(), kHalfOpenTime, [this] { End(); });
  ServerAnswer answer = ServerAnswer::kMore;
  while (moves && answer == ServerAnswer::kMore) {
    moves = co_await upstream_->Fill();
    answer = ReadServerAnswer(upstream_->buffer());
  }
  if (answer != ServerAnswer::kAsksAgain) {
    co_return true;  // also if the server has ended: the carrying tells the client
  }
  const bool asked = co_await client_->Write(upstream_->Take(upstream_->buffer().size()));
  if (!asked) {
    co_return false;
  }
  const bool named = co_await ReadSecondHello(host, open);
  co_return named;
}

Task<bool> ProxyConnection::ReadSecondHello(const policy::HostName& host, OpenTraffic& open) {
  watchdog_.Within(kHeadTime);
  for (;;) {
    if (const size_t before = SizeBeforeSecondHello(client_->buffer()); before > 0) {
      const bool passed = co_await upstream_->Write(client_->Take(before));
      if (!passed) {
        co_return false;
      }
    }
    if (!client_->buffer().empty() && IsSecondHelloNext(client_->buffer())) {
      break;
    }
    const bool more = co_await client_->Fill();
    if (!more) {
      open.Fail("the server asked for a second hello of TLS, and none came");
      co_return false;
    }
  }
  const bool named = co_await ReadHello(host, open);
  co_return named;
}

Task<void> ProxyConnection::Splice(policy::HostAndPort to, const policy::EgressRule& rule,
                                   Dialect dialect, OpenTraffic& open) {
  RuleMeter& meter = context_.meters.Of(rule);
  if (const std::optional<std::string> refusal = meter.Refusal(BootTime())) {
    open.Deny(*refusal, "");
    co_await TellRefused(dialect, 429, "limit_reached", *refusal, "");
    co_return;
  }
  const MeteredUse use(meter, BootTime());
  Watchdog overtime(context_.executor, [this] { End(); });
  if (const Nanos end = meter.EndOf(BootTime()); end != Nanos(0)) {
    overtime.Until(end);
  }
  // A redirected program waits for no answer of ours, so its hello is judged before anything is
  // dialled. Others are first told whether the server can be reached: behind an answer that the
  // tunnel stands, no reason could be given.
  const bool hello_first = rule.tls == TlsMode::kSplice && dialect == Dialect::kSilent;
  if (hello_first) {
    const bool named = co_await ReadHello(to.host, open);
    if (!named) {
      co_return;
    }
  }
  watchdog_.Within(context_.times.idle);  // dialling has times of its own
  Dialed dialed = co_await context_.upstream.Dial(to.host, to.port);
  if (dialed.stream == nullptr) {
    if (dialed.refusal != Dialed::Refusal::kNone) {
      open.Deny(dialed.problem, dialed.fix);
      open.traffic().leads_to = dialed.leads_to;
    } else {
      open.Fail(dialed.problem);
    }
    co_await TellRefused(dialect, dialed.status(), dialed.reason(), dialed.problem, dialed.fix);
    co_return;
  }
  upstream_ = std::make_unique<BufferedStream>(std::move(dialed.stream));
  upstream_->Charge(meter.bytes());
  const bool told = co_await TellOpen(dialect);
  bool ready = told;
  if (told && rule.tls == TlsMode::kSplice && !hello_first) {
    ready = co_await ReadHello(to.host, open);
  }
  if (ready && rule.tls == TlsMode::kSplice) {
    ready = co_await PassHello(to.host, open);
  }
  if (ready) {
    const std::string ended = co_await CarryBothWays(*client_, *upstream_, watchdog_,
                                                     context_.times.idle, context_.pipes);
    open.Fail(ended);
  }
  open.traffic().bytes_out = upstream_->sent();
  open.traffic().bytes_in = upstream_->received();
  if (const std::optional<std::string> spent = meter.bytes().Spent()) {
    open.Deny(*spent, "");
  }
  if (overtime.expired()) {
    open.Deny(meter.Overtime(), "");
  }
  upstream_->stream().Close();
}

// With TLS inside or without: the rules say of each request which of the two it may be.
Task<void> ProxyConnection::LookInto(policy::HostAndPort to, Dialect dialect, OpenTraffic& open) {
  bool begun = co_await TellOpen(dialect);
  if (begun && client_->buffer().empty()) {
    watchdog_.Within(kHeadTime);
    begun = co_await client_->Fill();
  }
  if (!begun) {
    open.Fail("the program ended the connection before it was used");
    co_return;
  }
  if (client_->buffer().front() == kTlsRecord) {
    co_await Intercept(to, open);
    co_return;
  }
  open.Forget();  // each request in it is written down by itself
  co_await Relay(to, /*tls=*/false, "");
}

Task<void> ProxyConnection::Intercept(policy::HostAndPort to, OpenTraffic& open) {
  const bool named = co_await ReadHello(to.host, open);
  if (!named) {
    co_return;
  }
  UniqueSsl ssl = context_.ca == nullptr ? nullptr : context_.ca->MakeServer(to.host);
  if (ssl == nullptr) {
    const policy::EgressConnect connect{to.host, to.port};
    open.Deny("no rule allows TLS to this host and port",
              policy::ConnectFix(context_.grants.rules, connect));
    co_return;
  }
  const std::string hello = std::exchange(client_->buffer(), {});
  net::Socket* const socket = client_->stream().plain_socket();
  auto tls = std::make_unique<TlsStream>(client_->TakeStream(), std::move(ssl), hello);
  TlsStream* const server = tls.get();
  client_ = std::make_unique<BufferedStream>(std::move(tls));
  watchdog_.Within(kHeadTime);
  const bool shaken = co_await server->Handshake();
  if (!shaken) {
    if (OffersOtherProtocolsOnly(ReadClientHello(hello).hello)) {
      open.Deny("the program speaks no HTTP/1.1, in which requests are judged",
                "let the program offer HTTP/1.1, or allow the host without a method and a path");
      co_return;
    }
    open.Fail(
        "the program did not accept the connection: it must trust the certificate of this "
        "call (SSL_CERT_FILE) and speak HTTP/1.1");
    co_return;
  }
  // Nothing answers the client's last message, as a server's tickets would. A client that waits for
  // acknowledgements before it sends small pieces (Nagle) holds its request back until then.
  AcknowledgeNow(*socket);
  open.Forget();  // each request in it is written down by itself
  co_await Relay(to, /*tls=*/true, "");
}

}  // namespace coffer::egress
