// SPDX-License-Identifier: Apache-2.0
//
// What went wrong with a call, in words for an agent: without the host's paths.
//
// An error of launching names files of the host: a program that was replaced, a runtime's library, a mount of the manifest
// that is not there. The operator reads the whole sentence in the receipt, and the person at the command line on stderr.
// An agent gets the place inside for a mount, and otherwise the last part of such a path, which is enough to find it in
// the manifest. Answers are made this way on the ladder, for `coffer call`, `coffer mcp` and the daemon alike, so a
// repetition gets the same words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "call/run/run_request.h"
#include "call/tool_call.h"
#include "policy/tool.h"

namespace coffer::call {

// A path of the host, which may have spaces in it, and what an agent reads in its place.
struct HostWord {
  std::string path;
  std::string shown;
  // A word of the command, which an agent may choose: what follows it in a longer path is hidden too. What follows a mount
  // is a path inside.
  bool of_command = false;
};

// The host's paths that a call or a tool names: mounts, the workspace, and words of the command. The longest first.
std::vector<HostWord> HostWordsOf(const RunRequest& request);
std::vector<HostWord> HostWordsOf(const policy::Tool& tool, const std::string& workspace);

// Puts what an agent reads in the place of each of `words`. Other paths stay.
std::string HideHostWords(const std::vector<HostWord>& words, std::string_view text);

// The same, and each other absolute path in `text` becomes its last part, but for "/workspace", "/tmp" and the places of
// `words`. A path ends at a space, quote, comma, colon, semicolon or bracket; in quotes it may have spaces.
std::string HideHostPaths(const std::vector<HostWord>& words, std::string_view text);

// How much of an answer may name the host. kNamed: only what the request or the manifest names, as in sentences about
// arguments. kAny: files of the host, as in errors of launching or of the record.
enum class Mentions : uint8_t { kNamed, kAny };

// Takes the host's paths out of the words of `reply`. The whole ones stay in its operator_message and operator_hint.
void SayToAgent(const std::vector<HostWord>& words, Mentions mentions, ToolReply& reply);

}  // namespace coffer::call
