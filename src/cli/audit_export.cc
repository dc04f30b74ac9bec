// SPDX-License-Identifier: Apache-2.0
//
// `coffer audit export`: receipts as JSON lines, OCSF events or OTLP traces, oldest first, one document a line.
#include <fmt/format.h>

#include <deque>

#include "audit/export/line.h"
#include "audit/sealed_call.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/audit_flags.h"
#include "cli/state.h"
#include "cli/verb_audit.h"

namespace coffer::cli {

Result<std::string> AuditExport(const call::VerbFlags& flags) {
  const std::optional<audit::ExportFormat> format =
      audit::FindExportFormat(flags.Value("--format", "jsonl"));
  if (!format) {
    return Refused("policy.usage", "--format takes jsonl, ocsf or otlp");
  }
  TRY_ASSIGN(const AuditFilter filter, ReadAuditFilter(flags));
  TRY_ASSIGN(State state, State::Open(flags));
  // The list is newest first; ids are short, so they are gathered and then told from the other end.
  std::deque<std::pair<store::TenantId, std::string>> ids;
  store::PageRequest page;
  page.limit = 1000;
  do {
    TRY_ASSIGN(const store::Page<store::Call> calls, ListFiltered(state.store(), filter, page));
    for (const store::Call& call : calls.rows) {
      ids.emplace_front(call.identity.tenant, call.identity.call_id);
    }
    page.cursor = calls.next;
  } while (!page.cursor.empty());
  size_t broken = 0;
  for (const auto& [tenant, id] : ids) {
    TRY_ASSIGN(const std::optional<store::Call> row, store::FindCall(state.store(), tenant, id));
    if (!row) {
      continue;  // retention has removed it
    }
    TRY_ASSIGN(const audit::SealedCall sealed, state.recorder().ReadSealed(*row));
    if (sealed.state == audit::SealState::kBroken) {
      ++broken;
      PrintError(fmt::format("coffer: record.broken: call {} is left out: {}", Printable(id),
                             Printable(sealed.problem)));
    }
    if (sealed.state != audit::SealState::kGood) {
      continue;
    }
    TRY_ASSIGN(const std::string line, audit::ExportLine(*format, sealed.receipt));
    PrintOut(line + "\n");
  }
  if (broken > 0) {
    ExitWithFindings("");
  }
  return std::string();
}

}  // namespace coffer::cli
