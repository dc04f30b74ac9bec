// SPDX-License-Identifier: Apache-2.0
//
// Any words at all (separated by NUL): no crash, and a request that was accepted is complete and within bounds.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "cli/run_flags.h"

namespace {

void Require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
  }
}

constexpr uint64_t kMostBytes = 1ULL << 60;
constexpr coffer::Nanos kLongest = std::chrono::hours(366 * 24);

void CheckLimits(const coffer::policy::Limits& limits) {
  for (const uint64_t size : {limits.memory, limits.disk, limits.tmp, limits.io, limits.output}) {
    Require(size >= 1 && size <= kMostBytes, "a size");
  }
  for (const uint64_t count : {limits.processes, limits.open_files, limits.inodes}) {
    Require(count >= 1 && count <= (1 << 20), "a count");
  }
  for (const coffer::Nanos time : {limits.cpu, limits.wall}) {
    Require(time >= std::chrono::milliseconds(1) && time <= kLongest, "a time");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string_view> words;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const size_t end = rest.find('\0');
    words.push_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  const auto request = coffer::cli::ParseRunFlags(words);
  if (!request.ok()) {
    Require(request.error().kind == coffer::ErrorKind::kRefused, "a refusal that is not one");
    Require(!request.error().message.empty(), "a refusal without a word");
    for (const char c : request.error().message) {
      Require(static_cast<unsigned char>(c) >= 0x20, "a message of more than one line");
    }
    return 0;
  }
  Require(!request->command.empty() && !request->command.front().empty(), "no command");
  Require(request->command.size() <= words.size(), "more words than were given");
  Require(request->envelope.uid <= 65535, "a uid");
  // With a project it is found with the paths of the host (cli/run_paths.h), after the flags.
  const std::string& cwd = request->envelope.cwd;
  Require(cwd.starts_with("/") || (cwd.empty() && !request->project.empty()),
          "a relative directory");
  CheckLimits(request->envelope.limits);
  for (const auto& mount : request->envelope.mounts) {
    Require(!mount.host.empty(), "a mount of nothing");
  }
  for (const auto& [name, value] : request->envelope.env) {
    Require(!name.empty() && name.find('=') == std::string::npos, "a variable's name");
  }
  Require((request->envelope.syscalls == coffer::policy::SyscallProfile::kImported) ==
              !request->envelope.imported_seccomp.empty(),
          "an imported profile without a file");
  Require(coffer::policy::EnvelopeId(request->envelope).size() == 71, "an id");
  return 0;
}
