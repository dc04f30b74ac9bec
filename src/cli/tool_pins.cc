// SPDX-License-Identifier: Apache-2.0
#include "cli/tool_pins.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/hash.h"
#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "policy/manifest/manifest.h"
#include "store/state_part.h"

namespace coffer::cli {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr const char* kPinsCode = "mcp.pins";
constexpr std::string_view kSuffix = ".json";
constexpr size_t kLongestPins = size_t{16} << 20;

Json ToJson(const Definitions& definitions) {
  Json made = Json::object();
  for (const auto& [tool, definition] : definitions) {
    made[tool] = definition;
  }
  return made;
}

// Anything but what Write has written is an error: what cannot be read was not accepted.
Result<Definitions> FromJson(const Json& json, const char* part, const std::string& file) {
  const auto found = json.is_object() ? json.find(part) : json.end();
  Definitions made;
  bool good = json.is_object() && found != json.end() && found->is_object();
  if (good) {
    for (const auto& [tool, definition] : found->items()) {
      good = good && definition.is_string();
      if (definition.is_string()) {
        made[tool] = definition.get<std::string>();
      }
    }
  }
  if (!good) {
    return HostFault(kPinsCode, fmt::format("mcp/{} of the state directory cannot be read", file),
                     "restore it from a copy; without it, all that the server lists next is "
                     "accepted without a review");
  }
  return made;
}

}  // namespace

std::vector<PinChange> ChangesOf(const ServerPins& pins) {
  std::vector<PinChange> changes;
  for (const auto& [tool, now] : pins.seen) {
    const auto before = pins.accepted.find(tool);
    if (before == pins.accepted.end()) {
      changes.push_back({tool, std::nullopt, now});
    } else if (before->second != now) {
      changes.push_back({tool, before->second, now});
    }
  }
  return changes;
}

std::string DigestOf(const ServerPins& pins) {
  // Long enough that a server cannot make two lists with the same digest and put one in the place of the other.
  constexpr size_t kDigits = 32;
  const std::string hash = HashOf(PrintJson(ToJson(pins.seen)));
  return hash.substr(hash.find(':') + 1, kDigits);
}

Result<ToolPins> ToolPins::Open(const std::string& state_directory) {
  TRY_ASSIGN(const UniqueFd state, sys::Open(state_directory, O_RDONLY | O_DIRECTORY));
  if (const Status made = sys::MakeDirAt(state.get(), "mcp", 0700);
      !made.ok() && made.error().sys_errno != EEXIST) {
    return made.error();
  }
  TRY_ASSIGN(UniqueFd directory, store::OpenStatePart(state.get(), "mcp", O_RDONLY | O_DIRECTORY));
  struct stat info{};
  if (::fstat(directory.get(), &info) != 0 || info.st_uid != ::geteuid() ||
      (info.st_mode & 077) != 0) {
    return HostFault(kPinsCode, "`mcp` in the state directory is not yours alone",
                     "look who made it, and remove it");
  }
  return ToolPins(std::move(directory));
}

Result<UniqueFd> ToolPins::Lock() const {
  TRY_ASSIGN(UniqueFd lock, store::OpenStatePart(directory_.get(), "lock", O_RDWR | O_CREAT, 0600));
  if (::flock(lock.get(), LOCK_EX) != 0) {
    return HostFault(kPinsCode, "`mcp/lock` of the state directory cannot be locked");
  }
  return lock;
}

Result<std::vector<std::string>> ToolPins::Names() const {
  TRY_ASSIGN(const UniqueFd dir, sys::OpenAt(directory_.get(), ".", O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(const std::vector<sys::DirEntry> entries, sys::ListDir(dir.get()));
  std::vector<std::string> names;
  for (const sys::DirEntry& entry : entries) {
    const std::string name = entry.name.substr(0, entry.name.rfind('.'));
    if (entry.name == name + std::string(kSuffix) && policy::IsToolName(name)) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::optional<ServerPins>> ToolPins::Read(const std::string& name) const {
  if (!policy::IsToolName(name)) {
    return std::optional<ServerPins>();  // no name of a server
  }
  const std::string file = name + std::string(kSuffix);
  Result<UniqueFd> opened = store::OpenStatePart(directory_.get(), file, O_RDONLY);
  if (!opened.ok()) {
    if (opened.error().sys_errno == ENOENT) {
      return std::optional<ServerPins>();
    }
    return std::move(opened.error());
  }
  TRY_ASSIGN(const std::string text, sys::ReadFd(opened->get(), kLongestPins));
  const Result<Json> json = ParseJson(text);
  const Json nothing;
  ServerPins pins;
  TRY_ASSIGN(pins.accepted, FromJson(json.ok() ? *json : nothing, "accepted", file));
  TRY_ASSIGN(pins.seen, FromJson(json.ok() ? *json : nothing, "seen", file));
  return std::optional(std::move(pins));
}

Status ToolPins::Write(const std::string& name, const ServerPins& pins) const {
  const std::string file = name + std::string(kSuffix);
  const std::string temporary = name + ".new";
  const std::string text =
      PrintJson({{"accepted", ToJson(pins.accepted)}, {"seen", ToJson(pins.seen)}}) + "\n";
  if (text.size() > kLongestPins) {  // it could not be read again
    return Refused(kPinsCode, "what the server " + name + " lists is too long to be kept");
  }
  {
    TRY_ASSIGN(const UniqueFd writing, store::OpenStatePart(directory_.get(), temporary,
                                                            O_WRONLY | O_CREAT | O_TRUNC, 0600));
    TRY(sys::WriteAll(writing.get(), text));
    if (::fsync(writing.get()) != 0) {
      return HostFault(kPinsCode, "mcp/" + file + " of the state directory cannot be written");
    }
  }
  const long renamed = Syscall(SYS_renameat2, directory_.get(), Arg(temporary.c_str()),
                               directory_.get(), Arg(file.c_str()), 0);
  return renamed < 0 ? Status(sys::ErrnoError(kPinsCode, "cannot write mcp/" + file, renamed))
                     : Status();
}

Result<ServerPins> ToolPins::See(const std::string& name, const Definitions& seen) const {
  TRY_ASSIGN(const UniqueFd lock, Lock());
  TRY_ASSIGN(std::optional<ServerPins> known, Read(name));
  ServerPins pins = known ? std::move(*known) : ServerPins{seen, {}};
  if (!known || pins.seen != seen) {
    pins.seen = seen;
    TRY(Write(name, pins));
  }
  return pins;
}

Status ToolPins::Accept(const std::string& name, const std::string& digest) const {
  TRY_ASSIGN(const UniqueFd lock, Lock());
  TRY_ASSIGN(std::optional<ServerPins> known, Read(name));
  if (!known) {
    return Refused("policy.usage", "no server called " + Printable(name) + " was wrapped",
                   "`coffer mcp review` names those that were");
  }
  if (digest != DigestOf(*known)) {
    return Refused("policy.digest", "the server's tools changed after the review",
                   "look at it again: `coffer mcp review " + name + "`");
  }
  known->accepted = known->seen;
  return Write(name, *known);
}

}  // namespace coffer::cli
