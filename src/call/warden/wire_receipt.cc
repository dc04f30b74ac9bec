// SPDX-License-Identifier: Apache-2.0
#include "call/warden/wire_receipt.h"

#include <algorithm>

namespace coffer::call {
namespace {

// A receipt that is sealed with a time beyond these cannot be read back (audit/receipt_parse.cc).
constexpr Nanos kLatest = std::chrono::hours(24 * 365 * 230);  // the year 2199
// How a call that was launched can end. `gated` and `unknown` are not a runner's to say.
constexpr std::string_view kOutcomes[] = {"success", "error", "denied", "terminated"};

void WriteTime(WireWriter& writer, Nanos time) { writer.Signed(time.count()); }

Nanos ReadTime(WireReader& reader) {
  const Nanos time(reader.Signed());
  if (time < Nanos(0) || time > kLatest) {
    reader.Fail();
  }
  return time;
}

template <typename List, typename Write>
void WriteList(WireWriter& writer, const List& list, const Write& write) {
  writer.Number(list.size());
  for (const auto& item : list) {
    write(item);
  }
}

template <typename Item, typename Read>
std::vector<Item> ReadList(WireReader& reader, const Read& read) {
  std::vector<Item> list;
  for (uint32_t left = reader.Count(); left > 0 && reader.ok(); --left) {
    list.push_back(read());
  }
  return list;
}

void WriteExit(WireWriter& writer, const std::optional<int>& value) {
  writer.Flag(value.has_value());
  writer.Number(static_cast<uint8_t>(value.value_or(0)));
}

std::optional<int> ReadExit(WireReader& reader) {
  const bool there = reader.Flag();
  const int value = reader.Number<uint8_t>();
  return there ? std::optional<int>(value) : std::nullopt;
}

void WriteIsolation(WireWriter& writer, const audit::Receipt& receipt) {
  writer.Text(receipt.level);
  writer.Texts(receipt.layers);
  writer.Texts(receipt.floor);
  WriteList(writer, receipt.missing, [&](const audit::MissingLayer& layer) {
    writer.Text(layer.layer);
    writer.Text(layer.reason);
    writer.Text(layer.stand_in);
  });
  writer.Texts(receipt.runtimes);
  writer.Text(receipt.program);
  writer.Flag(receipt.exec);
  WriteList(writer, receipt.bound, [&](const audit::BoundPath& path) {
    writer.Text(path.path);
    writer.Text(path.path_class);
    writer.Text(path.why);
    writer.Number(path.count);
  });
  writer.Texts(receipt.planted);
}

void ReadIsolation(WireReader& reader, audit::Receipt& receipt) {
  receipt.level = reader.Text();
  receipt.layers = reader.Texts();
  receipt.floor = reader.Texts();
  receipt.missing = ReadList<audit::MissingLayer>(reader, [&] {
    audit::MissingLayer layer;
    layer.layer = reader.Text();
    layer.reason = reader.Text();
    layer.stand_in = reader.Text();
    return layer;
  });
  receipt.runtimes = reader.Texts();
  receipt.program = reader.Text();
  receipt.exec = reader.Flag();
  receipt.bound = ReadList<audit::BoundPath>(reader, [&] {
    audit::BoundPath path;
    path.path = reader.Text();
    path.path_class = reader.Text();
    path.why = reader.Text();
    path.count = reader.Number<uint64_t>();
    return path;
  });
  receipt.planted = reader.Texts();
}

void WriteUse(WireWriter& writer, const audit::Receipt& receipt) {
  WriteList(writer, receipt.limits, [&](const auto& limit) {
    const auto& [name, use] = limit;
    writer.Text(name);
    writer.Number(use.cap);
    writer.Flag(use.used.has_value());
    writer.Number(use.used.value_or(0));
    writer.Text(use.unit);
    writer.Flag(use.breached);
    writer.Flag(use.enforced);
  });
  WriteList(writer, receipt.denials, [&](const audit::Denial& denial) {
    writer.Text(denial.surface);
    writer.Text(denial.operation);
    writer.Text(denial.target);
    writer.Text(denial.rule);
    writer.Text(denial.reason);
    writer.Text(denial.fix);
    writer.Number(denial.count);
  });
  writer.Flag(receipt.denials_recorded);
  WriteList(writer, receipt.syscalls_denied, [&](const auto& denied) {
    writer.Text(denied.first);
    writer.Number(denied.second);
  });
}

void ReadUse(WireReader& reader, audit::Receipt& receipt) {
  receipt.limits = ReadList<std::pair<std::string, audit::CapUse>>(reader, [&] {
    std::pair<std::string, audit::CapUse> limit;
    auto& [name, use] = limit;
    name = reader.Text();
    use.cap = reader.Number<uint64_t>();
    const bool measured = reader.Flag();
    const auto used = reader.Number<uint64_t>();
    use.used = measured ? std::optional<uint64_t>(used) : std::nullopt;
    use.unit = reader.Text();
    use.breached = reader.Flag();
    use.enforced = reader.Flag();
    return limit;
  });
  receipt.denials = ReadList<audit::Denial>(reader, [&] {
    audit::Denial denial;
    denial.surface = reader.Text();
    denial.operation = reader.Text();
    denial.target = reader.Text();
    denial.rule = reader.Text();
    denial.reason = reader.Text();
    denial.fix = reader.Text();
    denial.count = reader.Number<uint64_t>();
    return denial;
  });
  receipt.denials_recorded = reader.Flag();
  receipt.syscalls_denied = ReadList<std::pair<std::string, uint64_t>>(reader, [&] {
    std::pair<std::string, uint64_t> denied;
    denied.first = reader.Text();
    denied.second = reader.Number<uint64_t>();
    return denied;
  });
}

}  // namespace

void WriteReceipt(WireWriter& writer, const audit::Receipt& receipt) {
  WriteTime(writer, receipt.started_at);
  WriteTime(writer, receipt.finished_at);
  WriteTime(writer, receipt.duration);
  writer.Text(receipt.code_hash);
  WriteIsolation(writer, receipt);
  WriteUse(writer, receipt);
  writer.Number(receipt.output_bytes);
  writer.Number(receipt.output_produced);
  writer.Flag(receipt.output_truncated);
  writer.Text(receipt.output_sha256);
  writer.Text(receipt.stderr_sha256);
  writer.Text(receipt.outcome);
  writer.Text(receipt.error_class);
  writer.Text(receipt.error_message);
  WriteExit(writer, receipt.exit_code);
  WriteExit(writer, receipt.exit_signal);
  WriteList(writer, receipt.steps_us, [&](const auto& step) {
    writer.Text(step.first);
    writer.Signed(step.second);
  });
}

audit::Receipt ReadReceipt(WireReader& reader) {
  audit::Receipt receipt;
  receipt.started_at = ReadTime(reader);
  receipt.finished_at = ReadTime(reader);
  receipt.duration = ReadTime(reader);
  receipt.code_hash = reader.Text();
  ReadIsolation(reader, receipt);
  ReadUse(reader, receipt);
  receipt.output_bytes = reader.Number<uint64_t>();
  receipt.output_produced = reader.Number<uint64_t>();
  receipt.output_truncated = reader.Flag();
  receipt.output_sha256 = reader.Text();
  receipt.stderr_sha256 = reader.Text();
  receipt.outcome = reader.Text();
  receipt.error_class = reader.Text();
  receipt.error_message = reader.Text();
  receipt.exit_code = ReadExit(reader);
  receipt.exit_signal = ReadExit(reader);
  receipt.steps_us = ReadList<std::pair<std::string, int64_t>>(reader, [&] {
    std::pair<std::string, int64_t> step;
    step.first = reader.Text();
    step.second = reader.Signed();
    return step;
  });
  if (std::find(std::begin(kOutcomes), std::end(kOutcomes), receipt.outcome) ==
      std::end(kOutcomes)) {
    reader.Fail();
  }
  return receipt;
}

}  // namespace coffer::call
