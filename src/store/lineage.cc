// SPDX-License-Identifier: Apache-2.0
#include "store/lineage.h"

#include <fmt/format.h>

#include "store/call_row.h"

namespace coffer::store {
namespace {

constexpr size_t kLongestChain = 64;

Place NoPlace(AdmitVerdict verdict, std::string_view error_class, std::string reason) {
  Place place;
  place.no.emplace();
  place.no->verdict = verdict;
  place.no->error_class = error_class;
  place.no->reason = std::move(reason);
  return place;
}

}  // namespace

Result<std::vector<Call>> ChainIn(Connection& db, const TenantId& tenant, std::string_view id) {
  std::vector<Call> chain;
  std::string next(id);
  while (!next.empty()) {
    TRY_ASSIGN(std::optional<Call> call, FindCallIn(db, tenant, next));
    if (!call.has_value() || chain.size() >= kLongestChain) {
      return Refused("store.chain", chain.empty() ? "there is no such call"
                                                  : "the chain of this call's parents is broken");
    }
    next = call->identity.parent_id;
    chain.push_back(std::move(*call));
  }
  return chain;
}

Result<Place> FindPlace(Connection& db, const AdmitRequest& request) {
  if (request.identity.parent_id.empty()) {
    return Place();
  }
  const Result<std::vector<Call>> chain =
      ChainIn(db, request.identity.tenant, request.identity.parent_id);
  if (!chain.ok() && chain.error().code != "store.chain") {
    return chain.error();
  }
  // Another agent's call is as good as none.
  if (!chain.ok() || chain->front().identity.agent != request.identity.agent) {
    return NoPlace(AdmitVerdict::kNoParent, "policy.parent", "there is no such parent call");
  }
  const Call& parent = chain->front();
  if (parent.state != CallState::kStarted ||
      parent.identity.session_id != request.identity.session_id) {
    return NoPlace(AdmitVerdict::kNoParent, "policy.parent",
                   "the parent call is not running in this session");
  }
  const auto depth = static_cast<uint32_t>(chain->size());
  if (depth > request.max_depth) {
    return NoPlace(AdmitVerdict::kTooDeep, "policy.depth",
                   fmt::format("calls may be {} deep at most", request.max_depth));
  }
  for (const Call& ancestor : *chain) {
    if (ancestor.identity.tool == request.identity.tool) {
      return NoPlace(AdmitVerdict::kCycle, "policy.cycle",
                     "this tool is already one of the callers");
    }
  }
  Place place;
  place.depth = depth;
  return place;
}

}  // namespace coffer::store
