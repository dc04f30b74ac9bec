// SPDX-License-Identifier: Apache-2.0
#include "cli/local_sessions.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "base/remove_tree.h"
#include "base/sys.h"
#include "base/text.h"
#include "store/state_part.h"

namespace coffer::cli {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr int kDeepest = 64;
// As root a workspace belongs to a uid of its own, which no user and no boundary has (the gateway's next to it is in
// daemon/role.h): what a tool writes is mapped to the owner, and must not be root's.
constexpr uid_t kOwnerAsRoot = 0x6fff0010;

const store::TenantId& Tenant() {
  static const store::TenantId local = store::TenantId::Local();
  return local;
}

Error NoSession(const std::string& id) {
  return Refused(
      "policy.session", fmt::format("there is no session {}", Printable(id)),
      "`coffer sessions list` names those that are open; `coffer sessions new` makes one");
}

bool Lock(int fd, int kind) { return Syscall(SYS_flock, fd, kind | LOCK_NB) == 0; }

// A call may have closed its workspace to its owner. Nothing else can have been put in its place:
// the directory above is never shown to a call.
Result<UniqueFd> OpenWorkspace(int directory, const std::string& name) {
  (void)Syscall(SYS_fchmodat, directory, Arg(name.c_str()), 0700);
  return sys::OpenNoLinks(directory, name, O_RDONLY | O_DIRECTORY);
}

class Walker {
 public:
  Walker(LocalSessions::Listing& listing, std::string wanted, size_t most)
      : listing_(listing), wanted_(std::move(wanted)), most_(most) {}

