// SPDX-License-Identifier: Apache-2.0
//
// What an operator did, or what happened to Cofferdam itself, sent to the receivers of events and written to the log.
//
// In this order: a process that dies in between has told, and told again is better than never. Both work or it is not
// said; what would not be said again is kept (SayOrKeep) and said as soon as that works. Thread-safe, but for Receive.
#pragma once

#include <deque>
#include <mutex>

#include "audit/log/log.h"
#include "audit/log/records.h"
#include "base/result.h"
#include "call/outbox_event.h"
#include "store/store.h"

namespace coffer::call {

class Events {
 public:
  // `most`: how many are kept. Beyond that they are counted, and the event `events.lost` says how many they were.
  Events(store::Store& store, audit::Log& log, size_t most)
      : store_(store), log_(log), most_(most) {}

  // No receiver is told of anything, unless set before the first event.
  void Receive(Receivers receivers) { receivers_ = std::move(receivers); }
  std::vector<std::string> ReceiversOf(std::string_view event) const;

  // An Error: it may have been told, and is not in the log.
  Status Say(const audit::EventRecord& event);
  // For what has happened already. An Error: not said yet.
  Status SayOrKeep(audit::EventRecord event);
  // What is kept.
  Status SayKept();

 private:
  struct Kept {
    audit::EventRecord event;
    bool told = false;
  };
  Status Write(Kept& kept);
  void Keep(Kept kept);

  store::Store& store_;
  audit::Log& log_;
  const size_t most_;
  Receivers receivers_;
  std::mutex mutex_;  // of what follows
  std::deque<Kept> kept_;
  uint64_t lost_ = 0;
};

}  // namespace coffer::call
