// SPDX-License-Identifier: Apache-2.0
#include "cli/process_places.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/regular_file.h"
#include "base/remove_tree.h"
#include "base/sys.h"
#include "base/text.h"
#include "cli/process_control.h"
#include "store/state_part.h"

namespace coffer::cli {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr const char* kCode = "store.processes";
constexpr size_t kMaxFile = 1 << 20;
constexpr std::chrono::seconds kLongestEnd{30};

// A directory of ours, closed to others.
Result<UniqueFd> OpenPrivate(int parent, const std::string& name) {
  TRY_ASSIGN(UniqueFd dir, store::OpenStatePart(parent, name, O_RDONLY | O_DIRECTORY));
  struct stat info{};
  if (::fstat(dir.get(), &info) != 0 || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
    return HostFault(kCode,
                     fmt::format("{} below `processes` in the state directory is not yours alone",
                                 Printable(name)),
                     "end its session; then look who changed it and remove it");
  }
  return dir;
}

Result<UniqueFd> MakePrivate(int parent, const std::string& name) {
  Status made = sys::MakeDirAt(parent, name, 0700);
  if (!made.ok() && made.error().sys_errno != EEXIST) {
    return std::move(made.error());
  }
  return OpenPrivate(parent, name);
}

// All of it or nothing: the file has its name when its bytes are there.
Status WriteWhole(int dir, const std::string& name, const std::string& text) {
  const std::string temporary = name + ".new";
  {
    TRY_ASSIGN(const UniqueFd file,
               store::OpenStatePart(dir, temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600));
    TRY(sys::WriteAll(file.get(), text));
  }
  const long renamed =
      Syscall(SYS_renameat2, dir, Arg(temporary.c_str()), dir, Arg(name.c_str()), 0);
  return renamed < 0 ? Status(sys::ErrnoError(kCode, "cannot write " + name, renamed)) : Status();
}

Result<Json> ReadJson(int dir, const char* name) {
  TRY_ASSIGN(const UniqueFd file, sys::OpenRegularAt(dir, name, O_RDONLY | O_NOFOLLOW));
  TRY_ASSIGN(const std::string text, sys::ReadFd(file.get(), kMaxFile));
  TRY_ASSIGN(Json json, ParseJson(text));
  if (!json.is_object()) {
    return Internal(kCode, fmt::format("{} of a background process cannot be read", name));
  }
  return json;
}

template <typename T>
T Get(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) {
    return {};
  }
  if constexpr (std::is_same_v<T, std::string>) {
    return found->is_string() ? found->template get<std::string>() : T();
  } else {
    return found->is_number_integer() ? T(found->template get<int64_t>()) : T();
  }
}

std::optional<int> GetOptional(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_integer() ? std::optional(found->get<int>())
                                                           : std::nullopt;
}

// False: it is being made, and cannot be reached yet.
Result<bool> ReadProcess(int dir, ProcessInfo& process) {
  Result<Json> about = ReadJson(dir, "about");
  if (!about.ok()) {
    return about.error().sys_errno == ENOENT ? Result<bool>(false)
                                             : Result<bool>(std::move(about.error()));
  }
  for (const Json& word : about->value("command", Json::array())) {
    process.command.push_back(word.is_string() ? word.get<std::string>() : "");
  }
  for (const Json& port : about->value("ports", Json::array())) {
    process.ports.push_back(port.is_number_unsigned() ? port.get<uint16_t>() : 0);
  }
  process.started_at = Nanos(Get<int64_t>(*about, "started_at"));
  TRY_ASSIGN(const std::optional<UniqueFd> keeper, FindKeeper(dir));
  process.running = keeper.has_value();
  if (process.running) {
    return true;
  }
  const Result<Json> end = ReadJson(dir, "end");
  if (!end.ok()) {
    process.outcome = "unknown";
    process.error_class = "internal";
    process.error_message = "its keeper was killed, and took it along";
    return true;
  }
  process.ended_at = Nanos(Get<int64_t>(*end, "ended_at"));
  process.outcome = Get<std::string>(*end, "outcome");
  process.exit_code = GetOptional(*end, "exit_code");
  process.exit_signal = GetOptional(*end, "exit_signal");
  process.error_class = Get<std::string>(*end, "error_class");
  process.error_message = Get<std::string>(*end, "error_message");
  return true;
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json TimeOrNull(Nanos time) { return time == Nanos(0) ? Json(nullptr) : Json(FormatTime(time)); }

}  // namespace

Json ProcessJson(const ProcessInfo& process) {
  return {{"process_id", process.id},
          {"session_id", process.session},
          {"tool", "run"},
          {"command", process.command},
          {"state", process.running ? "running" : "ended"},
          {"ports", process.ports},
          {"started_at", TimeOrNull(process.started_at)},
          {"ended_at", TimeOrNull(process.ended_at)},
          {"outcome", process.outcome.empty() ? Json(nullptr) : Json(process.outcome)},
          {"exit", {{"code", OrNull(process.exit_code)}, {"signal", OrNull(process.exit_signal)}}},
          {"error", process.error_class.empty() ? Json(nullptr)
                                                : Json{{"class", process.error_class},
                                                       {"message", process.error_message}}}};
}

