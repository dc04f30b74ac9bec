// SPDX-License-Identifier: Apache-2.0
//
// The automaton that finds values which must never leave, for all calls that were given the same values.
//
// That of a full file takes tens of milliseconds to make, and 10 MiB. In the daemon every call has the values of the
// configuration, so the process that dials for all of them makes it once. It is kept behind the last call, for the next.
#pragma once

#include <memory>
#include <vector>

#include "egress/watched_values.h"

namespace coffer::egress {

class WatchedStock {
 public:
  // Null without values. A call that has others takes its own, and leaves those to the calls that have them.
  std::shared_ptr<const WatchedValues> Of(const std::vector<policy::NeverSendValue>& values);

 private:
  std::vector<policy::NeverSendValue> listed_;
  std::shared_ptr<const WatchedValues> made_;
};

}  // namespace coffer::egress
