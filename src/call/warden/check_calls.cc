// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "call/warden/check.h"
#include "policy/narrowing.h"

namespace coffer::call {
namespace {

bool Names(const std::vector<std::string>& tools, const std::string& tool) {
  return std::find(tools.begin(), tools.end(), tool) != tools.end();
}

Error NotItsCall(std::string why) {
  return Refused("policy.parent", std::move(why),
                 "a call from a call has at most what the outer call has");
}

}  // namespace

Status CheckCalls(const TableEntry& entry, const RunRequest& request) {
  const bool named =
      std::all_of(request.tools.begin(), request.tools.end(),
                  [&](const std::string& tool) { return Names(entry.calls.tools, tool); });
  if (!named || (!request.tools.empty() && request.tool_calls > entry.calls.most)) {
    return Refused("policy.entry.calls",
                   fmt::format("the manifest of {} does not allow these calls of tools",
                               Printable(entry.tool)),
                   "see [calls] in the manifest, or read `coffer tools show`");
  }
  return {};
}

Status CheckChild(const WardenTable& table, const RunRequest& parent, const RunRequest& child) {
  const TableEntry* const entry = table.Find(parent.entry);
  if (entry == nullptr || !Names(entry->calls.tools, child.entry) ||
      !Names(parent.tools, child.entry)) {
    return NotItsCall(
        fmt::format("{} does not call {}", Printable(parent.entry), Printable(child.entry)));
  }
  if (parent.tenant != child.tenant) {
    return NotItsCall("the call that makes this one is another tenant's");
  }
  if (const std::vector<std::string> wider = policy::WiderThan(parent.envelope, child.envelope);
      !wider.empty()) {
    return NotItsCall(fmt::format("the call that makes this one does not have {}",
                                  Printable(fmt::format("{}", fmt::join(wider, ", ")))));
  }
  return {};
}

}  // namespace coffer::call
