// SPDX-License-Identifier: Apache-2.0
//
// Background processes as MCP tools: their definitions for a model, and the results of their calls.
//
// Four tools that are no manifests: they start, show and end calls of a declared tool that go on
// after their answer. What such a process may do is the declared tool's manifest, with its
// [background].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/json_pieces.h"
#include "base/result.h"

namespace coffer::gateway {

enum class ProcessTool : uint8_t { kStart, kList, kRead, kStop };
std::optional<ProcessTool> FindProcessTool(std::string_view name);

// The declared tool that start-process calls.
inline constexpr const char* kProcessRunner = "shell";
// In a definition of Service::ListToolDefinitions: the tool's manifest has [background]. Clients do not see it.
inline constexpr const char* kRunsInBackground = "runs in background";

// As tools/list has them. `owner`: with what they end, "this connection" or "this session".
std::vector<Json> ProcessToolsJson(std::string_view owner);

// What the client asked for, checked against the schema of the tool.
struct ProcessAsk {
  std::string command;          // of kStart
  std::vector<uint16_t> ports;  // of kStart
  std::string process_id;       // of kRead and kStop
  std::optional<uint64_t> offset;
};
Result<ProcessAsk> ReadProcessAsk(ProcessTool tool, std::string_view args_json);

struct ProcessState {
  std::string id;
  std::string command;
  std::vector<uint16_t> ports;
  bool running = false;
  std::string outcome;  // of one that has ended
  std::optional<int> exit_code;
  std::optional<int> exit_signal;
  std::string error_class;
  std::string error_message;
};
// content, structuredContent, isError. `note` is a sentence for the model.
Json ProcessResultJson(const std::vector<ProcessState>& processes, const std::string& note);
// The same for kRead, without the braces: a piece of the output, and where the next one begins. The
// output stands in it twice and is held once.
JsonPieces ProcessOutput(const ProcessState& process, std::string output, uint64_t next_offset);
// A call that is not possible.
Json ProcessErrorJson(const Error& error);

}  // namespace coffer::gateway
