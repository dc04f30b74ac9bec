// SPDX-License-Identifier: Apache-2.0
//
// The table of everything that the warden may launch: one entry for each tool that a manifest
// declares, and the ceilings of the operator's configuration.
//
// It is compiled from the manifests by a short-lived process without privilege (daemon/compile.h), which is neither the
// gateway nor the warden, and the monitor hands it to the warden. So the warden knows what every manifest allows and
// still parses no TOML. A request names an entry and fills in its parameters (check.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "policy/egress_config.h"
#include "policy/envelope.h"
#include "policy/manifest/manifest.h"
#include "policy/template.h"

namespace coffer::call {

struct TableEntry {
  std::string tool;           // the name that a request gives
  std::string file;           // where it is declared
  std::string manifest_hash;  // for messages and records
  policy::Envelope envelope;  // the most that a call may have; without workspace and variables
  policy::Workspace workspace = policy::Workspace::kFresh;
  std::optional<policy::BackgroundSpec> background;  // nothing: it never runs in the background
  policy::CallsSpec calls;                           // without tools it calls none
  std::vector<policy::WordGroup> argv;
  std::vector<std::pair<std::string, policy::Word>> env;
  std::optional<policy::Word> stdin_word;  // nothing: there is nothing to read

  // All of stdin, if the manifest fixes it; nothing if a parameter does.
  std::optional<std::string> FixedStdin() const;
};

struct WardenTable {
  policy::Limits ceilings;          // no call has more, whatever its manifest says
  policy::EgressConfig egress;      // what the operator says about every tool's network
  std::vector<TableEntry> entries;  // one for each tool

  const TableEntry* Find(std::string_view tool) const;  // null if there is none
};

std::string EncodeTable(const WardenTable& table);
// Refuses what does not decode completely, a tool that is named twice, and limits that are missing.
Result<WardenTable> DecodeTable(std::string_view bytes);

}  // namespace coffer::call
