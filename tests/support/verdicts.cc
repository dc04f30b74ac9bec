// SPDX-License-Identifier: Apache-2.0
#include "tests/support/verdicts.h"

#include <gtest/gtest.h>

namespace coffer::test {
namespace {

const char* Text(Attempt::State state) {
  switch (state) {
    case Attempt::State::kOpen:
      return "OPEN";
    case Attempt::State::kReached:
      return "REACHED";
    case Attempt::State::kRefused:
      return "REFUSED";
  }
  return "?";
}

}  // namespace

std::map<std::string, Attempt> ParseAttempts(const std::string& out) {
  std::map<std::string, Attempt> attempts;
  struct Mark {
    const char* word;
    Attempt::State state;
  };
  for (const std::string& line : Lines(out)) {
    for (const Mark& mark :
         {Mark{"OPEN", Attempt::State::kOpen}, Mark{"REFUSED errno=", Attempt::State::kRefused},
          Mark{"REACHED errno=", Attempt::State::kReached}}) {
      const size_t at = line.find(mark.word);
      const bool bare = at == 0;
      const bool labelled =
          at != std::string::npos && at >= 2 && line.compare(at - 2, 2, ": ") == 0;
      if (bare || labelled) {
        attempts[bare ? "" : line.substr(0, at - 2)] = {
            mark.state, line.substr(at + std::string(mark.word).size())};
        break;
      }
    }
  }
  return attempts;
}

void NothingIsAttacked(const std::string& why) {
  ::testing::Test::RecordProperty("nothing_is_attacked", why);
}

bool TracingIsForbidden() {
  return !IsRoot() &&
         ReadFile("/proc/sys/kernel/yama/ptrace_scope").value_or("0\n").substr(0, 1) != "0";
}

void ExpectRan(const RunResult& result) {
  const bool started = result.receipt.is_object() && result.receipt.contains("started_at") &&
                       result.receipt["started_at"].is_string();
  EXPECT_TRUE(started) << "NOTHING RAN: " << result.Describe();
}

long DeniedCount(const Json& receipt, const std::string& syscall) {
  if (!receipt.is_object() || !receipt.contains("syscalls") ||
      !receipt["syscalls"].contains("denied")) {
    return 0;
  }
  const Json& denied = receipt["syscalls"]["denied"];
  if (!denied.is_object() || !denied.contains(syscall)) {
    return 0;
  }
  const Json& entry = denied[syscall];
  return entry.is_number() ? entry.get<long>() : entry.is_object() ? entry.value("count", 0L) : 1L;
}

void ExpectContained(const std::string& id, const Strings& flags, const Strings& verb,
                     const Expectation& expectation) {
  const Strings& control_verb = expectation.control_verb.empty() ? verb : expectation.control_verb;
  std::map<std::string, Attempt> outside;
  if (expectation.control == Control::kPlain) {
    outside = ParseAttempts(RunOutside(control_verb, expectation.options).out);
  } else if (expectation.control == Control::kNamespace) {
    outside = ParseAttempts(RunOutsideInNamespace(control_verb, expectation.options).out);
  }
  const RunResult result = RunProbe(flags, verb, expectation.options);
  const auto inside = ParseAttempts(result.out);
  ASSERT_FALSE(inside.empty()) << id << ": the probe did not run inside\n" << result.Describe();
  int controlled = 0;
  int judged = 0;
  for (const auto& [label, attempt] : inside) {
    if (!expectation.labels.empty() && !expectation.labels.contains(label)) {
      continue;
    }
    ++judged;
    EXPECT_EQ(Text(attempt.state), std::string("REFUSED"))
        << id << " " << label << " is OPEN inside: " << attempt.detail << "\n"
        << result.Describe();
    if (attempt.state == Attempt::State::kRefused) {
      EXPECT_TRUE(expectation.errnos.contains(attempt.detail))
          << id << " " << label << " was refused with " << attempt.detail << "\n"
          << result.Describe();
    }
    const auto control = outside.find(label);
    if (control != outside.end() && control->second.state != Attempt::State::kRefused) {
      ++controlled;
      continue;
    }
    // NO-CONTROL: the refusal must be ours.
    const auto renamed = expectation.syscalls.find(label);
    const std::string syscall = renamed != expectation.syscalls.end() ? renamed->second : label;
    EXPECT_GT(DeniedCount(result.receipt, syscall), 0)
        << id << " " << label << ": NO-CONTROL, and the receipt does not count a denied " << syscall
        << "\n"
        << result.Describe();
  }
  for (const std::string& label : expectation.labels) {
    EXPECT_TRUE(inside.contains(label))
        << id << ": the probe inside did not get as far as " << label << "\n"
        << result.Describe();
  }
  EXPECT_GT(judged, 0) << id;
  ::testing::Test::RecordProperty("controlled", controlled);
  ::testing::Test::RecordProperty("no_control", judged - controlled);
}

}  // namespace coffer::test
