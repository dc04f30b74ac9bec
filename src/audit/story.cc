// SPDX-License-Identifier: Apache-2.0
#include "audit/story.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "audit/receipt.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/text.h"

namespace coffer::audit {
namespace {

// One fact a line, its subject in the left column.
class Teller {
 public:
  void Say(std::string_view subject, const std::string& words) {
    text_ += fmt::format("  {:<10} {}\n", subject == last_ ? "" : subject, Escaped(words));
    last_ = subject;
  }
  std::string& text() { return text_; }

 private:
  std::string text_;
  std::string last_;
};

std::string Or(const std::string& value, std::string_view otherwise) {
  return value.empty() ? std::string(otherwise) : value;
}

std::string Amount(uint64_t value, const std::string& unit) {
  if (unit == "ns") {
    return value < 1'000'000 ? fmt::format("{} us", value / 1000)
                             : fmt::format("{:.3f} s", static_cast<double>(value) / 1e9);
  }
  return unit == "bytes" ? FormatSize(value) : std::to_string(value);
}

void TellAsking(const Receipt& receipt, Teller& teller) {
  teller.Say("asked",
             fmt::format("{} by agent {}{}, tenant {}", FormatTime(receipt.requested_at),
                         Or(receipt.identity.agent, "(none)"),
                         receipt.identity.user.empty() ? "" : " for " + receipt.identity.user,
                         receipt.identity.tenant.name()));
  if (!receipt.identity.session_id.empty()) {
    teller.Say("asked", "in session " + receipt.identity.session_id);
  }
  if (!receipt.identity.parent_id.empty()) {
    teller.Say("asked", "by call " + receipt.identity.parent_id);
  }
  if (!receipt.identity.trace_id.empty()) {
    teller.Say("asked", "in trace " + receipt.identity.trace_id);
  }
  if (!receipt.identity.reason.empty()) {
    teller.Say("asked", "the agent says it is for: " + receipt.identity.reason);
  }
}

void TellBelief(const Receipt& receipt, Teller& teller) {
  if (!receipt.manifest_hash.empty()) {
    teller.Say("believed", fmt::format("{} {}, manifest {}", receipt.identity.tool,
                                       receipt.tool_version, receipt.manifest_hash));
  }
  teller.Say("believed", "effect " + receipt.effect);
  for (const std::string& argument : receipt.args_redacted) {
    teller.Say("believed", "argument " + argument);
  }
  if (!receipt.args_hash.empty()) {
    teller.Say("believed", "arguments without their secrets: " + receipt.args_hash);
  }
  if (!receipt.blast_radius.empty()) {
    teller.Say("believed", "it " + receipt.blast_radius);
  }
}

void TellRun(const Receipt& receipt, Teller& teller) {
  if (receipt.started_at.count() == 0 && receipt.layers.empty()) {
    teller.Say("ran", "nothing");
    return;
  }
  teller.Say("ran", fmt::format("in a {} boundary with {}", Or(receipt.level, "?"),
                                fmt::join(receipt.layers, ", ")));
  for (const MissingLayer& missing : receipt.missing) {
    teller.Say("missing",
               fmt::format("{}: {}{}", missing.layer, missing.reason,
                           missing.stand_in.empty() ? "" : "; instead " + missing.stand_in));
  }
  for (const auto& [name, use] : receipt.limits) {
    if (use.breached || use.used.value_or(0) > 0) {
      teller.Say("used",
                 fmt::format("{} {} of {}{}{}", name, use.used ? Amount(*use.used, use.unit) : "?",
                             Amount(use.cap, use.unit), use.breached ? ", BREACHED" : "",
                             use.enforced ? "" : " (sampled: at least)"));
    }
  }
}

void TellDenials(const Receipt& receipt, Teller& teller) {
  for (const Denial& denial : receipt.denials) {
    teller.Say("denied",
               fmt::format("{} {} by {}{}: {}", denial.operation, denial.target, denial.rule,
                           denial.count > 1 ? fmt::format(", {} times", denial.count) : "",
                           denial.reason));
    if (!denial.fix.empty()) {
      teller.Say("denied", "what would allow it: " + denial.fix);
    }
  }
  for (const std::string& incident : receipt.incidents) {
    teller.Say("incident", incident);
  }
}

void TellEnd(const Receipt& receipt, Teller& teller) {
  std::string end = receipt.outcome;
  if (receipt.exit_code) {
    end += fmt::format(", exit status {}", *receipt.exit_code);
  }
  if (receipt.exit_signal) {
    end += fmt::format(", killed by signal {}", *receipt.exit_signal);
  }
  teller.Say("came out", fmt::format("{}, after {:.3f} s", end,
                                     static_cast<double>(receipt.duration.count()) / 1e9));
  if (!receipt.error_class.empty()) {
    teller.Say("came out", receipt.error_class + ": " + receipt.error_message);
  }
  if (!receipt.output_sha256.empty()) {
    teller.Say("came out", fmt::format("{} bytes of output{}, {}", receipt.output_bytes,
                                       receipt.output_truncated
                                           ? fmt::format(" of {} produced", receipt.output_produced)
                                           : "",
                                       receipt.output_sha256));
  }
  for (const ExportedFile& file : receipt.exported) {
    teller.Say("came out",
               fmt::format("the file {}, {} bytes, {}", file.path, file.size, file.sha256));
  }
  for (const LeftOut& left : receipt.left_out) {
    teller.Say(
        "came out",
        fmt::format("not exported: {}{}, because {}", left.path,
                    left.count > 1 ? fmt::format(" and {} more", left.count - 1) : "", left.why));
  }
}

// Two clocks meet here: receipts have times of day in milliseconds, steps have microseconds since
// the boundary was made. The command is started at one moment of both, which puts the steps in
// their place; rounding never turns the order round.
void TellTimes(const Receipt& receipt, Teller& teller) {
  using Line = std::pair<Nanos, std::string>;
  std::vector<Line> lines;
  Nanos start{0};
  for (const auto& [step, micros] : receipt.steps_us) {
    start = step == "reading the call" ? std::chrono::microseconds(micros) : start;
  }
  if (receipt.started_at.count() != 0) {
    const Nanos started = receipt.started_at - receipt.requested_at;
    lines.emplace_back(started, "  launched");
    for (const auto& [step, micros] : receipt.steps_us) {
      lines.emplace_back(started - start + std::chrono::microseconds(micros),
                         "    " + Printable(step));
    }
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.first < b.first; });
  lines.insert(lines.begin(), {Nanos(0), "  admitted and evaluated"});
  lines.emplace_back(receipt.finished_at - receipt.requested_at, "  ended and sealed");
  std::string& text = teller.text();
  text += "\n  the ladder, from the request on\n";
  Nanos last{0};
  for (const auto& [at, what] : lines) {
    last = std::max(last, at);
    text += fmt::format("  {:+10.3f} ms{}\n", static_cast<double>(last.count()) / 1e6, what);
  }
}

}  // namespace

Result<std::string> TellStory(std::string_view receipt_text, std::string_view seal) {
  TRY_ASSIGN(const Receipt receipt, ParseReceipt(receipt_text));
  TRY_ASSIGN(const Json json, ParseJson(receipt_text));
  Teller teller;
  teller.text() = fmt::format("Call {} of {}: {}\n\n", Printable(receipt.identity.call_id),
                              Printable(receipt.identity.tool), Printable(receipt.outcome));
  TellAsking(receipt, teller);
  TellBelief(receipt, teller);
  TellRun(receipt, teller);
  TellDenials(receipt, teller);
  TellEnd(receipt, teller);
  const Json log = json.value("log", Json::object());
  if (log.is_object() && log.value("index", Json(nullptr)).is_number()) {
    const Json given = log.value("root", Json("?"));
    const std::string root = given.is_string() ? given.get<std::string>() : PrintJson(given);
    teller.Say("recorded",
               fmt::format("as record {} of {} in the log, root {}", PrintJson(log["index"]),
                           PrintJson(log.value("size", Json("?"))), root));
  } else {
    teller.Say("recorded", "not in a log");
  }
  teller.Say("recorded", std::string(seal));
  TellTimes(receipt, teller);
  return teller.text();
}

}  // namespace coffer::audit
