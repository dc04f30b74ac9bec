// SPDX-License-Identifier: Apache-2.0
//
// `coffer audit export`: receipts as JSON lines, OCSF events or OTLP traces, oldest first, one document a line.
#include <fmt/format.h>

#include <deque>

#include "audit/export_line.h"
#include "base/print.h"
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
      ids.emplace_front(call.tenant, call.id);
    }
    page.cursor = calls.next;
  } while (!page.cursor.empty());
  for (const auto& [tenant, id] : ids) {
    TRY_ASSIGN(const std::optional<std::string> receipt,
               store::FindReceipt(state.store(), tenant, id));
    if (!receipt) {
      continue;  // it runs, or retention has removed it
    }
    TRY_ASSIGN(const std::string line, audit::ExportLine(*format, *receipt));
    PrintOut(line + "\n");
  }
  return std::string();
}

}  // namespace coffer::cli