  // What cannot be opened is left out, as an empty directory is.
  void Visit(int dir, const std::string& prefix, int depth) {
    Result<std::vector<sys::DirEntry>> entries = sys::ListDir(dir);
    if (!entries.ok() || depth == 0) {
      return;
    }
    std::sort(entries->begin(), entries->end(),
              [](const sys::DirEntry& a, const sys::DirEntry& b) { return a.name < b.name; });
    for (const sys::DirEntry& entry : *entries) {
      struct stat info{};
      if (listing_.more || ::fstatat(dir, entry.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
        continue;
      }
      const std::string path = prefix + entry.name;
      if (S_ISDIR(info.st_mode) && MayHoldWanted(path + "/")) {
        const Result<UniqueFd> inner = sys::OpenNoLinks(dir, entry.name, O_RDONLY | O_DIRECTORY);
        if (inner.ok()) {
          Visit(inner->get(), path + "/", depth - 1);
        }
      } else if (S_ISREG(info.st_mode) && path.starts_with(wanted_)) {
        Add(path, info);
      }
    }
  }

 private:
  bool MayHoldWanted(const std::string& directory) const {
    return directory.starts_with(wanted_) || wanted_.starts_with(directory);
  }

  void Add(std::string path, const struct stat& info) {
    listing_.more = listing_.files.size() == most_;
    if (!listing_.more) {
      listing_.files.push_back(
          {std::move(path), static_cast<uint64_t>(info.st_size),
           std::chrono::seconds(info.st_mtim.tv_sec) + Nanos(info.st_mtim.tv_nsec)});
    }
  }

  LocalSessions::Listing& listing_;
  const std::string wanted_;  // what a path must begin with
  const size_t most_;
};

}  // namespace

Result<LocalSessions> LocalSessions::Open(State& state) {
  TRY(store::CheckStatePart(state.directory(), "sessions"));
  const std::string path = state.directory() + "/sessions";
  TRY(sys::MakeDirs(path, 0700));
  TRY_ASSIGN(UniqueFd directory, sys::OpenNoLinks(AT_FDCWD, path, O_RDONLY | O_DIRECTORY));
  return LocalSessions(state, std::move(directory));
}

Result<store::SessionRequest> LocalSessions::UsualRequest(const call::TenantRules& rules) const {
  struct statvfs disk{};
  if (::fstatvfs(directory_.get(), &disk) != 0) {
    return Internal("internal", "the size of the disk of the state directory cannot be seen");
  }
  store::SessionRequest request;
  request.lifetime = kUsualLifetime;
  request.bytes = rules.storage.session;
  request.budget = rules.session_budget;
  request.tenant_bytes =
      rules.storage.SessionsTogether(static_cast<uint64_t>(disk.f_blocks) * disk.f_frsize);
  return request;
}

Result<store::Session> LocalSessions::Make(store::SessionRequest request) {
  request.agent = kCliAgent;
  TRY_ASSIGN(store::Session session, store::CreateSession(state_.store(), Tenant(), request));
  Status made = sys::MakeDirAt(directory_.get(), session.workspace, 0700);
  if (made.ok() && ::geteuid() == 0) {
    const long given = Syscall(SYS_fchownat, directory_.get(), Arg(session.workspace.c_str()),
                               kOwnerAsRoot, kOwnerAsRoot, AT_SYMLINK_NOFOLLOW);
    made = given == 0
               ? Status()
               : Status(sys::ErrnoError("store.workspace", "cannot give a workspace away", given));
  }
  if (!made.ok()) {
    (void)store::EndSession(state_.store(), Tenant(), session.id, "no workspace");
    return std::move(made.error());
  }
  return session;
}

Result<store::Session> LocalSessions::FindOwn(const std::string& id) {
  TRY_ASSIGN(std::optional<store::Session> session,
             store::FindSession(state_.store(), Tenant(), id));
  if (!session) {
    return NoSession(id);
  }
  if (session->agent != kCliAgent) {
    return Refused(
        "policy.session",
        fmt::format("session {} belongs to the agent {}", Printable(id), Printable(session->agent)),
        "only its own agent may use it, through the daemon");
  }
  return std::move(*session);
}

Result<LocalSessions::Held> LocalSessions::Hold(const std::string& id) {
  TRY_ASSIGN(const store::Session first, FindOwn(id));
  const Error ended = Refused("policy.session", fmt::format("session {} has ended", id),
                              "`coffer sessions new` makes another");
  Result<UniqueFd> lock = OpenWorkspace(directory_.get(), first.workspace);
  if (!lock.ok()) {
    return ended;
  }
  if (!Lock(lock->get(), LOCK_SH)) {
    return Refused(kSessionLocked,
                   fmt::format("the files of session {} are locked, or are being removed", id),
                   "wait for the call that locked /workspace, or make another session");
  }
  // Again, now that its files cannot be removed.
  TRY_ASSIGN(store::Session session, FindOwn(id));
  if (session.ended_at || session.ends_at <= state_.store().Now()) {
    return ended;
  }
  std::string workspace = state_.directory() + "/sessions/" + session.workspace;
  return Held{std::move(session), std::move(workspace), std::move(*lock), {}};
}

Result<LocalSessions::Listing> LocalSessions::List(const std::string& id, const std::string& prefix,
                                                   size_t most) {
  TRY_ASSIGN(const Held held, Hold(id));
  Listing listing;
  Walker(listing, prefix, most).Visit(held.lock.get(), "", kDeepest);
  return listing;
}

Result<bool> LocalSessions::RemoveFiles(const store::Session& session) {
  Result<UniqueFd> root = OpenWorkspace(directory_.get(), session.workspace);
  if (!root.ok()) {
    return root.error().sys_errno == ENOENT ? Result<bool>(true)
                                            : Result<bool>(std::move(root.error()));
  }
  if (!Lock(root->get(), LOCK_EX)) {
    return false;
  }
  TRY(EmptyTree(root->get()));
  TRY(sys::RemoveDirAt(directory_.get(), session.workspace));
  return true;
}

Status LocalSessions::EndProcesses(const std::string& id, ProcessPlaces::Wait wait) {
  TRY_ASSIGN(const ProcessPlaces places, ProcessPlaces::Open(state_.directory()));
  TRY_ASSIGN(const UniqueFd lock, places.LockSession(id, wait));
  return lock ? places.EndSession(id, lock.get()) : Status();
}

// Those of sessions that have ended, or that the store has forgotten.
Status LocalSessions::SweepProcesses() {
  TRY_ASSIGN(const ProcessPlaces places, ProcessPlaces::Open(state_.directory()));
  TRY_ASSIGN(const std::vector<std::string> names, places.Sessions());
  for (const std::string& id : names) {
    TRY_ASSIGN(const std::optional<store::Session> session,
               store::FindSession(state_.store(), Tenant(), id));
    if (!session || session->ended_at || session->ends_at <= state_.store().Now()) {
      TRY(EndProcesses(id, ProcessPlaces::Wait::kNo));
    }
  }
  return {};
}

Status LocalSessions::Sweep() {
  TRY(SweepProcesses());
  const Nanos now = state_.store().Now();
  store::PageRequest page{1000, ""};
  do {
    TRY_ASSIGN(const store::Page<store::Session> sessions,
               store::ListSessions(state_.store(), Tenant(), store::SessionFilter::kAll, page));
    for (const store::Session& session : sessions.rows) {
      if (session.agent != kCliAgent || session.enforced) {
        continue;
      }
      if (!session.ended_at && session.ends_at <= now) {
        TRY(store::EndSession(state_.store(), Tenant(), session.id, "lifetime"));
        TRY(state_.recorder().Event(Tenant().name(), "session.ended",
                                    {{"by", "lifetime"}, {"session", session.id}}));
      }
      if (session.ended_at || session.ends_at <= now) {
        (void)RemoveFiles(session);  // else by the next sweep
      }
    }
    page.cursor = sessions.next;
  } while (!page.cursor.empty());
  return {};
}

}  // namespace coffer::cli
