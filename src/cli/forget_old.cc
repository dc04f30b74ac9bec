// SPDX-License-Identifier: Apache-2.0
#include "cli/forget_old.h"

#include "store/call_list.h"

namespace coffer::cli {

void ForgetOld(State& state, const store::TenantId& tenant, const store::Retention& retention) {
  const Nanos now = state.store().Now();
  store::CallFilter old;
  old.until = now - retention.calls;
  const Result<store::Page<store::Call>> oldest =
      store::ListCalls(state.store(), tenant, old, {1, ""});
  const Result<bool> transcripts = store::HasTranscriptsBefore(
      state.store(), tenant, store::TranscriptsKeptSince(retention, now));
  if ((oldest.ok() && !oldest->rows.empty()) || (transcripts.ok() && *transcripts)) {
    (void)state.recorder().Prune(tenant, retention);
  }
}

}  // namespace coffer::cli
