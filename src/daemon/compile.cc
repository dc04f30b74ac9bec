// SPDX-License-Identifier: Apache-2.0
#include "daemon/compile.h"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>

#include "base/exit_codes.h"
#include "base/print.h"
#include "base/sys.h"
#include "base/wire_bytes.h"
#include "call/config_ceilings.h"
#include "call/config_file.h"
#include "call/make_table.h"
#include "call/tool_shelf.h"
#include "call/warden/protocol.h"
#include "daemon/operator_files.h"
#include "daemon/role.h"
#include "policy/manifest/mistake.h"

namespace coffer::daemon {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr std::chrono::milliseconds kLongest{20'000};
constexpr size_t kMostSaid = 10;  // manifests that do not load
constexpr int kInto = kFirstKept;
constexpr int kBefore = kFirstKept + 1;

// A manifest that does not load is a tool that is not there, or not as its file says. An operator who looks at what the
// daemon prints need not ask for the list first.
void SayWhatDoesNotLoad(const call::ToolShelf& shelf) {
  size_t said = 0;
  for (const call::ShelfEntry& entry : shelf.List()) {
    if (entry.mistakes.empty() || ++said > kMostSaid) {
      continue;
    }
    const size_t more = entry.mistakes.size() - 1;
    PrintError("coffer: note: a manifest does not load: " +
               policy::FormatMistake(entry.file, entry.mistakes.front()) +
               (more == 0 ? "" : fmt::format(" (and {} more)", more)));
  }
  if (said > 0) {
    PrintError(fmt::format("  hint: {}`coffer tools check FILE` lists every mistake of a file",
                           said > kMostSaid ? fmt::format("{} manifests in all; ", said) : ""));
  }
}

// In the child, with `into` and the last table, if there is one, as its only descriptors. What only
// root may read is read before the privilege is given up; of that the configuration is parsed there,
// since it names a file of secrets.
Status Compile(const Config& config, uint64_t before_size, CompileScope scope) {
  call::FileConfig file;
  std::string never_send;
  if (scope == CompileScope::kAll) {
    TRY_ASSIGN(const std::optional<std::string> text, ReadConfigFile(config));
    if (text) {
      TRY_ASSIGN(file, call::ReadConfigText(*text, config.file));
    }
    TRY_ASSIGN(never_send, call::LoadNeverSend(file.egress, config.operator_uid));
  }
  TRY(EnterRole(RoleKind::kCompiler));
  call::WardenTable last;
  last.ceilings = call::DefaultCeilings();
  if (before_size > 0) {
    TRY_ASSIGN(const std::string bytes, call::ReadSealed(kBefore, before_size));
    TRY_ASSIGN(last, call::DecodeTable(bytes));
  }
  policy::Limits ceilings = last.ceilings;
  policy::EgressConfig egress = last.egress;
  if (scope == CompileScope::kAll) {
    ceilings = file.ceilings;
    TRY_ASSIGN(egress, call::LoadEgressConfig(file.egress, config.operator_uid));
    egress.never_send = std::move(never_send);
  }
  call::ToolShelf shelf(config.tools, config.default_tools, config.operator_uid);
  TRY(shelf.Reload());
  SayWhatDoesNotLoad(shelf);
  TRY_ASSIGN(call::WardenTable table, call::MakeTable(shelf, ceilings, last));
  table.egress = std::move(egress);
  const std::string bytes = call::EncodeTable(table);
  if (bytes.size() > kMaxWireBytes) {
    return Refused("policy.tools", "there are more manifests than fit into 8 MiB",
                   "run a second daemon for some of them");
  }
  return sys::WriteAll(kInto, bytes);
}

[[noreturn]] void BecomeCompiler(const Config& config, const CompiledTable& before,
                                 CompileScope scope, int into, pid_t monitor) {
  const bool kept =
      before.file ? KeepDescriptors({into, before.file.get()}) : KeepDescriptors({into});
  if (!DieWith(monitor) || !kept) {
    ::_exit(kExitFailed);
  }
  const Status compiled = Compile(config, before.file ? before.size : 0, scope);
  if (!compiled.ok()) {
    PrintError(compiled.error());
  }
  ::_exit(compiled.ok()                                  ? 0
          : compiled.error().kind == ErrorKind::kRefused ? kExitRefused
                                                         : kExitFailed);
}

// Its exit status; one that does not end in time is killed.
int WaitForCompiler(pid_t pid) {
  const UniqueFd pidfd(static_cast<int>(Syscall(SYS_pidfd_open, pid, 0)));
  pollfd ended{pidfd.get(), POLLIN, 0};
  if (::poll(&ended, 1, static_cast<int>(kLongest.count())) != 1) {
    ::kill(pid, SIGKILL);
  }
  int status = 0;
  while (Syscall(SYS_wait4, pid, Arg(&status), 0, 0) == -EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kExitFailed;
}

}  // namespace

Result<CompiledTable> CompileTable(const Config& config, const CompiledTable& before,
                                   CompileScope scope) {
  TRY_ASSIGN(UniqueFd file, call::MakeMemoryFile());
  const pid_t monitor = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    BecomeCompiler(config, before, scope, file.get(), monitor);
  }
  if (pid < 0) {
    return HostFault("daemon.fork", "the host cannot start another process",
                     "raise its limit of processes");
  }
  switch (WaitForCompiler(pid)) {
    case 0:
      break;
    case kExitRefused:
      return Refused("policy.tools", "the manifests or the configuration cannot be used");
    default:
      return HostFault("daemon.compile", "the manifests could not be compiled");
  }
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) {
    return HostFault("daemon.compile", "cannot look at a memory file");
  }
  TRY(call::Seal(file.get()));
  return CompiledTable{std::move(file), static_cast<uint64_t>(info.st_size)};
}

}  // namespace coffer::daemon
