// SPDX-License-Identifier: Apache-2.0
//
// Counts what the limits of a rule are about, for one boundary: connections per time, connections at once, their
// duration, and the bytes of the whole call.
//
// What counts is a connection that is passed through, or one request where requests are judged; the
// rule that allowed it is the one that is charged. Bytes that leave never exceed the limit. Of
// bytes that come in, a byte beyond the limit is dropped and ends the connection.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policy/egress_rule.h"
#include "policy/rate.h"

namespace coffer::egress {

class ByteBudget {
 public:
  // 0 is no limit.
  ByteBudget(uint64_t out, uint64_t in) : out_left_(out), in_left_(in), out_(out), in_(in) {}
  // False if so many are not left; then none is, and nothing passes any more.
  [[nodiscard]] bool TakeOut(uint64_t bytes) { return out_ == 0 || Take(bytes, out_left_); }
  [[nodiscard]] bool TakeIn(uint64_t bytes) { return in_ == 0 || Take(bytes, in_left_); }
  // One line if the limit was reached, otherwise nothing.
  std::optional<std::string> Spent() const;

 private:
  bool Take(uint64_t bytes, uint64_t& left);

  uint64_t out_left_;
  uint64_t in_left_;
  const uint64_t out_;
  const uint64_t in_;
  bool spent_ = false;
};

// One rule of one boundary.
class RuleMeter {
 public:
  explicit RuleMeter(const policy::EgressRule& rule);
  // Why the next connection or request must not begin, in one line; nothing if it may.
  std::optional<std::string> Refusal(Nanos now) const;
  ByteBudget& bytes() { return bytes_; }
  // When a connection or request that begins now has to end, of BootTime(); 0: never.
  Nanos EndOf(Nanos now) const { return time_ == Nanos(0) ? Nanos(0) : now + time_; }
  // One line for a connection or request that was ended then.
  std::string Overtime() const;

 private:
  friend class MeteredUse;
  policy::RateGate gate_;
  ByteBudget bytes_;
  const Nanos time_;
};

// A connection or request that is going on. Only after Refusal had nothing to say.
class MeteredUse {
 public:
  MeteredUse(RuleMeter& meter, Nanos now) : meter_(meter) { meter_.gate_.Take(now); }
  MeteredUse(const MeteredUse&) = delete;
  MeteredUse& operator=(const MeteredUse&) = delete;
  ~MeteredUse() { meter_.gate_.Release(); }

 private:
  RuleMeter& meter_;
};

class RuleMeters {
 public:
  // `rules` outlive it.
  explicit RuleMeters(std::span<const policy::EgressRule> rules);
  // `rule` is one of them.
  RuleMeter& Of(const policy::EgressRule& rule);

 private:
  const std::span<const policy::EgressRule> rules_;
  std::vector<RuleMeter> meters_;
};

}  // namespace coffer::egress
