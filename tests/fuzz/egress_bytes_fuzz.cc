// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what a program inside sends to its proxy, and an upstream sends back: HTTP heads, the first message of TLS,
// SOCKS, a DNS query, a body in chunks. No crash; what is passed on reads the same to the next reader, and ends where we say.
//
// The first byte says what the rest is.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "egress/client_hello.h"
#include "egress/dns_message.h"
#include "egress/proxy_request.h"
#include "egress/resolver.h"
#include "egress/second_hello.h"
#include "egress/socks.h"
#include "net/http_chunks.h"

namespace {

using namespace coffer;
using namespace coffer::egress;

void Demand(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
  }
}

// A head that we wrote: one head, and our own reader finds in it what we meant.
void CheckSent(const ProxyRequest& request) {
  const std::string head = request.UpstreamHead();
  Demand(net::FindHeadEnd(head) == head.size(), "more than one head is sent");
  const auto again = ParseTunnelRequest(head, request.to, request.tls);
  Demand(again.ok(), "a head is sent that we would refuse");
  Demand(again->method == request.method && again->path.text() == request.path.text() &&
             again->query == request.query,
         "judged one way, sent another");
  Demand(again->body.kind == request.body.kind && again->body.length == request.body.length,
         "the body ends elsewhere");
  Demand(again->UpstreamHead() == head, "a head is not stable");
}

void AsRequest(std::string_view bytes) {
  if (const auto request = ParseProxyRequest(bytes); !request.ok()) {
    const int status = RefusalStatus(request.error());
    Demand(status >= 400 && status < 600, "a refusal without a status");
  } else {
    Demand(request->to.port != 0 && !request->to.host.empty(), "a request to nowhere");
    if (request->form != ProxyRequest::Form::kConnect) {
      CheckSent(*request);
    }
  }
  const auto tunnel = policy::ParseHostAndPort("api.test:8443").value();
  if (const auto request = ParseTunnelRequest(bytes, tunnel, true); request.ok()) {
    Demand(request->to == tunnel, "a request leaves its tunnel");
    CheckSent(*request);
  }
}

void AsResponse(std::string_view bytes) {
  for (const char* method : {"GET", "HEAD"}) {
    const auto head = net::ParseResponseHead(bytes, method);
    if (!head.ok()) {
      continue;
    }
    const std::string sent = DownstreamHead(*head, head->body, false);
    Demand(net::FindHeadEnd(sent) == sent.size(), "more than one head goes back");
    const auto again = net::ParseResponseHead(sent, method);
    Demand(again.ok() && again->status == head->status, "a head goes back that we would refuse");
    Demand(again->body.kind == head->body.kind && again->body.length == head->body.length,
           "the answer ends elsewhere");
  }
}

void AsHello(std::string_view bytes) {
  const ClientHelloStep step = ReadClientHello(bytes);
  Demand(step.state != ClientHelloStep::State::kMore ||
             bytes.size() < (kMostHelloBytes + (1 << 14) + 1024),
         "waited for without end");
  Demand((step.state == ClientHelloStep::State::kBroken) == !step.problem.empty(), "no words");
  if (step.state == ClientHelloStep::State::kDone) {
    const auto host = policy::HostName::Parse("api.test").value();
    if (!CheckServerName(step.hello, host)) {
      Demand(step.hello.server_name.has_value() && step.hello.server_name->size() == 8, "a name");
    }
    Demand(ReadClientHello(std::string(bytes) + "x").state != ClientHelloStep::State::kMore,
           "what is done is not");
    Demand(step.size <= bytes.size() && step.size > 0, "a hello without its size");
  }
  Demand(ReadServerAnswer(bytes) != ServerAnswer::kMore || bytes.size() < 1024,
         "a server is waited for without end");
  const size_t before = SizeBeforeSecondHello(bytes);
  Demand(before <= bytes.size(), "more comes before a second hello than came");
  Demand(SizeBeforeSecondHello(bytes.substr(before)) == 0, "a record was left");
}

