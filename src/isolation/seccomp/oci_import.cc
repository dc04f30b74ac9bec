// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/oci_import.h"

#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include <charconv>
#include <utility>

#include "base/sys.h"
#include "isolation/seccomp/oci_rules.h"

namespace coffer::isolation {
namespace {

// First match of `floor`; where that allows, first match of the imported rules.
Result<Profile> Intersect(Profile floor, const OciRules& imported) {
  Profile narrowed{floor.fallback, floor.beyond, {}};
  for (Rule& ours : floor.rules) {
    if (ours.action != kAllow) {
      narrowed.rules.push_back(std::move(ours));
      continue;
    }
    bool decided = false;
    const auto found = imported.by_name.find(ours.syscall);
    if (found != imported.by_name.end()) {
      for (const Rule& theirs : found->second) {
        Rule both{ours.syscall, theirs.action, ours.conditions};
        both.conditions.insert(both.conditions.end(), theirs.conditions.begin(),
                               theirs.conditions.end());
        narrowed.rules.push_back(std::move(both));
        if (narrowed.rules.size() > kMaxOciRules) {
          return Refused("seccomp.import", "seccomp profile: more than 16384 rules");
        }
        decided = theirs.conditions.empty();
        if (decided) {
          break;
        }
      }
    }
    if (!decided) {
      narrowed.rules.push_back({ours.syscall, imported.fallback, ours.conditions});
    }
  }
  return narrowed;
}

}  // namespace

ImportContext NativeImportContext(FilterOptions options) {
  ImportContext context;
  context.options = options;
#if defined(__aarch64__)
  context.arch = "arm64";
#else
  context.arch = "amd64";
#endif
  utsname name{};
  if (raw::Syscall(SYS_uname, raw::Arg(&name)) == 0) {
    const char* end = name.release + ::strnlen(name.release, sizeof(name.release));
    const auto first = std::from_chars(name.release, end, context.kernel_major);
    if (first.ec == std::errc() && first.ptr != end) {
      std::from_chars(first.ptr + 1, end, context.kernel_minor);
    }
  }
  return context;
}

Result<Profile> ImportOciProfile(std::string_view json, const ImportContext& context) {
  TRY_ASSIGN(const OciRules imported, ReadOciRules(json, context));
  return Intersect(BuiltinProfile(policy::SyscallProfile::kCompat, context.options), imported);
}

}  // namespace coffer::isolation
