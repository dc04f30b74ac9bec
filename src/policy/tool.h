// SPDX-License-Identifier: Apache-2.0
//
// A Tool is a manifest that can be called: parsed, its schemas compiled, its surfaces there, its examples checked.
//
// Loading is all or nothing: with one mistake there is no Tool, and the list says everything that is wrong. Immutable
// afterwards, so it can be shared between threads and swapped as a whole when a file changes. Pure: the host is
// looked at when the mounts are opened.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "policy/make_envelope.h"
#include "policy/manifest/manifest.h"
#include "policy/manifest/surfaces.h"
#include "policy/schema/schema.h"

namespace coffer::policy {

struct Tool {
  Manifest manifest;
  Schema input;
  std::optional<Schema> output;
  std::string form;  // CanonicalForm of the manifest, for the record of each call
  std::string hash;  // of that
};

struct LoadedTool {
  std::optional<Tool> tool;       // only if there is no mistake
  std::vector<Mistake> mistakes;  // sorted by position
  std::optional<Manifest> draft;  // of one with mistakes, for those who look for more
};

LoadedTool LoadTool(std::string_view text, std::string_view file,
                    const std::set<Surface>& available);

// The arguments of one call, against schema, paths and templates. The error is for the agent: class policy.args*,
// with the JSON Pointer of what is wrong, and nothing of the host.
Result<ToolCall> PrepareToolCall(const Tool& tool, const Json& args, const CallPlaces& places);

}  // namespace coffer::policy
