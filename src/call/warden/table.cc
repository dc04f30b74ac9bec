// SPDX-License-Identifier: Apache-2.0
#include "call/warden/table.h"

#include <algorithm>

#include "call/warden/wire_envelope.h"

namespace coffer::call {
namespace {

constexpr uint32_t kTableMagic = 0x636f5203;

void WriteEgress(WireWriter& writer, const policy::EgressConfig& egress) {
  writer.Texts(egress.resolve);
  writer.Texts(egress.addresses);
  writer.Text(egress.upstream_ca);
  writer.Text(egress.upstream_proxy);
  writer.Texts(egress.proxied);
  writer.Text(egress.never_send);
  writer.Texts(egress.deny);
  writer.Number(egress.connections);
  writer.Number(egress.bytes_out);
  writer.Number(egress.bytes_in);
  writer.Number(egress.hold_seconds);
  writer.Number(egress.sets.size());
  for (const auto& [name, rules] : egress.sets) {
    writer.Text(name);
    writer.Texts(rules);
  }
}

policy::EgressConfig ReadEgress(WireReader& reader) {
  policy::EgressConfig egress;
  egress.resolve = reader.Texts();
  egress.addresses = reader.Texts();
  egress.upstream_ca = reader.Text();
  egress.upstream_proxy = reader.Text();
  egress.proxied = reader.Texts();
  egress.never_send = reader.Text();
  egress.deny = reader.Texts();
  egress.connections = reader.Number<uint64_t>();
  egress.bytes_out = reader.Number<uint64_t>();
  egress.bytes_in = reader.Number<uint64_t>();
  egress.hold_seconds = reader.Number<uint32_t>();
  for (uint32_t left = reader.Count(); left > 0 && reader.ok(); --left) {
    std::string name = reader.Text();
    egress.sets.emplace_back(std::move(name), reader.Texts());
  }
  return egress;
}

void WriteWord(WireWriter& writer, const policy::Word& word) {
  writer.Number(static_cast<uint8_t>(word.kind));
  writer.Text(word.text);
}

policy::Word ReadWord(WireReader& reader) {
  policy::Word word;
  word.kind = reader.Choice(policy::WordKind::kAllArguments);
  word.text = reader.Text();
  return word;
}

void WriteEntry(WireWriter& writer, const TableEntry& entry) {
  writer.Text(entry.tool);
  writer.Text(entry.file);
  writer.Text(entry.manifest_hash);
  WriteEnvelope(writer, entry.envelope);
  writer.Number(static_cast<uint8_t>(entry.workspace));
  writer.Number(entry.argv.size());
  for (const policy::WordGroup& group : entry.argv) {
    writer.Number(group.words.size());
    for (const policy::Word& word : group.words) {
      WriteWord(writer, word);
    }
  }
  writer.Number(entry.env.size());
  for (const auto& [name, word] : entry.env) {
    writer.Text(name);
    WriteWord(writer, word);
  }
  writer.Flag(entry.stdin_word.has_value());
  if (entry.stdin_word) {
    WriteWord(writer, *entry.stdin_word);
  }
  writer.Flag(entry.background.has_value());
  if (entry.background) {
    writer.Signed(entry.background->wall.count());
    writer.Signed(entry.background->cpu.count());
    writer.Number(entry.background->ports.size());
    for (const policy::PortRange& range : entry.background->ports) {
      writer.Number(range.first);
      writer.Number(range.last);
    }
  }
  writer.Texts(entry.calls.tools);
  writer.Number(entry.calls.most);
}

policy::BackgroundSpec ReadBackgroundSpec(WireReader& reader) {
  policy::BackgroundSpec background;
  background.wall = Nanos(reader.Signed());
  background.cpu = Nanos(reader.Signed());
  for (uint32_t left = reader.Count(); left > 0 && reader.ok(); --left) {
    const auto first = reader.Number<uint16_t>();
    background.ports.push_back({first, reader.Number<uint16_t>()});
  }
  return background;
}

TableEntry ReadEntry(WireReader& reader) {
  TableEntry entry;
  entry.tool = reader.Text();
  entry.file = reader.Text();
  entry.manifest_hash = reader.Text();
  entry.envelope = ReadEnvelope(reader);
  entry.workspace = reader.Choice(policy::Workspace::kSessionWrite);
  for (uint32_t groups = reader.Count(); groups > 0 && reader.ok(); --groups) {
    policy::WordGroup group;
    for (uint32_t words = reader.Count(); words > 0 && reader.ok(); --words) {
      group.words.push_back(ReadWord(reader));
    }
    entry.argv.push_back(std::move(group));
  }
  for (uint32_t left = reader.Count(); left > 0 && reader.ok(); --left) {
    std::string name = reader.Text();
    entry.env.emplace_back(std::move(name), ReadWord(reader));
  }
  if (reader.Flag()) {
    entry.stdin_word = ReadWord(reader);
  }
  if (reader.Flag()) {
    entry.background = ReadBackgroundSpec(reader);
  }
  entry.calls.tools = reader.Texts();
  entry.calls.most = reader.Number<uint64_t>();
  return entry;
}

Error MalformedTable() { return Internal("internal.wire", "a malformed table of tools"); }

}  // namespace

std::optional<std::string> TableEntry::FixedStdin() const {
  if (!stdin_word) {
    return std::string();
  }
  return stdin_word->kind == policy::WordKind::kLiteral ? std::optional(stdin_word->text)
                                                        : std::nullopt;
}

const TableEntry* WardenTable::Find(std::string_view tool) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const TableEntry& entry) { return entry.tool == tool; });
  return found == entries.end() ? nullptr : &*found;
}

std::string EncodeTable(const WardenTable& table) {
  WireWriter writer(kTableMagic);
  WriteLimits(writer, table.ceilings);
  WriteEgress(writer, table.egress);
  writer.Number(table.entries.size());
  for (const TableEntry& entry : table.entries) {
    WriteEntry(writer, entry);
  }
  return writer.Take();
}

Result<WardenTable> DecodeTable(std::string_view bytes) {
  WireReader reader(bytes, kTableMagic);
  WardenTable table;
  table.ceilings = ReadLimits(reader);
  table.egress = ReadEgress(reader);
  for (uint32_t left = reader.Count(); left > 0 && reader.ok(); --left) {
    TableEntry entry = ReadEntry(reader);
    const bool first_is_literal =
        !entry.argv.empty() && !entry.argv.front().words.empty() &&
        entry.argv.front().words.front().kind == policy::WordKind::kLiteral;
    if (entry.tool.empty() || table.Find(entry.tool) != nullptr || !first_is_literal ||
        entry.envelope.runtimes.empty() || !AreUsable(entry.envelope.limits)) {
      return MalformedTable();
    }
    table.entries.push_back(std::move(entry));
  }
  if (!reader.Complete() || !AreUsable(table.ceilings)) {
    return MalformedTable();
  }
  return table;
}

}  // namespace coffer::call
