// SPDX-License-Identifier: Apache-2.0
#include "egress/rule_meter.h"

#include <fmt/format.h>

#include "base/quantity.h"

namespace coffer::egress {
namespace {

policy::RateLimits LimitsOf(const policy::EgressRule& rule) {
  policy::RateLimits limits;
  if (rule.rate) {
    limits.calls.push_back(*rule.rate);
  }
  limits.concurrency = rule.connections;
  return limits;
}

}  // namespace

bool ByteBudget::Take(uint64_t bytes, uint64_t& left) {
  if (spent_ || bytes > left) {
    spent_ = true;
    return false;
  }
  left -= bytes;
  return true;
}

std::optional<std::string> ByteBudget::Spent() const {
  if (!spent_) {
    return std::nullopt;
  }
  const auto part = [](uint64_t limit, const char* way) {
    return limit == 0 ? std::string() : fmt::format(" {} {}", FormatSize(limit), way);
  };
  return fmt::format("the bytes that its rule allows one call are spent:{}{}", part(out_, "out"),
                     part(in_, "in"));
}

RuleMeter::RuleMeter(const policy::EgressRule& rule)
    : gate_(LimitsOf(rule)), bytes_(rule.bytes_out, rule.bytes_in), time_(rule.time) {}

std::string RuleMeter::Overtime() const {
  return fmt::format("its rule allows a connection or request {}, and they are over",
                     FormatDuration(time_));
}

std::optional<std::string> RuleMeter::Refusal(Nanos now) const {
  if (std::optional<std::string> spent = bytes_.Spent()) {
    return spent;
  }
  const policy::RateVerdict verdict = gate_.Peek(now);
  return verdict.allowed ? std::nullopt
                         : std::optional(fmt::format("its rule allows {}", verdict.reason));
}

RuleMeters::RuleMeters(std::span<const policy::EgressRule> rules) : rules_(rules) {
  for (const policy::EgressRule& rule : rules) {
    meters_.emplace_back(rule);
  }
}

RuleMeter& RuleMeters::Of(const policy::EgressRule& rule) {
  return meters_[static_cast<size_t>(&rule - rules_.data())];
}

}  // namespace coffer::egress
