// SPDX-License-Identifier: Apache-2.0
//
// The tools that can be called: those that are shipped, and those of the operator's directories, which may replace them
// by name. What is not on the shelf does not exist.
//
// A file that stops loading keeps its last good version on the shelf, marked as stale, with every
// mistake that was found; a file that never loaded is listed and cannot be called. A reload swaps
// all tools at once. Beside the manifest's own checks the host is looked at: a mount that is a
// link, is missing or is an alias of something broad is a mistake. Thread-safe; a caller keeps the
// tool that it found, whatever happens to the shelf.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/manifest/mistake.h"
#include "policy/manifest/surfaces.h"
#include "policy/tool.h"

namespace coffer::call {

enum class ToolState : uint8_t { kReady, kStale, kBroken };

struct ShelfEntry {
  std::string file;                          // "python.toml", or the whole path in a directory
  std::string name;                          // of the tool; of the file, if it never loaded
  std::shared_ptr<const policy::Tool> tool;  // null if broken
  ToolState state = ToolState::kReady;
  bool shipped = false;
  std::vector<policy::Mistake> mistakes;
};

// What this version can do; a manifest that asks for more is refused.
const std::set<policy::Surface>& AvailableSurfaces();

// Everything that is wrong with the text of one manifest, and with its mounts on this host.
policy::LoadedTool LoadToolHere(std::string_view text, std::string_view file);

// The same for `coffer tools check`, and whether the runtimes and the program are on this host and the limits are large
// enough to start it (tool_on_host.h). A shelf does not ask that: a runtime may be installed while it stands.
std::vector<policy::Mistake> CheckToolHere(std::string_view text, std::string_view file);

class ToolShelf {
 public:
  // Later directories replace tools of earlier ones, and all of them the shipped ones. `may_be_missing` comes last: a
  // directory that need not be there, and counts as soon as it is.
  // With an operator the directories and files must be that user's alone (operator_path.h), as in the daemon. Without
  // one the caller has named them: `coffer call`.
  explicit ToolShelf(std::vector<std::string> directories, std::string may_be_missing = {},
                     std::optional<uid_t> operator_uid = std::nullopt);

  // Only these, instead of all that is there: tools that no file declares (`coffer mcp wrap`).
  void Replace(const std::vector<std::shared_ptr<const policy::Tool>>& tools);
  // Reads everything again. Fails only if a directory cannot be read or trusted; the shelf is then as it was.
  Status Reload();
  // Another text when a file was added, removed or changed. Cheap: a look at names, times and sizes; nothing is read.
  Result<std::string> Signature() const;

  // Null if there is no such tool, or it is broken.
  std::shared_ptr<const policy::Tool> Find(std::string_view name) const;
  // Sorted by name.
  std::vector<ShelfEntry> List() const;

 private:
  using Entries = std::map<std::string, ShelfEntry, std::less<>>;  // by tool name
  std::shared_ptr<const Entries> Now() const;

  Result<std::vector<std::string>> Files() const;

  const std::vector<std::string> directories_;
  const std::string may_be_missing_;
  const std::optional<uid_t> operator_uid_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Entries> entries_ = std::make_shared<const Entries>();
};

}  // namespace coffer::call
