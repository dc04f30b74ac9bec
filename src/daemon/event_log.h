// SPDX-License-Identifier: Apache-2.0
//
// The events of a call so far, in order, for its watchers: a bounded tail, because a watcher may be slow or absent.
// Used on the gateway's loop only.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "gateway/service.h"

namespace coffer::daemon {

class EventLog;

// What all logs may hold together. Past it the longest one loses its oldest events; a watcher sees a gap.
class EventRoom {
 public:
  explicit EventRoom(size_t most = 24 << 20) : most_(most) {}

 private:
  friend class EventLog;
  void Changed(size_t before, size_t after);
  const size_t most_;
  size_t bytes_ = 0;
  std::set<EventLog*> logs_;
};

class EventLog {
 public:
  // Without a room it is bounded by itself only.
  explicit EventLog(std::shared_ptr<EventRoom> room = nullptr);
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  size_t bytes() const { return bytes_; }
  void AddState(std::string_view state);
  void AddOutput(gateway::CallEvent::Kind kind, std::string_view bytes);
  // Nothing follows any more.
  void Finish();
  bool finished() const { return finished_; }

  // Replies at once if there is something after `after`, or when there is. Dropping the handle ends the wait.
  gateway::WaitHandle Wait(uint64_t after, size_t max_bytes,
                           gateway::Reply<gateway::EventBatch> reply);

 private:
  struct Waiter {
    uint64_t after;
    size_t max_bytes;
    gateway::Reply<gateway::EventBatch> reply;
  };
  gateway::EventBatch BatchAfter(uint64_t after, size_t max_bytes) const;
  void Add(gateway::CallEvent event);
  void DropOldest();
  void Wake();

  friend class EventRoom;
  std::shared_ptr<EventRoom> room_;
  std::deque<gateway::CallEvent> events_;
  size_t bytes_ = 0;
  uint64_t next_ = 1;
  bool finished_ = false;
  std::list<std::weak_ptr<Waiter>> waiters_;
};

}  // namespace coffer::daemon