void AsSocks(std::string_view bytes) {
  const SocksStep greeting = ReadSocksGreeting(bytes);
  Demand(greeting.consumed <= bytes.size(), "more is consumed than came");
  const SocksStep request = ReadSocksRequest(bytes.substr(greeting.consumed));
  Demand(request.consumed + greeting.consumed <= bytes.size(), "more is consumed than came");
  if (request.state == SocksStep::State::kDone) {
    Demand(request.to.port != 0 && !request.to.host.empty(), "a request to nowhere");
  }
  Demand(bytes.size() < 600 || request.state != SocksStep::State::kMore, "waited for without end");
}

// The resolver gives allowed names addresses of its own block, and others none.
void CheckResolved(std::string_view bytes) {
  static const std::vector<policy::EgressRule> rules = {policy::ParseAllow("*.api.test").value()};
  Resolver resolver(rules, [](const Traffic&) {});
  const auto question = ParseDnsQuery(bytes);
  const auto answer = resolver.Answer(bytes);
  Demand(answer.has_value() == question.ok(), "an answer to what is no query");
  if (!answer) {
    return;
  }
  const bool allowed = question->name && question->name->text().ends_with(".api.test");
  Demand(((*answer)[3] & 15) == (allowed ? 0 : 3), "a name exists that does not, or the reverse");
  Demand((*answer)[7] == (allowed && question->type == DnsQuestion::Type::kA ? 1 : 0), "an answer");
  Demand((*answer)[7] == 0 || answer->ends_with(std::string_view("\xc6\x12\x01\x00", 4)),
         "an address of another block");
}

// The same where names have IPv6 addresses as well.
void CheckResolvedIpv6(std::string_view bytes) {
  static const std::vector<policy::EgressRule> rules = {policy::ParseAllow("*.api.test").value()};
  Resolver resolver(rules, [](const Traffic&) {});
  resolver.AnswerIpv6();
  const auto question = ParseDnsQuery(bytes);
  const auto answer = resolver.Answer(bytes);
  if (!answer || question->type != DnsQuestion::Type::kAaaa) {
    return;
  }
  const bool allowed = question->name && question->name->text().ends_with(".api.test");
  Demand((*answer)[7] == (allowed ? 1 : 0), "an answer");
  Demand(!allowed || answer->substr(answer->size() - 16, 6) ==
                         std::string_view("\x20\x01\x00\x02\x00\x00", 6),
         "an address of another block");
}

void AsQuery(std::string_view bytes) {
  CheckResolved(bytes);
  CheckResolvedIpv6(bytes);
  const auto question = ParseDnsQuery(bytes);
  if (!question.ok()) {
    return;
  }
  Demand(question->wire.size() <= 255 + 4, "a question's length");
  const std::string answer = MakeDnsAnswer(*question, DnsAnswer::kNoName);
  Demand(answer.size() == 12 + question->wire.size(), "an answer's length");
  Demand(!ParseDnsQuery(answer).ok(), "an answer that is a query");
}

// Cut anywhere, a body reads the same; and what we write of its data ends where we say.
void AsChunks(std::string_view bytes) {
  net::ChunkDecoder whole;
  std::string data;
  const size_t used = whole.Feed(bytes, &data);
  Demand(used <= bytes.size() && data.size() <= used, "more came out than went in");
  Demand(used == bytes.size() || whole.done() || whole.broken(), "bytes were left");
  net::ChunkDecoder pieces;
  std::string again;
  size_t at = 0;
  while (at < bytes.size() && !pieces.done() && !pieces.broken()) {
    at += pieces.Feed(bytes.substr(at, 1), &again);
  }
  Demand(pieces.done() == whole.done() && pieces.broken() == whole.broken() && again == data,
         "another reading byte by byte");
  if (whole.done()) {
    char size[32];
    std::snprintf(size, sizeof(size), "%zx\r\n", data.size());
    const std::string sent = (data.empty() ? "" : size + data + "\r\n") + "0\r\n\r\n";
    net::ChunkDecoder reader;
    std::string read;
    Demand(reader.Feed(sent + "GET", &read) == sent.size() && reader.done() && read == data,
           "what is sent ends elsewhere");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      AsRequest(bytes);
      break;
    case 1:
      AsResponse(bytes);
      break;
    case 2:
      AsHello(bytes);
      break;
    case 3:
      AsSocks(bytes);
      break;
    case 4:
      AsQuery(bytes);
      break;
    default:
      AsChunks(bytes);
  }
  return 0;
}
