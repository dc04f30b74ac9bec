// SPDX-License-Identifier: Apache-2.0
#include "daemon/event_log.h"

#include <algorithm>

#include "base/json_pieces.h"

namespace coffer::daemon {
namespace {

constexpr size_t kMostEventBytes = 4 << 20;
constexpr size_t kMaxEvents = 4096;
constexpr size_t kMaxEventBytes = 16384;

}  // namespace

void EventRoom::Changed(size_t before, size_t after) {
  bytes_ += after - before;
  while (bytes_ > most_) {
    EventLog* const longest = *std::max_element(
        logs_.begin(), logs_.end(),
        [](const EventLog* a, const EventLog* b) { return a->bytes_ < b->bytes_; });
    // The event that was added last stays: a watcher may be about to get it.
    if (longest->events_.size() <= 1) {
      return;
    }
    const size_t had = longest->bytes_;
    longest->DropOldest();
    bytes_ -= had - longest->bytes_;
  }
}

EventLog::EventLog(std::shared_ptr<EventRoom> room) : room_(std::move(room)) {
  if (room_ != nullptr) {
    room_->logs_.insert(this);
  }
}

EventLog::~EventLog() {
  if (room_ != nullptr) {
    room_->logs_.erase(this);
    room_->bytes_ -= bytes_;
  }
}

void EventLog::DropOldest() {
  bytes_ -= events_.front().data.size();
  events_.pop_front();
}

void EventLog::AddState(std::string_view state) {
  Add({0, gateway::CallEvent::Kind::kState, std::string(state)});
}

void EventLog::AddOutput(gateway::CallEvent::Kind kind, std::string_view bytes) {
  // Small enough that a watcher's share of memory is small, whatever the bytes become as text.
  while (!bytes.empty()) {
    const size_t size = CutAtCharacter(bytes, kMaxEventBytes);
    Add({0, kind, std::string(bytes.substr(0, size))});
    bytes.remove_prefix(size);
  }
}

void EventLog::Add(gateway::CallEvent event) {
  const size_t before = bytes_;
  event.seq = next_++;
  bytes_ += event.data.size();
  events_.push_back(std::move(event));
  while (events_.size() > kMaxEvents || bytes_ > kMostEventBytes) {
    DropOldest();
  }
  if (room_ != nullptr) {
    room_->Changed(before, bytes_);
  }
  Wake();
}

void EventLog::Finish() {
  finished_ = true;
  Wake();
}

gateway::EventBatch EventLog::BatchAfter(uint64_t after, size_t max_bytes) const {
  gateway::EventBatch batch;
  batch.ended = finished_;
  size_t bytes = 0;
  for (const gateway::CallEvent& event : events_) {
    if (event.seq <= after) {
      continue;
    }
    if (!batch.events.empty() && bytes + event.data.size() > max_bytes) {
      return batch;
    }
    if (batch.events.empty()) {
      batch.gap = event.seq > after + 1;
    }
    bytes += event.data.size();
    batch.events.push_back(event);
  }
  batch.finished = finished_;
  return batch;
}

gateway::WaitHandle EventLog::Wait(uint64_t after, size_t max_bytes,
                                   gateway::Reply<gateway::EventBatch> reply) {
  auto waiter = std::make_shared<Waiter>(Waiter{after, max_bytes, std::move(reply)});
  if (finished_ || next_ > after + 1) {
    waiter->reply(BatchAfter(after, max_bytes));
  } else {
    waiters_.push_back(waiter);
  }
  return waiter;
}

void EventLog::Wake() {
  std::list<std::weak_ptr<Waiter>> waiting;
  waiting.swap(waiters_);  // a reply may come back with the next wait
  for (const std::weak_ptr<Waiter>& weak : waiting) {
    if (const std::shared_ptr<Waiter> waiter = weak.lock()) {
      if (finished_ || next_ > waiter->after + 1) {
        waiter->reply(BatchAfter(waiter->after, waiter->max_bytes));
      } else {
        waiters_.push_back(weak);
      }
    }
  }
}

}  // namespace coffer::daemon
