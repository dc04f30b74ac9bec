// SPDX-License-Identifier: Apache-2.0
//
// `coffer audit`: what was asked, decided and done, and the proof that the record was not edited since.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "audit/sealed_call.h"
#include "base/json.h"
#include "base/result.h"
#include "call/verb_flags.h"
#include "cli/state.h"

namespace coffer::cli {

int AuditVerb(std::span<const std::string_view> words);

// Verification found something: prints and ends with status 1.
[[noreturn]] void ExitWithFindings(const std::string& text);

// A call in a list, and how it ended in one word. Of a broken one nothing is shown but that it is there.
Json CallJson(const audit::SealedCall& sealed);
std::string OutcomeOf(const audit::SealedCall& sealed);

// Its parts, each in a file of its own. Text for stdout.
Result<std::string> AuditVerify(const call::VerbFlags& flags);
Result<std::string> AuditVerifyReceipt(const call::VerbFlags& flags);
Result<std::string> AuditExport(const call::VerbFlags& flags);
Result<std::string> AuditTail(const call::VerbFlags& flags);
Result<std::string> AuditShow(const call::VerbFlags& flags, State& state, const std::string& id);
Result<std::string> AuditObject(State& state, std::string hash);
// The files that a call exported; paths that begin with `prefix`.
Result<std::string> AuditFiles(const call::VerbFlags& flags, State& state, const std::string& id,
                               const std::string& prefix);
// One of them, to stdout or into the new file --out.
Result<std::string> AuditFetch(const call::VerbFlags& flags, State& state, const std::string& id,
                               const std::string& path);
Result<std::string> AuditPrune(const call::VerbFlags& flags, State& state);

}  // namespace coffer::cli
