// SPDX-License-Identifier: Apache-2.0
#include "egress/ca_stock.h"

#include <algorithm>

namespace coffer::egress {

Result<std::unique_ptr<BoundaryCa>> CaStock::Take(const std::vector<policy::EgressRule>& rules,
                                                  Nanos now) {
  std::string constraints = BoundaryCa::Constraints(rules);
  const auto known = std::find_if(kinds_.begin(), kinds_.end(), [&](const Kind& kind) {
    return kind.constraints == constraints;
  });
  if (known == kinds_.end()) {
    if (kinds_.size() >= kMostKinds) {
      kinds_.pop_back();
    }
    kinds_.push_front({constraints, nullptr, Nanos(0)});
    return BoundaryCa::Make(constraints);
  }
  kinds_.splice(kinds_.begin(), kinds_, known);
  std::unique_ptr<BoundaryCa> spare = std::move(kinds_.front().spare);
  if (spare != nullptr && now - kinds_.front().made < kMostAge) {
    return spare;
  }
  return BoundaryCa::Make(constraints);
}

bool CaStock::Refill(Nanos now) {
  const auto missing = std::find_if(kinds_.begin(), kinds_.end(),
                                    [](const Kind& kind) { return kind.spare == nullptr; });
  if (missing == kinds_.end()) {
    return false;
  }
  Result<std::unique_ptr<BoundaryCa>> made = BoundaryCa::Make(missing->constraints);
  if (!made.ok()) {
    return false;  // the next call that wants one says why
  }
  missing->spare = std::move(made).value();
  missing->made = now;
  return true;
}

}  // namespace coffer::egress
