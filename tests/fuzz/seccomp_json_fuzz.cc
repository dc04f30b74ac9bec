// SPDX-License-Identifier: Apache-2.0
//
// Whatever JSON comes in: no crash, a program that the evaluator accepts, and never a call allowed that `compat`
// refuses. The first bytes choose the options and the calls to ask about; the rest is the profile.
#include <linux/audit.h>
#include <linux/seccomp.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "isolation/seccomp/builtin.h"
#include "isolation/seccomp/compile.h"
#include "isolation/seccomp/evaluator.h"
#include "isolation/seccomp/oci_import.h"
#include "isolation/seccomp/syscall_table.h"

namespace coffer::isolation {
namespace {

constexpr size_t kHeader = 16;

uint32_t VerdictOf(std::span<const sock_filter> program, const seccomp_data& call) {
  const Result<uint32_t> verdict = Evaluate(program, call);
  if (!verdict.ok()) {
    std::fprintf(stderr, "invalid program: %s\n", verdict.error().message.c_str());
    std::abort();
  }
  return *verdict;
}

void Ask(std::span<const sock_filter> imported, std::span<const sock_filter> compat,
         const seccomp_data& call) {
  const uint32_t theirs = VerdictOf(imported, call);
  const uint32_t floor = VerdictOf(compat, call);
  const bool kept = floor == SECCOMP_RET_ALLOW || theirs == floor;
  if (!kept) {
    std::fprintf(stderr, "call %d: compat says %08x, the import %08x\n", call.nr, floor, theirs);
    std::abort();
  }
}

void FuzzOne(const uint8_t* data, size_t size) {
  uint8_t header[kHeader] = {};
  std::memcpy(header, data, size < kHeader ? size : kHeader);
  const std::string_view json(
      reinterpret_cast<const char*>(data) + (size < kHeader ? size : kHeader),
      size < kHeader ? 0 : size - kHeader);
  const FilterOptions options{.inet_sockets = (header[0] & 1) != 0,
                              .unix_sockets = (header[0] & 2) != 0};
  ImportContext context = NativeImportContext(options);
  context.kernel_major = header[1] % 8;
  const Result<Profile> profile = ImportOciProfile(json, context);
  if (!profile.ok()) {
    return;
  }
  const auto program = Compile(*profile, NativeSyscalls());
  if (!program.ok()) {
    return;
  }
  const std::span<const sock_filter> compat =
      BuiltinFilter(policy::SyscallProfile::kCompat, options);
  seccomp_data call{};
  call.arch = NativeSyscalls().audit_arch;
  std::memcpy(&call.args[0], header + 2, 8);
  for (size_t i = 1; i < 6; ++i) {
    call.args[i] = call.args[0] >> (i * 7) ^ header[10 + i];
  }
  for (int number = 0; number <= static_cast<int>(NativeSyscalls().highest()) + 2; ++number) {
    call.nr = number;
    Ask(*program, compat, call);
    const seccomp_data zeros = {number, call.arch, 0, {}};
    Ask(*program, compat, zeros);
  }
  call.arch = AUDIT_ARCH_ARM;
  Ask(*program, compat, call);
}

}  // namespace
}  // namespace coffer::isolation

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  coffer::isolation::FuzzOne(data, size);
  return 0;
}
