// SPDX-License-Identifier: Apache-2.0
//
// The rungs admit, record and seal of `coffer run`, for a run that is recorded: one whose state directory was named.
//
//   Admit   the store knows of it, and no switch is against it
//   Start   the decision is on disk (call/recorder.h); if it cannot be written, nothing runs
//   End     the receipt is in the log, sealed and in the store
//
// A run without a state directory has no record, and does none of this work.
#pragma once

#include <functional>
#include <string>

#include "audit/receipt.h"
#include "base/result.h"
#include "call/recorder.h"
#include "call/redact.h"
#include "call/run/prepare.h"
#include "call/run/run_call.h"
#include "call/run/run_journal.h"
#include "call/run/run_request.h"
#include "call/tool_call.h"
#include "call/transcript.h"

namespace coffer::call {

class RunRecord : public RunJournal {
 public:
  // `traceparent` is a W3C trace context, or anything else, which is none. The recorder outlives it.
  enum class Keeps : uint8_t { kTranscript, kHashes };
  RunRecord(Recorder& recorder, std::string_view traceparent, Keeps keeps);

  // Refused: the reply is its answer, with a receipt.
  Result<bool> Admit(const RunRequest& request, ToolReply& reply);

  // The part of its receipt that is known before it is evaluated: id, caller, time.
  const audit::Receipt& asked() const override { return asked_; }

  // Refused if something that is brought in shows the state directory: a run does not get at its own record.
  Status Start(const audit::Receipt& receipt, const Prepared& prepared) override;

  // `before_start` is asked with the call's id before anything happens, and its Error is the call's
  // end. `launched` is called once the payload runs.
  void Observe(std::function<Status(const std::string&)> before_start,
               std::function<void()> launched) {
    before_start_ = std::move(before_start);
    launched_ = std::move(launched);
  }
  void Launched() override {
    if (launched_) {
      launched_();
    }
  }

  size_t reads() const override;
  void Streams(std::string in, std::string out, std::string err) override;

  // For every outcome. The reply gets the sealed receipt. An Error: the receipt could not be written. The next process
  // that opens the state directory ends the call as unknown if it had started.
  Status End(const RunOutcome& outcome, ToolReply& reply);

 private:
  Recorder& recorder_;
  audit::Receipt asked_;
  std::vector<GivenWord> given_;  // what a refusal must not quote
  const Keeps keeps_;
  std::string envelope_;  // in canonical form
  Transcript ran_;
  std::vector<std::string> secrets_;  // values that the transcript must not show
  std::function<Status(const std::string&)> before_start_;
  std::function<void()> launched_;
  bool started_ = false;
  bool failed_ = false;  // to start
};

}  // namespace coffer::call
