// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that answers "what did it do?": transcripts, manifests and envelopes.
#include "daemon/service.h"
#include "daemon/views.h"
#include "daemon/visibility.h"
#include "store/objects.h"

namespace coffer::daemon {

void DaemonService::GetTranscript(const gateway::Identity& who, const std::string& call_id,
                                  gateway::Reply<gateway::TranscriptView> reply) {
  using View = gateway::TranscriptView;
  Answer<View>(context_, std::move(reply), [this, who, call_id]() -> gateway::Answer<View> {
    const gateway::Answer<store::Call> row = FindVisibleCall(context_.store(), who, call_id);
    if (!row.ok()) {
      return row.refusal();
    }
    Result<audit::SealedCall> sealed = context_.recorder().ReadSealed(row.value());
    if (!sealed.ok()) {
      return RefusalOf(sealed.error());
    }
    if (sealed->state == audit::SealState::kBroken) {
      return BrokenRecord(call_id);
    }
    View view;
    view.call_id = call_id;
    view.kept = sealed->transcript.has_value();
    view.transcript_json = std::move(sealed->transcript).value_or("");
    return view;
  });
}

void DaemonService::GetObject(const gateway::Identity& who, const std::string& hash,
                              gateway::Reply<std::string> reply) {
  Answer<std::string>(
      context_, std::move(reply), [this, who, hash]() -> gateway::Answer<std::string> {
        Result<std::optional<std::string>> object =
            who.all_tenants ? store::FindObject(context_.store(), store::AllTenants{}, hash)
                            : store::FindObject(context_.store(), who.tenant, hash);
        if (!object.ok()) {
          return RefusalOf(object.error());
        }
        if (!*object) {
          return gateway::Refusal{.kind = gateway::RefusalKind::kNotFound,
                                  .code = "object.unknown",
                                  .message = "no call of this tenant names such a hash"};
        }
        return std::move(**object);
      });
}

}  // namespace coffer::daemon
