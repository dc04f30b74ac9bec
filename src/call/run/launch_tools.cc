// SPDX-License-Identifier: Apache-2.0
#include "call/run/launch_tools.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/sys.h"

namespace coffer::call {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr const char* kPlace = "/run/coffer";
constexpr std::string_view kReplaced = " (deleted)";  // proc(5), behind the path in /proc/self/exe
constexpr const char* kSocket = "/run/coffer/tools.sock";
constexpr uint64_t kPlaceBytes = 64 << 10;
constexpr uint64_t kPlaceInodes = 64;
constexpr int kWaitingClients = 16;

Error ToolsError(const char* what, long answer) {
  return sys::ErrnoError("isolation.tools", what, answer);
}

// As root the supervisor is not a user of the boundary, and could not create files in its file systems.
//
// The kernel clears PR_SET_PDEATHSIG when one of these ids changes (commit_creds), and by it a
// runner ends with its warden. So it is set again, and whether the parent has died meanwhile is
// looked at.
class FileIdentity {
 public:
  explicit FileIdentity(uint32_t id) : changes_(::geteuid() == 0), parent_(::getppid()) {
    if (changes_) {
      (void)Syscall(SYS_prctl, PR_GET_PDEATHSIG, Arg(&death_signal_), 0, 0, 0);
      gid_ = Syscall(SYS_setfsgid, id);
      uid_ = Syscall(SYS_setfsuid, id);
    }
  }
  ~FileIdentity() {
    if (changes_) {
      Syscall(SYS_setfsuid, uid_);
      Syscall(SYS_setfsgid, gid_);
      (void)Syscall(SYS_prctl, PR_SET_PDEATHSIG, death_signal_, 0, 0, 0);
      if (death_signal_ != 0 && ::getppid() != parent_) {
        ::raise(death_signal_);
      }
    }
  }
  FileIdentity(const FileIdentity&) = delete;
  FileIdentity& operator=(const FileIdentity&) = delete;

 private:
  const bool changes_;
  const pid_t parent_;
  int death_signal_ = 0;
  long uid_ = 0;
  long gid_ = 0;
};

bool LiesIn(std::string_view path, std::string_view tree) {
  return path == tree || (path.starts_with(tree) && path.substr(tree.size()).starts_with('/'));
}

}  // namespace

Status CheckTools(const RunRequest& request, policy::Level level) {
  if (level != policy::Level::kContainer) {
    return Refused("policy.tools", "--tools needs the container level",
                   "leave out --level process; `coffer doctor` says what this host lacks");
  }
  if (request.envelope.syscalls == policy::SyscallProfile::kStrict) {
    return Refused("policy.tools", "--tools needs sockets, which --seccomp strict refuses",
                   "leave out --seccomp strict");
  }
  for (const policy::Mount& mount : request.envelope.mounts) {
    const std::string& at = mount.at.empty() ? mount.host : mount.at;
    if (LiesIn(at, kPlace) || LiesIn(kPlace, at)) {
      return Refused(
          "policy.mount.target",
          fmt::format("{} cannot be a mount target: the socket of tools is in {}", at, kPlace),
          "choose another place, such as PATH:/data");
    }
  }
  return {};
}

Status AddToolsProgram(isolation::RuntimeSet& runtime) {
  TRY_ASSIGN(const std::string self, sys::ReadLinkAt(AT_FDCWD, "/proc/self/exe"));
  if (self.ends_with(kReplaced)) {
    return HostFault("isolation.tools", "the program coffer was replaced while it ran",
                     "start the daemon (or this command) again");
  }
  isolation::RuntimeFile file;
  file.host = self;
  file.inside = kToolsProgram;
  file.executable = true;
  file.why = isolation::BindReason::kProgram;
  file.named_by_caller = true;
  isolation::RuntimeSet program;
  program.files.push_back(std::move(file));
  runtime = isolation::Merge(std::move(runtime), std::move(program));
  return {};
}

void AddToolsPlace(isolation::BoundaryPlan& plan) {
  plan.root.dirs.emplace_back("/run");
  plan.root.dirs.emplace_back(kPlace);
  plan.root.tmpfs.push_back({kPlace, kPlaceBytes, kPlaceInodes, 0755, false});
}

void SetToolsVariable(isolation::Call& call) {
  const std::string start = std::string(kToolsVariable) + "=";
  std::erase_if(call.env, [&](const std::string& one) { return one.starts_with(start); });
  call.env.push_back(start + kSocket);
}

Result<UniqueFd> ListenForTools(const isolation::Boundary& boundary) {
  if (boundary.tmpfs().empty()) {
    return Internal("isolation.tools", "the boundary did not make the place of the tools' socket");
  }
  const long made = Syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) {
    return ToolsError("cannot make the tools' socket", made);
  }
  UniqueFd listener(static_cast<int>(made));
  // The last place of the plan's first half. By descriptor: no name of the host leads there.
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name =
      fmt::format("/proc/self/fd/{}/tools.sock", boundary.tmpfs().back().get());
  name.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const FileIdentity as_inside(boundary.host_uid());
  long answer = Syscall(SYS_bind, listener.get(), Arg(&address), sizeof(address));
  if (answer >= 0) {
    answer = Syscall(SYS_listen, listener.get(), kWaitingClients);
  }
  if (answer < 0) {
    return ToolsError("cannot bind the tools' socket inside the boundary", answer);
  }
  return listener;
}

}  // namespace coffer::call
