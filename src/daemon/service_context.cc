// SPDX-License-Identifier: Apache-2.0
#include "daemon/service_context.h"

#include "base/print.h"
#include "daemon/workspace.h"
#include "store/key.h"

namespace coffer::daemon {

gateway::Refusal RefusalOf(const Error& error) {
  gateway::Refusal refusal;
  switch (error.kind) {
    case ErrorKind::kRefused:
      refusal.kind = error.code == kFileConflict || error.code == store::kKeyLimit
                         ? gateway::RefusalKind::kConflict
                         : gateway::RefusalKind::kRefused;
      break;
    case ErrorKind::kNotFound:
      refusal.kind = gateway::RefusalKind::kNotFound;
      break;
    default:
      PrintError(error);  // the daemon's log is its stderr
      refusal.kind = gateway::RefusalKind::kInternal;
      refusal.code = "internal";
      refusal.message = "Cofferdam could not do this; its log says why";
      return refusal;
  }
  refusal.code = error.code;
  refusal.message = error.message;
  refusal.hint = error.hint;
  return refusal;
}

gateway::Refusal Full(const Error& error) {
  gateway::Refusal refusal;
  refusal.kind = gateway::RefusalKind::kUnavailable;
  refusal.code = "storage.full";
  refusal.message = error.message;
  refusal.hint = error.hint;
  refusal.retry_after = std::chrono::seconds(10);
  return refusal;
}

gateway::Refusal Busy() {
  gateway::Refusal refusal;
  refusal.kind = gateway::RefusalKind::kUnavailable;
  refusal.code = "busy";
  refusal.message = "too many requests of this tenant or key are waiting already";
  refusal.hint = "wait for answers before you ask for more";
  refusal.retry_after = std::chrono::seconds(1);
  return refusal;
}

gateway::Refusal MemoryFull() {
  gateway::Refusal refusal;
  refusal.kind = gateway::RefusalKind::kUnavailable;
  refusal.code = "busy.memory";
  refusal.message = "the gateway has used up its memory budget";
  refusal.hint = "come back when earlier answers have been read";
  refusal.retry_after = std::chrono::seconds(1);
  return refusal;
}

Lane LaneOf(const gateway::Asker* asker) {
  if (asker == nullptr) {
    return {};
  }
  const bool known = asker->tenant != store::TenantId::None();
  return {known ? asker->tenant.name() : std::string(kStrangers), asker->key};
}

Lane LaneOf(const gateway::Identity& who) { return {who.tenant.name(), who.key_id}; }

}  // namespace coffer::daemon
