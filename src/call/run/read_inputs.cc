// SPDX-License-Identifier: Apache-2.0
#include "call/run/read_inputs.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/path_words.h"
#include "base/quantity.h"
#include "base/sys.h"
#include "base/text.h"
#include "isolation/host_path.h"
#include "isolation/runtime/own_tree.h"
#include "isolation/runtime/real_path.h"

namespace coffer::call {
namespace {

constexpr uint64_t kMaxInput = 64ULL << 20;

Result<isolation::Input> ReadInput(const isolation::HostPath& examined, const UniqueFd& fd,
                                   const std::string& path) {
  struct stat info;
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Refused("policy.path.kind", fmt::format("{} is not a regular file", PathInWords(path)),
                   "only files are brought in by copy; use --ro for a directory");
  }
  if (static_cast<uint64_t>(info.st_size) > kMaxInput) {
    return Refused("policy.input.size",
                   fmt::format("{} is larger than {}", PathInWords(path), FormatSize(kMaxInput)),
                   "use --ro to show it without a copy");
  }
  Result<std::string> content = sys::ReadFd(fd.get(), kMaxInput);
  if (!content.ok()) {
    content.error().message = PathInWords(path) + ": " + content.error().message;
    return std::move(content.error());
  }
  return isolation::Input{std::string(isolation::BaseName(path)), std::move(content).value(),
                          examined.path, examined.path_class, examined.reason};
}

}  // namespace

Result<isolation::Input> ReadScript(const std::string& path,
                                    const isolation::RuntimeGrounds& grounds) {
  isolation::RealPaths paths;
  TRY_ASSIGN(const std::string absolute, isolation::Absolute(path));
  const Result<isolation::RealPaths::Place> place = paths.Find(absolute);
  if (!place.ok()) {
    const int number = place.error().sys_errno;
    const bool missing = number == ENOENT || number == ENOTDIR;
    return Error{missing ? ErrorKind::kNotFound : ErrorKind::kNotExecutable, "policy.command",
                 fmt::format("cannot read {}: {}", PathInWords(path), sys::ErrnoText(number)),
                 missing ? kCommandHint : "", number};
  }
  isolation::RuntimeSet set;
  set.files.push_back({place->real, place->real, false, false, isolation::BindReason::kScript,
                       !place->via_link(), place->via_link()});
  set.own_trees.push_back(isolation::OwnTree(*place));
  std::erase(set.own_trees, "");
  TRY_ASSIGN(const isolation::OpenedRuntime opened,
             isolation::OpenRuntime(std::move(set), grounds));
  Result<UniqueFd> fd = isolation::OpenForReading(opened.paths.front());
  if (!fd.ok()) {
    return Error{
        ErrorKind::kNotExecutable, "policy.command",
        fmt::format("cannot read {}: {}", PathInWords(path), sys::ErrnoText(fd.error().sys_errno)),
        "", fd.error().sys_errno};
  }
  TRY_ASSIGN(isolation::Input script, ReadInput(opened.paths.front(), *fd, path));
  script.name = place->name;
  return script;
}

Status ReadInputs(const std::vector<std::string>& paths, std::vector<isolation::Input>& inputs) {
  for (const std::string& given : paths) {
    TRY_ASSIGN(const isolation::HostPath path,
               isolation::OpenHostPath(given, policy::Access::kRead, isolation::Breadth::kNarrow,
                                       isolation::BindReason::kInput));
    TRY_ASSIGN(const UniqueFd readable, isolation::OpenForReading(path));
    TRY_ASSIGN(isolation::Input input, ReadInput(path, readable, path.path));
    const bool twice =
        std::any_of(inputs.begin(), inputs.end(),
                    [&](const isolation::Input& other) { return other.name == input.name; });
    if (twice) {
      return Refused("policy.input.twice",
                     "two inputs are called " + InQuotes(Printable(input.name)),
                     "rename one of them");
    }
    inputs.push_back(std::move(input));
  }
  return {};
}

}  // namespace coffer::call
