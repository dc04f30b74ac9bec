// SPDX-License-Identifier: Apache-2.0
//
// Asks the person at the terminal for access that the command wants (`coffer run --hold`).
//
// The terminal is /dev/tty, never stdin or stdout: those may be files, and carry what the command
// reads and prints. While a question stands the supervisor carries neither
// (AccessDecider::holds_terminal), so the command cannot write over the question, and its input is
// not read as an answer. Input that was typed, or sent by the terminal itself, before a person could
// have read the question does not count.
#pragma once

#include <deque>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "call/run/held_access.h"

namespace coffer::cli {

class TerminalAccess : public call::AccessDecider {
 public:
  // kRefused if there is no terminal.
  static Result<TerminalAccess> Open();

  void Ask(const egress::AccessNotice& asked) override;
  void Withdraw(const egress::AccessNotice& over) override;
  int fd() const override;
  std::optional<call::AccessAnswer> Read() override;
  bool holds_terminal() const override { return !waiting_.empty(); }

 private:
  explicit TerminalAccess(UniqueFd terminal) : terminal_(std::move(terminal)) {}
  void Show();
  void Prompt();
  void Say(std::string_view text) const;

  UniqueFd terminal_;
  std::deque<egress::AccessNotice> waiting_;  // the first is on the screen
  std::string line_;
  Nanos shown_at_{0};
};

}  // namespace coffer::cli