Result<ProcessPlaces> ProcessPlaces::Open(const std::string& state) {
  TRY_ASSIGN(const UniqueFd parent, sys::OpenNoLinks(AT_FDCWD, state, O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(UniqueFd directory, MakePrivate(parent.get(), "processes"));
  return ProcessPlaces(std::move(directory));
}

Result<std::vector<std::string>> ProcessPlaces::Sessions() const {
  TRY_ASSIGN(const UniqueFd fresh, sys::OpenAt(directory_.get(), ".", O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(const std::vector<sys::DirEntry> entries, sys::ListDir(fresh.get()));
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const sys::DirEntry& entry : entries) {
    names.push_back(entry.name);
  }
  return names;
}

Result<UniqueFd> ProcessPlaces::LockSession(const std::string& session, Wait wait) const {
  while (true) {
    TRY_ASSIGN(UniqueFd dir, MakePrivate(directory_.get(), session));
    const long locked = Syscall(SYS_flock, dir.get(), LOCK_EX | (wait == Wait::kNo ? LOCK_NB : 0));
    if (locked == -EAGAIN) {
      return UniqueFd();
    }
    if (locked < 0 && locked != -EINTR) {
      return sys::ErrnoError(kCode, "cannot lock the processes of a session", locked);
    }
    // The verb that had it may have removed the directory.
    struct stat held{};
    struct stat named{};
    if (locked == 0 && ::fstat(dir.get(), &held) == 0 &&
        ::fstatat(directory_.get(), session.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        held.st_ino == named.st_ino) {
      return dir;
    }
  }
}

Result<std::vector<ProcessInfo>> ProcessPlaces::List(const std::string& session) const {
  std::vector<ProcessInfo> processes;
  Result<UniqueFd> dir = OpenPrivate(directory_.get(), session);
  if (!dir.ok()) {
    return dir.error().sys_errno == ENOENT
               ? Result<std::vector<ProcessInfo>>(std::move(processes))
               : Result<std::vector<ProcessInfo>>(std::move(dir.error()));
  }
  TRY_ASSIGN(std::vector<sys::DirEntry> entries, sys::ListDir(dir->get()));
  // Ids begin with the time.
  std::sort(entries.begin(), entries.end(),
            [](const sys::DirEntry& a, const sys::DirEntry& b) { return a.name < b.name; });
  for (const sys::DirEntry& entry : entries) {
    Result<UniqueFd> place = OpenPrivate(dir->get(), entry.name);
    if (!place.ok() && place.error().sys_errno == ENOENT) {
      continue;  // removed while we looked
    }
    if (!place.ok()) {
      return std::move(place.error());
    }
    ProcessInfo process;
    process.id = entry.name;
    process.session = session;
    TRY_ASSIGN(const bool reached, ReadProcess(place->get(), process));
    if (reached) {
      processes.push_back(std::move(process));
    }
  }
  return processes;
}

Result<UniqueFd> ProcessPlaces::OpenProcess(const std::string& session,
                                            const std::string& process) const {
  const Error none = Refused(
      "policy.process",
      fmt::format("there is no process {} in session {}", Printable(process), Printable(session)),
      fmt::format("`coffer sessions processes {}` lists them", Printable(session)));
  if (process.empty() || process.find_first_not_of("0123456789abcdef-") != std::string::npos) {
    return none;
  }
  Result<UniqueFd> dir = OpenPrivate(directory_.get(), session);
  if (dir.ok()) {
    dir = OpenPrivate(dir->get(), process);
  }
  return !dir.ok() && dir.error().sys_errno == ENOENT ? Result<UniqueFd>(none) : std::move(dir);
}

Result<UniqueFd> ProcessPlaces::MakeProcess(const std::string& session,
                                            const std::string& process) const {
  TRY_ASSIGN(const UniqueFd dir, OpenPrivate(directory_.get(), session));
  TRY_ASSIGN(UniqueFd place, MakePrivate(dir.get(), process));
  TRY_ASSIGN(const UniqueFd log,
             store::OpenStatePart(place.get(), "log", O_WRONLY | O_CREAT | O_EXCL, 0600));
  return place;
}

Status ProcessPlaces::WriteAbout(int dir, const ProcessInfo& process) {
  return WriteWhole(dir, "about",
                    PrintJson({{"command", process.command},
                               {"ports", process.ports},
                               {"started_at", process.started_at.count()}}));
}

Status ProcessPlaces::WriteEnd(int dir, const ProcessInfo& process) {
  return WriteWhole(dir, "end",
                    PrintJson({{"ended_at", process.ended_at.count()},
                               {"outcome", process.outcome},
                               {"exit_code", OrNull(process.exit_code)},
                               {"exit_signal", OrNull(process.exit_signal)},
                               {"error_class", process.error_class},
                               {"error_message", process.error_message}}));
}

Status ProcessPlaces::RemoveProcess(const std::string& session, const std::string& process) const {
  TRY_ASSIGN(const UniqueFd dir, OpenPrivate(directory_.get(), session));
  return RemoveTree(dir.get(), process);
}

Status ProcessPlaces::EndSession(const std::string& session, int lock) const {
  TRY_ASSIGN(const UniqueFd fresh, sys::OpenAt(lock, ".", O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(const std::vector<sys::DirEntry> entries, sys::ListDir(fresh.get()));
  std::vector<UniqueFd> keepers;
  for (const sys::DirEntry& entry : entries) {
    TRY_ASSIGN(const UniqueFd place, OpenPrivate(lock, entry.name));
    TRY_ASSIGN(std::optional<UniqueFd> keeper, FindKeeper(place.get()));
    if (keeper) {
      // One that ends just now gives no answer; it is awaited like the others.
      (void)AskKeeper(keeper->get(),
                      {KeeperVerb::kStop, static_cast<int32_t>(StopReason::kSessionEnded)});
      keepers.push_back(std::move(*keeper));
    }
  }
  for (const UniqueFd& keeper : keepers) {
    if (!AwaitEnd(keeper.get(), kLongestEnd)) {
      return HostFault("isolation.process", "a background process of the session does not end",
                       "its keeper may have been stopped: `ps` shows it as coffer sessions start");
    }
  }
  return RemoveTree(directory_.get(), session);
}

}  // namespace coffer::cli
