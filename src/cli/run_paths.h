// SPDX-License-Identifier: Apache-2.0
//
// The paths among the flags of `coffer run`, resolved from the caller's words (isolation/caller_path.h) before anything
// is opened.
//
// What lies in another mount of the same call is not resolved through links: the payload may be able to write there.
#pragma once

#include <string>

#include "call/run/run_request.h"

namespace coffer::cli {

// Rewrites mounts, inputs, --out, --project and --receipt, and completes the working directory of a
// project. Says on stderr which links were followed, unless the caller wants no notes.
Status ResolvePaths(call::RunRequest& request);

// Rewrites the directory of `path`, unless it names a descriptor (audit/receipt_file.h). What is
// there is replaced, so the links on the way are judged as those of a writable mount are.
Status ResolveReceipt(std::string& path);

}  // namespace coffer::cli
