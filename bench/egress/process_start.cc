// SPDX-License-Identifier: Apache-2.0
//
// How long the egress process of `coffer run` takes to start, alone: from the supervisor's decision to start it until it has said that
// it is confined and ready. It is the `cofferd` beside this program, started by the code and with the order that a call with this rule
// has, and this program is linked as `coffer` is. What is missing is the boundary beside it. The listeners are of a network namespace
// that was made before; they are handed over where a call hands them over.
//
// Afterwards, outside of the time, the process must refuse a host that the rule does not cover: a process that does not serve has not
// started.
//
// Usage: bench_egress_start spliced|judged RULE      prints microseconds. Needs root.
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "bench/egress/namespace_listeners.h"
#include "call/run/egress_process.h"
#include "call/run/launch_egress.h"
#include "call/run/own_addresses.h"

namespace {

using namespace coffer;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "bench_egress_start: %s\n", what.c_str());
  std::exit(1);
}

void EnterNetwork(int network) {
  if (::setns(network, CLONE_NEWNET) != 0) {
    Fail("cannot enter a network namespace");
  }
}

UniqueFd OwnNetwork() {
  UniqueFd network(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!network) {
    Fail("no network namespace");
  }
  return network;
}

// What the proxy answers to a tunnel that no rule allows.
std::string AnswerToOtherHost() {
  const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in proxy = bench::LoopbackAddress(bench::kProxyPort);
  constexpr std::string_view kRequest =
      "CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n";
  char answer[64] = {};
  if (::connect(client.get(), reinterpret_cast<const sockaddr*>(&proxy), sizeof(proxy)) != 0 ||
      ::send(client.get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL) < 0 ||
      ::recv(client.get(), answer, sizeof(answer) - 1, 0) <= 0) {
    return "none";
  }
  return answer;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    Fail("usage: bench_egress_start spliced|judged RULE");
  }
  const bool judged = std::string_view(argv[1]) == "judged";
  // The process starts in the host's network, as that of a call does.
  const UniqueFd host = OwnNetwork();
  egress::Listeners listeners = bench::MakeNetworkListeners();
  const UniqueFd inside = OwnNetwork();
  EnterNetwork(host.get());

  Result<std::vector<std::string>> own = call::OwnAddresses();
  if (!own.ok()) {
    Fail(own.error().message);
  }
  call::EgressOrder order;
  order.grants.allow = {argv[2]};
  order.own = *std::move(own);

  const auto began = std::chrono::steady_clock::now();
  Result<call::EgressProcess> process = call::EgressProcess::Start(order);
  Result<std::string> authority = std::string();
  if (process.ok() && judged) {
    authority = process->AwaitAuthority();
  }
  const Status ready = !process.ok()     ? Status(process.error())
                       : !authority.ok() ? Status(authority.error())
                                         : call::OpenEgress(std::move(listeners), *process);
  const auto took = std::chrono::steady_clock::now() - began;

  if (!ready.ok()) {
    Fail(ready.error().message);
  }
  if (judged && authority->empty()) {
    Fail("this rule judges no requests");
  }
  EnterNetwork(inside.get());
  if (const std::string answer = AnswerToOtherHost(); !answer.starts_with("HTTP/1.1 403")) {
    Fail("the process answers " + answer);
  }
  std::printf("%.1f\n", std::chrono::duration<double, std::micro>(took).count());
  return 0;
}
