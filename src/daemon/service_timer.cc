// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that a timer drives: what must end is ended, what is old is forgotten,
// and what the store and the log say of themselves is looked at.
#include <fmt/format.h>

#include "base/print.h"
#include "daemon/service.h"
#include "store/key.h"
#include "store/recovery.h"
#include "store/switches.h"

namespace coffer::daemon {
namespace {

constexpr std::chrono::milliseconds kTick{250};
constexpr uint32_t kSweepEvery = 4;

// Once, for readers of our stderr; /readyz says it all the time.
void TellChange(std::atomic<bool>& was_good, const Status& now, std::string_view good_news) {
  if (was_good.exchange(now.ok()) == now.ok()) {
    return;
  }
  if (now.ok()) {
    PrintError(fmt::format("coffer: note: {}", good_news));
  } else {
    PrintError(now.error());
  }
}

}  // namespace

DaemonService::DaemonService(ServiceContext& context, ServiceOptions options)
    : context_(context),
      options_(options),
      volumes_ok_(options.owner == 0),
      volumes_(context.sessions, context.warden) {
  timer_ = context_.loop.After(kTick, [this] { Tick(); });
}

DaemonService::~DaemonService() = default;

void DaemonService::Tick() {
  const std::shared_ptr<void> keep = std::move(timer_);  // we are running inside it
  if (!context_.workers().Submit([this] {
        CheckSwitches();
        EndExpired();
        KeepRoom();
        if (ticks_++ % kSweepEvery == 0) {
          SweepWorkspaces();
          SettleDead();
          PruneOld();
        }
        context_.meter.Tick();
        Status kept = context_.store().Inspect();
        if (kept.ok()) {
          kept = context_.store().Maintain();
        }
        TellChange(store_ok_, kept, "the store can be used again");
        TellChange(log_ok_, context_.recorder().WritePending(), "the record can be written again");
        behind_ = false;
      })) {
    behind_ = true;
  }
  timer_ = context_.loop.After(kTick, [this] { Tick(); });
}

// On a worker. `coffer call` beside us may have been killed: its boundary died with it, and only the record is left.
void DaemonService::SettleDead() {
  if (const Result<std::vector<store::RecoveredCall>> dead =
          store::RecoverAgain(context_.store(), store::AllTenants{});
      dead.ok()) {
    (void)context_.recorder().Settle(*dead);
  }
}

// On a worker. A switch may have been flipped, or a key revoked, by another process.
void DaemonService::CheckSwitches() {
  const Result<int64_t> generation = store::SwitchGeneration(context_.store());
  if (!generation.ok() || *generation == switch_generation_) {
    return;
  }
  switch_generation_ = *generation;
  context_.loop.Post([this] {
    for (const auto& [id, flight] : calls_) {
      KillIfStopped(id, flight.request);
    }
  });
}

void DaemonService::KillIfStopped(const std::string& call_id, const call::ToolRequest& request) {
  context_.workers().SubmitAlways([this, call_id, request] {
    const Result<std::optional<store::Switch>> stopped = store::FindSwitch(
        context_.store(), request.identity.tenant,
        {request.identity.tool, request.identity.agent, request.identity.session_id});
    const Result<std::optional<store::ApiKey>> key =
        store::FindKey(context_.store(), store::AllTenants{}, request.key_id);
    const bool revoked = key.ok() && *key && (*key)->revoked_at && !(*key)->keep_running;
    std::optional<Error> why;
    if (stopped.ok() && *stopped) {
      why = Refused("policy.switch",
                    fmt::format("stopped by a switch on the {} by {}",
                                store::SwitchKindName((*stopped)->kind), (*stopped)->who));
    } else if (revoked) {
      why = Refused("policy.cancelled", "cancelled because its key was revoked");
    }
    // A session that ended between admission and now: a process would go on for hours.
    if (const std::string& id = request.identity.session_id; !id.empty()) {
      const Result<std::optional<store::Session>> session =
          store::FindSession(context_.store(), request.identity.tenant, id);
      if (session.ok() && *session && (*session)->ended_at) {
        processes_.Forget(id);
        why = Refused("policy.cancelled", "cancelled with its session, which has ended");
      }
    }
    if (why) {
      context_.loop.Post([this, call_id, why = std::move(*why)] { Stop(call_id, why); });
    }
  });
}

void DaemonService::Stop(const std::string& call_id, const Error& why) {
  const auto found = calls_.find(call_id);
  if (found == calls_.end()) {
    return;
  }
  if (!found->second.stopped) {
    found->second.stopped = why;
  }
  context_.launcher().Kill(call_id);
}

void DaemonService::StopWhere(const std::function<bool(const call::ReadyCall&)>& stopped,
                              const Error& why) {
  for (const auto& [id, flight] : calls_) {
    if (flight.call != nullptr && stopped(flight.call->ready())) {
      Stop(id, why);
    }
  }
}

}  // namespace coffer::daemon
