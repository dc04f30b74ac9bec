// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that is about background processes of sessions. They are started by Submit, as calls are.
#include "daemon/service.h"
#include "daemon/standing.h"
#include "daemon/visibility.h"

namespace coffer::daemon {
namespace {

constexpr std::chrono::milliseconds kLookAgain{100};

gateway::Refusal UnknownProcess() {
  return {.kind = gateway::RefusalKind::kNotFound,
          .code = "process.unknown",
          .message = "there is no such process in this session"};
}

}  // namespace

void DaemonService::ListProcesses(const gateway::Identity& who, const std::string& session_id,
                                  gateway::Reply<std::vector<gateway::ProcessView>> reply) {
  using Views = std::vector<gateway::ProcessView>;
  Answer<Views>(context_, std::move(reply), [this, who, session_id]() -> gateway::Answer<Views> {
    const gateway::Answer<store::Session> session =
        FindVisibleSession(context_.store(), who, session_id);
    if (!session.ok()) {
      return session.refusal();
    }
    return processes_.List(session_id);
  });
}

gateway::Answer<gateway::ProcessView> DaemonService::FindProcess(
    const gateway::Identity& who, const gateway::ProcessName& name) const {
  const gateway::Answer<store::Session> session =
      FindVisibleSession(context_.store(), who, name.session_id);
  if (!session.ok()) {
    return session.refusal();
  }
  std::optional<gateway::ProcessView> found = processes_.Find(name.session_id, name.process_id);
  if (!found) {
    return UnknownProcess();
  }
  return std::move(*found);
}

void DaemonService::GetProcess(const gateway::Identity& who, const gateway::ProcessName& name,
                               gateway::Reply<gateway::ProcessView> reply) {
  Answer<gateway::ProcessView>(context_, std::move(reply),
                               [this, who, name] { return FindProcess(who, name); });
}

void DaemonService::SignalProcess(const gateway::Identity& who, const gateway::ProcessName& name,
                                  std::optional<int> signal,
                                  gateway::Reply<gateway::ProcessView> reply) {
  AnswerIfStanding<gateway::ProcessView>(
      context_, who, std::move(reply),
      [this, who, name, signal]() -> gateway::Answer<gateway::ProcessView> {
        gateway::Answer<gateway::ProcessView> found = FindProcess(who, name);
        if (!found.ok()) {
          return found;
        }
        if (found->state != "running") {
          return gateway::Refusal{.kind = gateway::RefusalKind::kConflict,
                                  .code = "process.ended",
                                  .message = "the process has ended"};
        }
        if (signal) {
          context_.launcher().Signal(name.process_id, *signal);
        } else {
          context_.loop.Post([this, name, by = who.user.empty() ? who.agent : who.user] {
            Stop(name.process_id, Refused("policy.cancelled", "killed by " + by));
          });
        }
        return found;
      });
}

// Long polling: looks now, and then again until something came, the process ended, or the client waited long enough. What
// came is copied and made into an answer on a worker.
void DaemonService::ReadProcessLog(const gateway::Identity& who, const gateway::ProcessName& name,
                                   gateway::LogRange range,
                                   gateway::Reply<gateway::ProcessLogView> reply) {
  const auto deadline = BootTime() + Nanos(range.follow);
  const auto visible = [this, name, range, reply,
                        deadline](const gateway::Answer<gateway::ProcessView>& found) {
    if (!found.ok()) {
      reply(found.refusal());
      return;
    }
    FollowLog(name, range, deadline, reply);
  };
  GetProcess(who, name, gateway::Reply<gateway::ProcessView>(visible, reply.asker()));
}

void DaemonService::FollowLog(const gateway::ProcessName& name, const gateway::LogRange& range,
                              Nanos deadline,
                              const gateway::Reply<gateway::ProcessLogView>& reply) {
  std::optional<gateway::ProcessLogView> log =
      processes_.ReadLog(name.session_id, name.process_id, range.offset, 1);
  if (!log) {
    reply(UnknownProcess());
    return;
  }
  if (!log->text.empty() || log->ended || BootTime() >= deadline || !reply.wanted()) {
    Answer<gateway::ProcessLogView>(
        context_, reply, [this, name, range]() -> gateway::Answer<gateway::ProcessLogView> {
          std::optional<gateway::ProcessLogView> all =
              processes_.ReadLog(name.session_id, name.process_id, range.offset, range.limit);
          if (!all) {
            return UnknownProcess();
          }
          return std::move(*all);
        });
    return;
  }
  const uint64_t number = next_follower_++;
  followers_[number] =
      context_.loop.After(kLookAgain, [this, number, name, range, deadline, reply] {
        const std::shared_ptr<void> keep =
            std::move(followers_[number]);  // we are running inside it
        followers_.erase(number);
        FollowLog(name, range, deadline, reply);
      });
}

void DaemonService::EndProcesses() {
  StopWhere([](const call::ReadyCall& call) { return call.run.background; },
            Refused("policy.cancelled", "cancelled because the daemon stops"));
}

}  // namespace coffer::daemon
