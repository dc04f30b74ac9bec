// SPDX-License-Identifier: Apache-2.0
//
// Flags of the verbs beside `run`: `--name`, `--name VALUE`, `--name=VALUE`, and everything else by
// position. A flag that the verb does not know is refused, with the nearest one it knows. --state,
// --tools and --json mean the same everywhere.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "call/run/usual_directories.h"

namespace coffer::call {

struct FlagSpec {
  std::string_view name;  // "--args"
  bool takes_value = false;
};

class VerbFlags {
 public:
  // `specs` are those of the verb, beside the common ones.
  static Result<VerbFlags> Parse(std::string_view verb, std::span<const std::string_view> words,
                                 std::span<const FlagSpec> specs);

  bool Has(std::string_view name) const;
  // The last value given, or `otherwise`.
  std::string Value(std::string_view name, std::string_view otherwise = "") const;
  std::vector<std::string> Values(std::string_view name) const;
  const std::vector<std::string>& words() const { return words_; }
  // After "--".
  const std::vector<std::string>& rest() const { return rest_; }

  bool json() const { return Has("--json"); }
  bool help() const { return Has("--help") || Has("-h"); }
  // --state, COFFER_STATE, /var/lib/coffer as root, or the user's own state directory.
  Result<std::string> StateDir() const;
  // --tools (several), or COFFER_TOOLS (colon-separated); none if neither was given.
  Result<std::vector<std::string>> NamedToolDirs() const;
  // Those, or else `tools` of the operator's directory if it is there. Refused if there are manifests in the state
  // directory, where an earlier version kept them: they do not count any more.
  Result<std::vector<std::string>> ToolDirs() const;
  // --config, or else coffer.toml of the operator's directory, which need not be there. Refused like ToolDirs.
  Result<std::string> ConfigFile() const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> flags_;
  std::vector<std::string> words_;
  std::vector<std::string> rest_;
};

}  // namespace coffer::call
