// SPDX-License-Identifier: Apache-2.0
//
// What an operator did, or what happened to Cofferdam itself, sent to the receivers of events and written to the log.
//
// The outbox comes first, so a crash between the two still delivers the event: delivery is at least once. If one of the
// two fails, Say fails; SayOrKeep keeps the event, and SayKept writes it as soon as both work. Thread-safe, but for
// Receive.
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

  // Without receivers the outbox gets no event. Set before the first event.
  void Receive(Receivers receivers) { receivers_ = std::move(receivers); }
  std::vector<std::string> ReceiversOf(std::string_view event) const;

  // An Error: the event is not in the log. It may be in the outbox.
  Status Say(const audit::EventRecord& event);
  // For an event that has happened already. An Error: it is kept, and SayKept tries again.
  Status SayOrKeep(audit::EventRecord event);
  // Writes the kept events.
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
