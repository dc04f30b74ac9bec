// SPDX-License-Identifier: Apache-2.0
#include "call/replay.h"

#include "call/refusals.h"

namespace coffer::call {
namespace {

// The stored data of a call differs from its seal: none of it goes into the answer.
ToolReply Broken(const std::string& call_id) {
  ToolReply reply =
      ReplyOf(ToolRefusal::kFailed,
              Internal(kRecordBroken,
                       "the stored data of the call that used this key differs from its seal; "
                       "the call is not run again"));
  reply.hint = "the operator can look with `coffer audit verify`";
  reply.call_id = call_id;
  reply.outcome = "unknown";
  return reply;
}

}  // namespace

ToolReply Replay(Recorder& recorder, const ToolRequest& request, std::string_view args_hash,
                 const store::Admission& admission) {
  const bool ended = admission.state == store::CallState::kFinished ||
                     admission.state == store::CallState::kRefused;
  if (admission.result.empty() && !ended) {
    // It was under way when a process died: how far it came is not known, and it is not run again.
    ToolReply lost = FailedReply(Internal("internal", kEndNotSeen));
    lost.call_id = admission.call_id;
    lost.outcome = "unknown";
    lost.replayed = true;
    return lost;
  }
  const Result<std::optional<store::Call>> row =
      store::FindCall(recorder.store(), request.identity.tenant, admission.call_id);
  const Result<audit::SealedCall> sealed =
      row.ok() && *row ? recorder.ReadSealed(**row)
                       : Result<audit::SealedCall>(Internal("store.call", "the call is gone"));
  if (!sealed.ok()) {
    return FailedReply(sealed.error());
  }
  // The key's own row is not sealed: it must lead to a call of this agent that asked the same. A result can be removed to
  // make room after the key led to it.
  if (sealed->state != audit::SealState::kGood ||
      (sealed->result && *sealed->result != admission.result) ||
      sealed->call.identity.agent != request.identity.agent ||
      sealed->call.identity.tool != request.identity.tool ||
      sealed->call.identity.session_id != request.identity.session_id ||
      sealed->call.identity.parent_id != request.identity.parent_id ||
      sealed->call.args_hash != args_hash) {
    return Broken(admission.call_id);
  }
  if (!sealed->result) {
    // How it ended is in its receipt; what it said was pruned (Recorder::PruneToSize).
    ToolReply gone;
    gone.call_id = admission.call_id;
    gone.outcome = sealed->call.outcome ? store::OutcomeName(*sealed->call.outcome) : "unknown";
    gone.error_class = "policy.storage";
    gone.error_message = "the call has ended as it says here; its result was removed to make room";
    gone.log = sealed->log;
    gone.admitted = true;
    gone.replayed = true;
    return gone;
  }
  Result<ToolReply> stored = ParseReply(admission.result);
  if (!stored.ok()) {
    return FailedReply(stored.error());
  }
  stored->log = sealed->log;
  stored->replayed = true;
  return std::move(stored).value();
}

}  // namespace coffer::call
