// SPDX-License-Identifier: Apache-2.0
#include "call/events.h"

#include <optional>
#include <utility>

#include "base/clock.h"

namespace coffer::call {

std::vector<std::string> Events::ReceiversOf(std::string_view event) const {
  return receivers_ ? receivers_(event) : std::vector<std::string>();
}

Status Events::Write(Kept& kept) {
  if (!kept.told) {
    TRY(AddEventToOutbox(store_, receivers_, kept.event));
    kept.told = true;
  }
  TRY(log_.Append(kept.event));
  return {};
}

Status Events::Say(const audit::EventRecord& event) {
  Kept once{event, false};
  return Write(once);
}

Status Events::SayOrKeep(audit::EventRecord event) {
  Kept kept{std::move(event), false};
  if (kept.event.at == Nanos(0)) {
    kept.event.at = WallTime();  // not that of the attempt that works
  }
  Status said = Write(kept);
  if (!said.ok()) {
    Keep(std::move(kept));
  }
  return said;
}

void Events::Keep(Kept kept) {
  const std::lock_guard lock(mutex_);
  if (kept_.size() < most_) {
    kept_.push_back(std::move(kept));
  } else {
    ++lost_;
  }
}

Status Events::SayKept() {
  for (;;) {
    std::optional<Kept> next;
    {
      const std::lock_guard lock(mutex_);
      if (kept_.empty() && lost_ > 0) {
        audit::EventRecord event;
        event.name = "events.lost";
        event.detail = {{"count", static_cast<int64_t>(std::exchange(lost_, 0))}};
        kept_.push_back({std::move(event), false});
      }
      if (kept_.empty()) {
        return {};
      }
      next = std::move(kept_.front());
      kept_.pop_front();
    }
    const Status said = Write(*next);
    if (said.ok()) {
      continue;
    }
    const std::lock_guard lock(mutex_);
    if (said.error().kind != ErrorKind::kRefused) {
      kept_.push_front(std::move(*next));
      return said;
    }
    ++lost_;  // too long for a record: it must not keep the others
  }
}

}  // namespace coffer::call
