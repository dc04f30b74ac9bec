// SPDX-License-Identifier: Apache-2.0
//
// The context: what the daemon's service works with, in one place, so that its parts can be written apart.
#pragma once

#include <functional>
#include <string>

#include "call/ladder.h"
#include "call/recorder.h"
#include "call/tool_shelf.h"
#include "call/warden/launcher.h"
#include "daemon/disk_reserve.h"
#include "daemon/live_config.h"
#include "daemon/memory_budget.h"
#include "daemon/metrics.h"
#include "daemon/session_space.h"
#include "daemon/workers.h"
#include "gateway/service.h"
#include "limits/cgroup/surrounding.h"
#include "net/loop.h"
#include "store/store.h"

namespace coffer::daemon {

// Filled in two steps: listening needs privileges that are gone by the time the store is opened.
// Nothing is asked of the service before the loop runs, and by then everything is there.
class ServiceContext {
 public:
  explicit ServiceContext(net::Loop& given_loop) : loop(given_loop) {}

  net::Loop& loop;
  std::string sessions;     // directory of session workspaces
  int warden = -1;          // the socket to the warden
  SessionSpace space;       // what sessions hold
  DiskReserve reserve;      // of the state directory
  call::HostBudget budget;  // of all calls
  LiveConfig live_config;   // what the operator configured; replaced while it runs
  Meter meter;              // counters and baselines, for the scraper of metrics

  store::Store& store() const { return recorder_->store(); }
  call::Recorder& recorder() const { return *recorder_; }
  call::ToolShelf& shelf() const { return *shelf_; }
  call::Ladder& ladder() const { return *ladder_; }
  call::Launcher& launcher() const { return *launcher_; }
  Workers& workers() const { return *workers_; }
  // What the gateway may use; looked at for each request.
  MemoryBudget memory{BudgetWithin(limits::SurroundingMemory()), OwnMemory};

  void Fill(call::Recorder* recorder, call::ToolShelf* shelf, call::Ladder* ladder,
            call::Launcher* launcher, Workers* workers) {
    recorder_ = recorder;
    shelf_ = shelf;
    ladder_ = ladder;
    launcher_ = launcher;
    workers_ = workers;
  }

 private:
  call::Recorder* recorder_ = nullptr;
  call::ToolShelf* shelf_ = nullptr;
  call::Ladder* ladder_ = nullptr;
  call::Launcher* launcher_ = nullptr;
  Workers* workers_ = nullptr;
};

// A failure of Cofferdam as the client may see it: without details of the host.
gateway::Refusal RefusalOf(const Error& error);
gateway::Refusal Busy();
// The disk has no room for anything new.
gateway::Refusal Full(const Error& error);
gateway::Refusal MemoryFull();

// Whose turn work for this asker is. Clients that are not known yet share one tenant's turn, each address with its own.
Lane LaneOf(const gateway::Asker* asker);
Lane LaneOf(const gateway::Identity& who);

// Runs `work` on a worker, in its lane's turn, makes what is sent of the answer there, and hands that to the client on
// the loop. A full queue answers at once. Work whose client has left is dropped.
template <typename T>
void AnswerIn(ServiceContext& context, const Lane& lane, gateway::Reply<T> reply,
              std::function<gateway::Answer<T>()> work) {
  const auto asker = std::make_shared<gateway::Reply<T>>(std::move(reply));
  const bool taken = context.workers().Submit(lane, {[&context, asker, work = std::move(work)] {
                                                       context.loop.Post(asker->Prepare(work()));
                                                     },
                                                     [asker] { return asker->wanted(); }});
  if (!taken) {
    (*asker)(Busy());
  }
}

template <typename T>
void Answer(ServiceContext& context, gateway::Reply<T> reply,
            std::function<gateway::Answer<T>()> work) {
  const Lane lane = LaneOf(reply.asker().get());
  AnswerIn<T>(context, lane, std::move(reply), std::move(work));
}

}  // namespace coffer::daemon
