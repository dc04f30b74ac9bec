// SPDX-License-Identifier: Apache-2.0
#include "call/make_table.h"

#include <algorithm>

#include "policy/make_envelope.h"

namespace coffer::call {
namespace {

Result<TableEntry> EntryOf(const ShelfEntry& shelved) {
  const policy::Manifest& manifest = shelved.tool->manifest;
  TableEntry entry;
  entry.tool = shelved.name;
  entry.file = shelved.file;
  entry.manifest_hash = shelved.tool->hash;
  TRY_ASSIGN(entry.envelope, policy::MakeEnvelope(manifest, {}, {}));
  entry.workspace = manifest.workspace;
  entry.background = manifest.background;
  entry.calls = manifest.calls;
  entry.argv = manifest.run.argv;
  entry.env = manifest.run.env;
  entry.stdin_word = manifest.run.stdin_word;
  return entry;
}

}  // namespace

Result<WardenTable> MakeTable(const ToolShelf& shelf, const policy::Limits& ceilings,
                              const WardenTable& before) {
  WardenTable table;
  table.ceilings = ceilings;
  const std::vector<ShelfEntry> shelved = shelf.List();
  for (const ShelfEntry& entry : shelved) {
    if (entry.tool != nullptr) {
      TRY_ASSIGN(TableEntry made, EntryOf(entry));
      table.entries.push_back(std::move(made));
    }
  }
  for (const ShelfEntry& entry : shelved) {
    const auto kept = std::find_if(before.entries.begin(), before.entries.end(),
                                   [&](const TableEntry& one) { return one.file == entry.file; });
    if (entry.tool == nullptr && kept != before.entries.end() &&
        table.Find(kept->tool) == nullptr) {
      table.entries.push_back(*kept);
    }
  }
  return table;
}

}  // namespace coffer::call
