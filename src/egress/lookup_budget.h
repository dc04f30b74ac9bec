// SPDX-License-Identifier: Apache-2.0
//
// How much one boundary can say by the names that it has looked up.
//
// A rule with a wildcard lets the program choose labels, and a lookup carries them to the name
// servers of that zone. So lookups of names that only a wildcard covers are counted, and the bytes
// in front of the wildcard's domain; past the bounds such a name is not looked up. A name that a
// rule writes out counts nothing. An answer is kept and a further lookup of the same name counts
// again, without its bytes: which of the names is asked for, and in which order, says something too.
// It bounds one call, not the calls of an agent together.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "policy/egress_rule.h"

namespace coffer::egress {

class LookupBudget {
 public:
  static constexpr size_t kMostLookups = 1024;
  static constexpr size_t kMostBytes = size_t{16} << 10;
  static constexpr Nanos kKept = std::chrono::minutes(10);
  static constexpr Nanos kNoneKept = std::chrono::seconds(10);  // that a name has no address
  static constexpr Nanos kDoubtKept = std::chrono::seconds(10);

  // `rules` outlive it.
  explicit LookupBudget(std::span<const policy::EgressRule> rules) : rules_(rules) {}

  // Whether the program chose a part of this name.
  bool IsChosen(const policy::HostName& host) const;
  // Whether it was counted before.
  bool IsKnown(const policy::HostName& host) const { return names_.contains(host.text()); }
  // Counts one lookup of a chosen name. Nothing: it may be looked up. Otherwise which bound it would pass, and nothing
  // was counted.
  std::optional<std::string> Charge(const policy::HostName& host);

  // Of a name that was charged. At most kMostLookups answers are kept, each as long as the caller makes it.
  void Keep(const policy::HostName& host, std::vector<policy::IpAddress> addresses, Nanos now);
  const std::vector<policy::IpAddress>* Kept(const policy::HostName& host, Nanos now) const;
  // No address of it could be reached, or another server answered there: it may have moved. A program that tries again every
  // second must not spend the lookups of the call, so the answer is kept a little longer.
  void DoubtAnswer(const policy::HostName& host, Nanos now);
  // The next one asks again.
  void Forget(const policy::HostName& host);
  // Whether it was charged, and nothing was kept or forgotten since.
  bool IsPending(const policy::HostName& host) const;

 private:
  struct Name {
    bool pending = false;
    std::vector<policy::IpAddress> addresses;
    Nanos until{0};
  };
  // The bytes of the name in front of the longest domain that a wildcard has; nothing if a rule writes it out.
  std::optional<size_t> ChosenBytes(const policy::HostName& host) const;

  const std::span<const policy::EgressRule> rules_;
  std::map<std::string, Name> names_;
  size_t lookups_ = 0;
  size_t bytes_ = 0;
};

}  // namespace coffer::egress
