// SPDX-License-Identifier: Apache-2.0
//
// The three states of an attack: CONTAINED (it works outside and is refused inside), OPEN (it works inside), and
// NO-CONTROL (it does not work outside either, so its failure inside proves nothing).
//
// NO-CONTROL is never a pass by itself: such an attempt passes only if the refusal is visibly ours, that is, the
// receipt counts the denied system call.
#pragma once

#include <map>
#include <set>
#include <string>

#include "tests/support/run.h"

namespace coffer::test {

struct Attempt {
  enum class State { kOpen, kReached, kRefused } state = State::kOpen;
  std::string detail;  // errno's name, or what OPEN carried
};

// label -> what happened; the label is empty where a verb makes one attempt only.
std::map<std::string, Attempt> ParseAttempts(const std::string& out);

enum class Control {
  kPlain,      // the probe alone
  kNamespace,  // the probe as root of namespaces of its own
  kNone,       // known not to exist here: every attempt must be in the receipt's denials
};

struct Expectation {
  Control control = Control::kPlain;
  std::set<std::string> errnos = {"EPERM"};  // what a refusal inside may look like
  std::set<std::string> labels;              // only these; empty: all
  // label -> name of the system call in the receipt, where the two differ
  std::map<std::string, std::string> syscalls;
  Strings control_verb;  // if the control needs other arguments
  RunOptions options;
};

// Runs the control and the attack and asserts CONTAINED for each attempt; `id` is the threat's.
void ExpectContained(const std::string& id, const Strings& flags, const Strings& verb,
                     const Expectation& expectation = {});

// A call that was refused, or that failed, leaves nothing behind and prints nothing either: where an assertion says that
// something is not there, this one says that the command had its chance.
void ExpectRan(const RunResult& result);

// For a test among the escapes that has no attack, and so no control: `why` says what it asserts instead. The text check
// (scripts/check_text.py) takes no other test without a control.
void NothingIsAttacked(const std::string& why);

// Yama keeps an ordinary user from tracing what it did not start: then no control that traces can open.
bool TracingIsForbidden();

// How often the receipt says that a system call was refused.
long DeniedCount(const Json& receipt, const std::string& syscall);

}  // namespace coffer::test
