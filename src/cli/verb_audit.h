// SPDX-License-Identifier: Apache-2.0
//
// `coffer audit`: what was asked, decided and done, and the proof that the record was not edited since.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "call/verb_flags.h"
#include "cli/state.h"

namespace coffer::cli {

int AuditVerb(std::span<const std::string_view> words);

// Verification found something: prints and ends with status 1.
[[noreturn]] void ExitWithFindings(const std::string& text);

// Its parts, each in a file of its own. Text for stdout.
Result<std::string> AuditVerify(const call::VerbFlags& flags);
Result<std::string> AuditVerifyReceipt(const call::VerbFlags& flags);
Result<std::string> AuditExport(const call::VerbFlags& flags);
Result<std::string> AuditTail(const call::VerbFlags& flags);
Result<std::string> AuditPrune(const call::VerbFlags& flags, State& state);

}  // namespace coffer::cli
