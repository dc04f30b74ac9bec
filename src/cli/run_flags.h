// SPDX-License-Identifier: Apache-2.0
//
// The flags of `coffer run`, from words to a RunRequest. Pure: nothing is opened, nothing is looked up on the host.
//
// Own parser, because it runs on every call before anything else: one pass, no tables built at
// start (ADR 2). A value is accepted as the next word or after "="; a list flag (--in, --runtime,
// --floor) takes one word, or, in the form with "--", every word up to the next flag. What is not
// understood is refused by name.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "call/run/run_request.h"

namespace coffer::cli {

// The words after `run`. --seccomp FILE leaves the file's path in envelope.imported_seccomp, --upstream-ca
// FILE in egress.upstream_ca, --never-send FILE in egress.never_send; the verb reads them.
Result<call::RunRequest> ParseRunFlags(std::span<const std::string_view> words);

// Every flag, for suggestions and profiles.
const std::vector<std::string_view>& RunFlagNames();

// What --project changes unless `given` has the flag for it: the limits, the runtime, the working directory.
void UseProjectDefaults(const std::vector<std::string_view>& given, call::RunRequest& request);

// The text of `coffer run --help`.
std::string_view RunHelp();

}  // namespace coffer::cli
