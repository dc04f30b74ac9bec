// SPDX-License-Identifier: Apache-2.0
//
// From what the store and the ladder know to what a protocol shows.
#pragma once

#include "call/tool_call.h"
#include "call/tool_shelf.h"
#include "gateway/service.h"
#include "store/call.h"
#include "store/key.h"
#include "store/session.h"
#include "store/switches.h"

namespace coffer::daemon {

// A call that exists has a view, however it ended; one that was never admitted has a refusal.
gateway::Answer<gateway::CallView> ViewOf(const call::ToolReply& reply,
                                          const call::ToolRequest& request);
// The answer for a call whose record differs from its seal: none of its data is shown.
gateway::Refusal BrokenRecord(const std::string& call_id);
gateway::CallView ViewOf(const store::Call& call, const std::optional<call::ToolReply>& reply);
gateway::SessionView ViewOf(const store::Session& session);
gateway::KeyView ViewOf(const store::ApiKey& key);
gateway::SwitchView ViewOf(const store::Switch& found);
// In full, or as an entry of a list.
// For an agent without paths of the host: mounts have the names that they have inside.
enum class ToolDetail : uint8_t { kShort, kWhole };
gateway::ToolView ViewOf(const call::ShelfEntry& entry, ToolDetail detail, store::Role reader);

store::SwitchKind KindOf(gateway::SwitchTarget::Scope scope);

}  // namespace coffer::daemon
