// SPDX-License-Identifier: Apache-2.0
//
// How much of something one taker may have, so that others find some of it without anything being configured.
//
// A taker has at most its share, in percent, of the part that the others do not use: with shares of
// a half, the first to take all that it can has a half, the second a quarter. The last eighth stays
// free for takers that have nothing. These are not asked about here: the caller lets them take as
// long as there is any.
#pragma once

#include <cstdint>

namespace coffer {

struct FairShare {
  uint64_t most = 0;      // of all takers together
  uint64_t percent = 50;  // of what others leave
  uint64_t least = 0;     // of the last part: 1 where things are counted, not measured

  // `percent` of `all`, without running over.
  static uint64_t PartOf(uint64_t all, uint64_t percent);
  // Whether a taker that has something already may have `own` when all takers together have `all`,
  // both with what it asks for now.
  bool Leaves(uint64_t own, uint64_t all) const;
};

}  // namespace coffer
