// SPDX-License-Identifier: Apache-2.0
#include "egress/watched_stock.h"

namespace coffer::egress {

std::shared_ptr<const WatchedValues> WatchedStock::Of(
    const std::vector<policy::NeverSendValue>& values) {
  if (values.empty()) {
    return nullptr;
  }
  if (made_ == nullptr || listed_ != values) {
    made_ = std::make_shared<const WatchedValues>(values);
    listed_ = values;
  }
  return made_;
}

}  // namespace coffer::egress
