// SPDX-License-Identifier: Apache-2.0
#include "call/warden/wire_receipt.h"

#include <algorithm>
#include <utility>

namespace coffer::call {
namespace {

// A receipt that is sealed with a time beyond these cannot be read back (audit/receipt_parse.cc).
constexpr Nanos kLatest = std::chrono::hours(24 * 365 * 230);  // the year 2199
// How a call that was launched can end. `gated` and `unknown` are not a runner's to say.
constexpr std::string_view kOutcomes[] = {"success", "error", "denied", "terminated"};

// One list of fields for both directions. `wire` is a Put or a Get, below.
void Fields(auto& wire, auto& receipt) {
  wire(receipt.started_at, receipt.finished_at, receipt.duration, receipt.code_hash);
  wire(receipt.level, receipt.layers, receipt.floor, receipt.missing, receipt.runtimes);
  wire(receipt.program, receipt.exec, receipt.overlay, receipt.bound, receipt.blast_radius);
  wire(receipt.planted);
  wire(receipt.exported, receipt.left_out);
  wire(receipt.network, receipt.access);
  wire(receipt.limits, receipt.denials, receipt.denials_recorded, receipt.syscalls_denied);
  wire(receipt.output_bytes, receipt.output_produced, receipt.output_truncated);
  wire(receipt.output_sha256, receipt.stderr_sha256);
  wire(receipt.outcome, receipt.error_class, receipt.error_message);
  wire(receipt.exit_code, receipt.exit_signal, receipt.steps_us);
}

template <typename T>
void Parts(auto& wire, T& item) {
  using Item = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Item, audit::MissingLayer>) {
    wire(item.layer, item.reason, item.stand_in);
  } else if constexpr (std::is_same_v<Item, audit::BoundPath>) {
    wire(item.path, item.path_class, item.why, item.count);
  } else if constexpr (std::is_same_v<Item, audit::ExportedFile>) {
    wire(item.path, item.size, item.sha256);
  } else if constexpr (std::is_same_v<Item, audit::LeftOut>) {
    wire(item.why, item.count, item.path);
  } else if constexpr (std::is_same_v<Item, audit::NetworkUse>) {
    wire(item.host, item.port, item.method, item.path, item.decision, item.rule, item.error);
    wire(item.bytes_out, item.bytes_in, item.duration, item.count);
  } else if constexpr (std::is_same_v<Item, audit::AccessRequest>) {
    wire(item.id, item.host, item.port, item.opens, item.requested_at, item.decision, item.by);
    wire(item.decided_at, item.minutes, item.ended, item.ended_at);
  } else if constexpr (std::is_same_v<Item, audit::CapUse>) {
    wire(item.cap, item.used, item.unit, item.breached, item.enforced);
  } else if constexpr (std::is_same_v<Item, audit::Denial>) {
    wire(item.surface, item.operation, item.target, item.rule, item.reason, item.fix, item.count);
  } else {
    wire(item.first, item.second);  // a pair
  }
}

struct Put {
  WireWriter& writer;

  void operator()(const auto&... values) { (One(values), ...); }
  void One(const std::string& text) { writer.Text(text); }
  void One(bool flag) { writer.Flag(flag); }
  void One(uint64_t number) { writer.Number(number); }
  void One(int64_t number) { writer.Signed(number); }
  void One(int number) { writer.Signed(number); }
  void One(Nanos time) { writer.Signed(time.count()); }
  template <typename T>
  void One(const std::optional<T>& value) {
    writer.Flag(value.has_value());
    One(value.value_or(T{}));
  }
  template <typename T>
  void One(const std::vector<T>& list) {
    writer.Number(list.size());
    for (const T& item : list) {
      One(item);
    }
  }
  template <typename T>
  void One(const T& item) {
    Parts(*this, item);
  }
};

struct Get {
  WireReader& reader;

  void operator()(auto&... values) { (One(values), ...); }
  void One(std::string& text) { text = reader.Text(); }
  void One(bool& flag) { flag = reader.Flag(); }
  void One(uint64_t& number) { number = reader.Number<uint64_t>(); }
  void One(int64_t& number) { number = reader.Signed(); }
  // An exit status or the number of a signal.
  void One(int& number) { number = reader.Number<uint8_t>(); }
  void One(Nanos& time) {
    time = Nanos(reader.Signed());
    if (time < Nanos(0) || time > kLatest) {
      reader.Fail();
    }
  }
  template <typename T>
  void One(std::optional<T>& value) {
    const bool there = reader.Flag();
    One(value.emplace());
    if (!there) {
      value.reset();
    }
  }
  template <typename T>
  void One(std::vector<T>& list) {
    for (uint32_t left = reader.Count(); left > 0 && reader.ok(); --left) {
      One(list.emplace_back());
    }
  }
  template <typename T>
  void One(T& item) {
    Parts(*this, item);
  }
};

}  // namespace

void WriteReceipt(WireWriter& writer, const audit::Receipt& receipt) {
  Put put{writer};
  Fields(put, receipt);
}

audit::Receipt ReadReceipt(WireReader& reader) {
  audit::Receipt receipt;
  Get get{reader};
  Fields(get, receipt);
  if (std::find(std::begin(kOutcomes), std::end(kOutcomes), receipt.outcome) ==
      std::end(kOutcomes)) {
    reader.Fail();
  }
  return receipt;
}

}  // namespace coffer::call
