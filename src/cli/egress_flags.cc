// SPDX-License-Identifier: Apache-2.0
#include "cli/egress_flags.h"

#include <fmt/format.h>

#include <charconv>

#include "base/quantity.h"
#include "base/text.h"
#include "egress/access.h"
#include "policy/egress_grants.h"

namespace coffer::cli {

Result<uint32_t> ParseHoldTime(std::string_view text) {
  TRY_ASSIGN(const Nanos time, ParseDuration(text));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  if (seconds < 1 || seconds > egress::kMostHoldSeconds) {
    return Refused("policy.value", fmt::format("{} is not from 1s to 1h", Printable(text)),
                   "such as --hold-time 2m");
  }
  return static_cast<uint32_t>(seconds);
}

Result<call::RunRequest::Publish> ParsePublish(std::string_view text) {
  const size_t colon = text.find(':');
  call::RunRequest::Publish port;
  const auto read = [](std::string_view digits, uint16_t& number) {
    const char* const end = digits.data() + digits.size();
    const auto [stop, problem] = std::from_chars(digits.data(), end, number);
    return problem == std::errc() && stop == end;
  };
  const std::string_view inside = colon == std::string_view::npos ? text : text.substr(colon + 1);
  if (!read(inside, port.inside) || port.inside == 0 || !read(text.substr(0, colon), port.host)) {
    return Refused("policy.value",
                   fmt::format("--publish: \"{}\" is not PORT or HOST:PORT", Printable(text)),
                   "write 8080 for the same port on both sides, or 9000:8080 for 127.0.0.1:9000 "
                   "here and 8080 inside; 0:8080 takes any that is free here");
  }
  return port;
}

Status CheckEgressFlags(call::RunRequest& request) {
  policy::EgressTexts& grants = request.egress;
  if (grants.hold && request.envelope.tty) {
    return Refused("policy.usage", "--hold beside --tty: the command has the terminal",
                   "leave out --tty, or name the hosts instead: --allow HOST");
  }
  if (!grants.hold && grants.hold_seconds > 0) {
    return Refused("policy.usage", "--hold-time needs --hold", "write --hold too");
  }
  if (grants.hold && grants.hold_seconds == 0) {
    grants.hold_seconds = egress::kUsualHoldSeconds;
  }
  if (grants.empty()) {
    const char* const alone = !grants.resolve.empty()          ? "--resolve"
                              : !grants.addresses.empty()      ? "--dangerously-allow-address"
                              : !grants.upstream_ca.empty()    ? "--upstream-ca"
                              : !grants.upstream_proxy.empty() ? "--upstream-proxy"
                              : !grants.never_send.empty()     ? "--never-send"
                                                               : nullptr;
    return alone == nullptr
               ? Status()
               : Status(Refused("policy.usage", fmt::format("{} needs a host", alone),
                                "name the host too: --allow api.example.com, or --hold"));
  }
  policy::EgressTexts rules = grants;
  rules.never_send.clear();  // it names a file that is not read yet
  TRY_ASSIGN(const policy::ParsedGrants parsed, policy::ParseGrants(rules));
  if (!grants.never_send.empty() && !parsed.judges()) {
    return Refused("policy.usage",
                   "--never-send looks into requests, and no --allow has requests looked into",
                   "write a rule with a path or a method: --allow 'https://api.example.com/v1/**'");
  }
  request.egress_judging =
      parsed.intercepts() ? call::RunRequest::Judging::kSome : call::RunRequest::Judging::kNone;
  return {};
}

}  // namespace coffer::cli
