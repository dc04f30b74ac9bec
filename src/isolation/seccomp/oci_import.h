// SPDX-License-Identifier: Apache-2.0
//
// Seccomp profiles written for other runtimes: the OCI runtime spec's "linux.seccomp" object, and the files that
// Docker (moby) and Podman (containers/common) use.
//
// An imported profile only ever narrows. The result is what it allows AND what our `compat` profile allows; where
// compat refuses, compat's answer stands. The text is hostile input: an unknown key, action or operator is an error,
// never a guess. Two rules that disagree about one call are settled for the stricter one, whatever their order.
// Rules for capabilities are decided for a boundary that has none.
//
// SCMP_ACT_ALLOW and _LOG allow; _NOTIFY and _ERRNO with EPERM are recorded by the supervisor and answered EPERM;
// _ERRNO answers the number; _TRACE answers ENOSYS, as the kernel does without a tracer; _TRAP and _KILL* kill.
#pragma once

#include <string_view>

#include "base/result.h"
#include "isolation/seccomp/profile.h"

namespace coffer::isolation {

// What `includes` and `excludes` are decided against.
struct ImportContext {
  FilterOptions options;
  std::string_view arch = "";  // as Docker spells it: "arm64", "amd64"
  int kernel_major = 0;
  int kernel_minor = 0;
};

// This machine. If the kernel's version cannot be read it counts as 0.0.
ImportContext NativeImportContext(FilterOptions options);

// Compile the result with Compile(profile, NativeSyscalls()).
Result<Profile> ImportOciProfile(std::string_view json, const ImportContext& context);

}  // namespace coffer::isolation
