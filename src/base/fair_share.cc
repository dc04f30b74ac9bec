// SPDX-License-Identifier: Apache-2.0
#include "base/fair_share.h"

#include <algorithm>

namespace coffer {
namespace {

constexpr uint64_t kLastPart = 8;  // of the whole: only for takers that have nothing

}  // namespace

uint64_t FairShare::PartOf(uint64_t all, uint64_t percent) {
  return all / 100 * percent + all % 100 * percent / 100;
}

bool FairShare::Leaves(uint64_t own, uint64_t all) const {
  const uint64_t last = std::min(std::max(most / kLastPart, least), most - PartOf(most, percent));
  if (all > most || most - all < last) {
    return false;
  }
  return own <= PartOf(most - (all - own), percent);
}

}  // namespace coffer
