// SPDX-License-Identifier: Apache-2.0
#include "call/run/run_profile.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <variant>

#include "base/quantity.h"
#include "base/regular_file.h"
#include "base/sys.h"
#include "isolation/runtime/real_path.h"
#include "policy/manifest/table_reader.h"

namespace coffer::call {
namespace {

using policy::TomlKind;
using policy::TomlNode;

constexpr size_t kLongestProfile = 64 << 10;
constexpr const char* kProjectFile = ".coffer.toml";

// "~/x" is the caller's home: a shell would have said so.
std::string Expanded(const std::string& value) {
  const char* const home = ::getenv("HOME");
  return value.starts_with("~/") && home != nullptr ? home + value.substr(1) : value;
}

void AddWord(const std::string& flag, const TomlNode& value, std::vector<std::string>& words,
             policy::MistakeList& mistakes) {
  switch (value.kind) {
    case TomlKind::kString:
      words.push_back(flag + "=" + Expanded(value.text));
      return;
    case TomlKind::kInteger:
      words.push_back(flag + "=" + std::to_string(value.integer));
      return;
    case TomlKind::kBoolean:
      if (value.boolean) {
        words.push_back(flag);
      }
      return;
    case TomlKind::kArray:
      for (const TomlNode& item : value.items) {
        if (item.kind == TomlKind::kString) {
          AddWord(flag, item, words, mistakes);
        } else {
          mistakes.Add(item.at, "a string is wanted in a list", "write \"...\"");
        }
      }
      return;
    case TomlKind::kTable:
      for (const policy::TomlEntry& entry : value.entries) {
        if (entry.value.kind == TomlKind::kString) {
          words.push_back(flag + "=" + entry.key + "=" + entry.value.text);
        } else {
          mistakes.Add(entry.value.at, "a string is wanted", "write \"...\"");
        }
      }
      return;
    case TomlKind::kFloat:
    case TomlKind::kDate:
      mistakes.Add(value.at, "no flag takes this kind of value", "write it as a string");
      return;
  }
}

// The text of the project's file; "" if there is none, or a placeholder of an earlier call stands there.
Result<std::string> ReadProjectFile(const std::string& project) {
  const std::string path = project + "/" + kProjectFile;
  const Result<UniqueFd> file = sys::OpenNoLinks(AT_FDCWD, path, O_PATH);
  if (!file.ok() && (file.error().sys_errno == ENOENT || file.error().sys_errno == ENOTDIR)) {
    return std::string();
  }
  struct stat info{};
  if (file.ok() && ::fstat(file->get(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return std::string();
  }
  Result<UniqueFd> readable =
      file.ok() ? sys::ReopenRegular(file->get(), path, O_RDONLY) : Result<UniqueFd>(file.error());
  if (!readable.ok()) {
    return Refused("policy.project.file", path + " is not a file that can be read",
                   "make it a regular file, or remove it");
  }
  Result<std::string> text = sys::ReadFd(readable->get(), kLongestProfile);
  if (!text.ok()) {
    return Refused("policy.project.file", path + ": " + text.error().message,
                   fmt::format("it may have up to {}", FormatSize(kLongestProfile)));
  }
  return text;
}

template <typename T>
void Lower(policy::TableReader& reader, const char* key, T& cap,
           Result<T> (*parse)(std::string_view)) {
  T asked = cap;
  reader.Parsed(asked, key, parse);
  cap = std::min(cap, asked);
}

}  // namespace

std::vector<std::string> ProfileWords(const TomlNode& profile, policy::MistakeList& mistakes) {
  std::vector<std::string> words;
  for (const policy::TomlEntry& entry : profile.entries) {
    std::string name = entry.key;
    std::replace(name.begin(), name.end(), '_', '-');
    AddWord("--" + name, entry.value, words, mistakes);
  }
  return words;
}

Status NarrowByProjectFile(RunRequest& request) {
  if (request.project.empty()) {
    return {};
  }
  const std::string file = request.project + "/" + kProjectFile;
  TRY_ASSIGN(const std::string text, ReadProjectFile(request.project));
  const std::variant<TomlNode, policy::Mistake> tree = policy::ReadToml(text);
  if (const auto* const mistake = std::get_if<policy::Mistake>(&tree)) {
    return Refused("policy.project.file", policy::FormatMistake(file, *mistake));
  }
  policy::MistakeList mistakes;
  policy::TableReader reader(
      std::get<TomlNode>(tree), "",
      std::vector<std::string_view>{"cpu", "wall", "memory", "processes", "open_files", "disk",
                                    "tmp", "io", "output", "read_only"},
      mistakes);
  policy::Limits& limits = request.envelope.limits;
  Lower(reader, "cpu", limits.cpu, ParseDuration);
  Lower(reader, "wall", limits.wall, ParseDuration);
  Lower(reader, "memory", limits.memory, ParseSize);
  Lower(reader, "disk", limits.disk, ParseSize);
  Lower(reader, "tmp", limits.tmp, ParseSize);
  Lower(reader, "io", limits.io, ParseSize);
  Lower(reader, "output", limits.output, ParseSize);
  limits.processes =
      std::min(limits.processes, reader.Count("processes", 1, 1000000).value_or(limits.processes));
  limits.open_files = std::min(limits.open_files,
                               reader.Count("open_files", 1, 1000000).value_or(limits.open_files));
  for (const std::string& path : reader.Strings("read_only").value_or(std::vector<std::string>())) {
    const std::string whole = isolation::Normalize(request.project + "/" + path);
    if (path.starts_with('/') || whole == request.project ||
        !isolation::IsAtOrBelow(whole, request.project)) {
      reader.Add("read_only", "\"" + path + "\" is not a path in the project",
                 "write it as \"infra\"");
      continue;
    }
    request.project_read_only.push_back(whole.substr(request.project.size() + 1));
  }
  if (!mistakes.empty()) {
    return Refused("policy.project.file", policy::FormatMistake(file, mistakes.Take().front()),
                   "a project's own file can only lower caps and name paths that are read-only");
  }
  return {};
}

}  // namespace coffer::call
