// SPDX-License-Identifier: Apache-2.0
//
// The JSON of every answer. The names are a public contract: openapi.json, docs/HTTP.md, the SDKs.
//
// Output of tools is hostile bytes: what is not UTF-8 is replaced here, and only here. JSON text that comes from the
// service (schemas, structured results) is parsed again; what is not JSON becomes null.
#pragma once

#include <string>
#include <vector>

#include "gateway/http/json_pieces.h"
#include "gateway/service.h"

namespace coffer::gateway {

// Calls come in pieces, because output is large. The output is taken out of the view.
// POST /v1/calls, finished: {"call_id", "outcome", "result", "error", "denials", "log"}.
JsonPieces FormatCallResult(CallView& call);
// Gated: {"call_id", "outcome": "gated", "approval"}; accepted and going on: {"call_id", "outcome": null, "state"}.
std::string FormatCallAccepted(const CallView& call);
// GET /v1/calls/{id}: the result's members, and what is known of the call besides.
JsonPieces FormatCall(CallView& call);

std::string FormatSession(const SessionView& session);
std::string FormatSessions(const Page<SessionView>& page);
std::string FormatProcess(const ProcessView& process);
std::string FormatProcesses(const std::vector<ProcessView>& processes);
std::string FormatProcessLog(const ProcessLogView& log);
std::string FormatFile(const FileView& file);
std::string FormatFiles(const Page<FileView>& page);
std::string FormatTool(const ToolView& tool);
std::string FormatTools(const std::vector<ToolView>& tools);
std::string FormatKey(const KeyView& key);
std::string FormatNewKey(const NewKey& key);
std::string FormatKeys(const std::vector<KeyView>& keys);
std::string FormatAudit(const Page<AuditView>& page);
std::string FormatTranscriptView(const TranscriptView& view);
std::string FormatCheckpoint(const CheckpointView& checkpoint);
std::string FormatAccess(const AccessView& access);
std::string FormatAccessList(const std::vector<AccessView>& waiting);
std::string FormatSwitch(const SwitchView& one);
std::string FormatSwitches(const std::vector<SwitchView>& switches);
std::string FormatReadiness(const Readiness& readiness);

}  // namespace coffer::gateway
