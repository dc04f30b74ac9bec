// SPDX-License-Identifier: Apache-2.0
#include "cli/inside_waiting.h"

#include <algorithm>
#include <utility>

#include "call/outer_call.h"
#include "policy/manifest/manifest.h"

namespace coffer::cli {
namespace {

using gateway::McpError;
using gateway::McpErrorCode;

const auto kReads = [](const InsideWaiting::Waiting& one) { return one.caller->takes_more(); };

}  // namespace

bool InsideWaiting::Add(InsideCaller& caller, const gateway::McpCall& call) {
  // What is refused is recorded under the name it asked for, so the name must be one.
  if (!policy::IsToolName(call.tool)) {
    caller.mcp().Answer(call.id, McpError{McpErrorCode::kBadParams,
                                          "that is not the name of a tool; tools/list has them",
                                          {}});
    return false;
  }
  if (waiting_.size() >= call::kMostInnerWaiting) {
    caller.mcp().Answer(
        call.id, McpError{McpErrorCode::kInternal, "too many calls wait; send it again later", {}});
    return false;
  }
  waiting_.push_back({&caller, call});
  return true;
}

const InsideWaiting::Waiting* InsideWaiting::Next() const {
  const auto next = std::find_if(waiting_.begin(), waiting_.end(), kReads);
  return next == waiting_.end() ? nullptr : &*next;
}

InsideWaiting::Waiting InsideWaiting::Take() {
  const auto next = std::find_if(waiting_.begin(), waiting_.end(), kReads);
  Waiting taken = std::move(*next);
  waiting_.erase(next);
  return taken;
}

void InsideWaiting::Cancel(const InsideCaller& caller, const gateway::McpId& id) {
  const auto waits = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& one) {
    return one.caller == &caller && one.call.id == id;
  });
  if (waits == waiting_.end()) {
    return;
  }
  const Waiting taken = std::move(*waits);
  waiting_.erase(waits);
  taken.caller->mcp().Answer(
      taken.call.id,
      McpError{McpErrorCode::kInternal, "the call was cancelled before it began", {}});
}

void InsideWaiting::CancelAllOf(const InsideCaller& caller) {
  std::erase_if(waiting_, [&](const Waiting& one) { return one.caller == &caller; });
}

bool InsideWaiting::HasAny(const InsideCaller& caller) const {
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const Waiting& one) { return one.caller == &caller; });
}

}  // namespace coffer::cli
