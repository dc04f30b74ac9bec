// SPDX-License-Identifier: Apache-2.0
#include "call/outer_call.h"

#include <algorithm>

namespace coffer::call {

bool CallsTools(const policy::Tool& tool) { return !tool.manifest.calls.tools.empty(); }

policy::Limits CountedLimits(policy::Limits limits, const policy::Tool& tool) {
  if (CallsTools(tool)) {
    limits.cpu *= 2;
    limits.memory *= 2;
  }
  return limits;
}

Nanos CountedCpu(const Collected& collected, const policy::Tool& tool,
                 const policy::Limits& granted) {
  if (CallsTools(tool)) {
    return CountedLimits(granted, tool).cpu;
  }
  if (collected.report) {
    for (const auto& [name, use] : collected.report->receipt.limits) {
      if (name == "cpu" && use.used) {
        return Nanos(static_cast<int64_t>(*use.used));
      }
    }
  }
  return granted.cpu;
}

Result<policy::Envelope> LeftForInner(const policy::Envelope& outer,
                                      const policy::CallBudget& budget, Nanos now, bool halves) {
  TRY_ASSIGN(const policy::Limits left, budget.Left(now));
  policy::Envelope envelope = outer;
  envelope.network.clear();  // what a call may send is counted for that call alone
  envelope.limits = left;
  if (halves) {
    envelope.limits.cpu /= 2;
    envelope.limits.memory /= 2;
  }
  envelope.limits.output = std::min(left.output, kMostInnerOutput);
  return envelope;
}

ToolReply WithoutHost(ToolReply reply) {
  const auto about = [&](std::string_view what) { return reply.error_class.starts_with(what); };
  if (about("policy.path") || about("policy.mount") || about("policy.entry") ||
      about("policy.workspace") || about("policy.runtime") || about("isolation") ||
      about("internal") || about("record")) {
    reply.error_message = "the tool's boundary could not be made; the record of this call says why";
    reply.hint.clear();
    reply.denials.clear();
  }
  return reply;
}

}  // namespace coffer::call
