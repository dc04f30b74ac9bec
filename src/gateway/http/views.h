// SPDX-License-Identifier: Apache-2.0
//
// The JSON of every answer. The names are a public contract: openapi.json, docs/HTTP.md, the SDKs.
//
// Output of tools is hostile bytes: what is not UTF-8 is replaced here, and only here. JSON text that comes from the
// service (schemas, structured results) is parsed again; what is not JSON becomes null.
#pragma once

#include <string>
#include <vector>

#include "base/json_pieces.h"
#include "gateway/service.h"

namespace coffer::gateway {

// Calls and lists come in pieces, because they can be large. Output and items are taken out of the view.
// POST /v1/calls, finished: {"call_id", "outcome", "result", "error", "denials", "log"}.
JsonPieces FormatCallResult(CallView& call);
// Gated: {"call_id", "outcome": "gated", "approval"}; accepted and going on: {"call_id", "outcome": null, "state"}.
std::string FormatCallAccepted(const CallView& call);
// GET /v1/calls/{id}: the result's members, and what is known of the call besides.
JsonPieces FormatCall(CallView& call);

std::string FormatSession(const SessionView& session);
JsonPieces FormatSessions(Page<SessionView>& page);
std::string FormatProcess(const ProcessView& process);
JsonPieces FormatProcesses(std::vector<ProcessView>& processes);
JsonPieces FormatProcessLog(ProcessLogView& log);
std::string FormatFile(const FileView& file);
JsonPieces FormatFiles(Page<FileView>& page);
std::string FormatTool(const ToolView& tool);
JsonPieces FormatTools(std::vector<ToolView>& tools);
std::string FormatKey(const KeyView& key);
std::string FormatNewKey(const NewKey& key);
JsonPieces FormatKeys(std::vector<KeyView>& keys);
JsonPieces FormatAudit(Page<AuditView>& page);
JsonPieces FormatTranscriptView(TranscriptView& view);
// JSON text of the service as it is: a receipt, an object of the record.
JsonPieces FormatWhole(std::string& json_text);
std::string FormatCheckpoint(const CheckpointView& checkpoint);
std::string FormatAccess(const AccessView& access);
JsonPieces FormatAccessList(std::vector<AccessView>& waiting);
std::string FormatSwitch(const SwitchView& one);
JsonPieces FormatSwitches(std::vector<SwitchView>& switches);
std::string FormatReadiness(const Readiness& readiness);

}  // namespace coffer::gateway
