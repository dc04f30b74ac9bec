// SPDX-License-Identifier: Apache-2.0
//
// The sections of a manifest, one function each. Internal to parse.cc and its siblings.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/manifest/manifest.h"
#include "policy/manifest/rules.h"
#include "policy/manifest/table_reader.h"

namespace coffer::policy {

// parse.cc
void ReadTool(const TomlNode& table, Manifest& manifest, MistakeList& mistakes);
void ReadIsolation(const TomlNode& table, Manifest& manifest, MistakeList& mistakes);
void ReadLimits(const TomlNode& table, Manifest& manifest, MistakeList& mistakes);
void ReadApproval(const TomlNode& table, Manifest& manifest, MistakeList& mistakes);
void ReadRate(const TomlNode& table, Manifest& manifest, MistakeList& mistakes);
void ReadExamples(const TomlNode& table, Manifest& manifest, MistakeList& mistakes);

// background.cc; looks at files, isolation and limits, so it comes after them.
void ReadBackground(const TomlNode& table, Manifest& manifest, MistakeList& mistakes);

// calls.cc; looks at isolation and background, so it comes after them.
void ReadCalls(const TomlNode& table, Manifest& manifest, MistakeList& mistakes);

// run.cc; `input` may be null. Both look at files.mount, so they come after ReadFiles.
void ReadInput(const TomlNode* table, Manifest& manifest, MistakeList& mistakes);
void ReadRun(const TomlNode& table, Manifest& manifest, MistakeList& mistakes);

// grants.cc
void ReadFiles(const TomlNode& table, Manifest& manifest, MistakeList& mistakes);
void ReadCredentials(const std::vector<const TomlNode*>& tables, Manifest& manifest,
                     MistakeList& mistakes);
// network.cc; comes before ReadCredentials.
void ReadNetwork(const TomlNode& table, Manifest& manifest, MistakeList& mistakes);
// `host` or `dangerously_host`, whichever is there, judged by `object`. Sets `dangerous` for the second.
std::optional<std::string> ReadHost(
    TableReader& reader, std::string_view example,
    const std::function<std::optional<Objection>(std::string_view)>& object, bool& dangerous,
    Manifest& manifest);
// Writes down a grant made with a dangerously_ key; the table must have a reason.
void GrantDanger(TableReader& reader, std::string_view key, std::string value, Manifest& manifest);
// A reason with nothing dangerous beside it is a mistake: its author believes in a grant that is not there.
void CheckReasonIsUsed(TableReader& reader, bool dangerous);

}  // namespace coffer::policy
