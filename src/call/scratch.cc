// SPDX-License-Identifier: Apache-2.0
#include "call/scratch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>

#include "base/clock.h"
#include "base/maker.h"
#include "base/remove_tree.h"
#include "base/sys.h"

namespace coffer::call {
namespace {

constexpr std::string_view kPrefix = "coffer-scratch-";

std::string Parent() {
  const char* const wished = ::getenv("TMPDIR");
  return ::geteuid() == 0 || wished == nullptr ? "/tmp" : wished;
}

}  // namespace

Result<Scratch> Scratch::Make(const std::vector<isolation::Input>& inputs) {
  std::string name =
      fmt::format("{}/{}{}-{:x}-XXXXXX", Parent(), kPrefix, ::getpid(),
                  std::chrono::duration_cast<std::chrono::milliseconds>(BootTime()).count());
  if (::mkdtemp(name.data()) == nullptr) {
    return HostFault("isolation.scratch",
                     fmt::format("cannot create a scratch directory in {}", Parent()),
                     "make room there, or set TMPDIR to a directory you can write");
  }
  Scratch scratch;
  scratch.path_ = name;
  TRY_ASSIGN(const UniqueFd dir, sys::Open(name, O_PATH | O_DIRECTORY));
  TRY(sys::MakeDirAt(dir.get(), "workspace", 0700));
  TRY(sys::MakeDirAt(dir.get(), "tmp", 0700));
  TRY(sys::MakeDirAt(dir.get(), "in", 0755));
  // Whatever the caller's umask took away, here and below.
  if (::fchmodat(dir.get(), "in", 0755, 0) != 0) {
    return HostFault("isolation.scratch", "cannot set the mode of a scratch directory");
  }
  TRY_ASSIGN(const UniqueFd canary,
             sys::OpenAt(dir.get(), "canary", O_WRONLY | O_CREAT | O_EXCL, 0644));
  for (const isolation::Input& input : inputs) {
    TRY_ASSIGN(const UniqueFd file,
               sys::OpenAt(dir.get(), "in/" + input.name, O_WRONLY | O_CREAT | O_EXCL, 0444));
    (void)::fchmod(file.get(), 0444);
    TRY(sys::WriteAll(file.get(), input.content));
    if (::symlinkat((name + "/in/" + input.name).c_str(), dir.get(),
                    ("workspace/" + input.name).c_str()) != 0) {
      return HostFault("isolation.scratch", "cannot link an input into the workspace");
    }
  }
  return scratch;
}

Scratch& Scratch::operator=(Scratch&& other) noexcept {
  Discard();
  path_ = std::exchange(other.path_, {});
  return *this;
}

Scratch::~Scratch() { Discard(); }

void Scratch::Discard() noexcept {
  try {
    (void)Remove();
    // NOLINTNEXTLINE(bugprone-empty-catch): out of memory; SweepScratch of a later start removes it
  } catch (...) {
  }
}

Status Scratch::GiveTo(uint32_t uid) const {
  for (const char* part : {"/workspace", "/tmp"}) {
    if (::chown((path_ + part).c_str(), uid, uid) != 0) {
      return HostFault("isolation.scratch", "cannot give the scratch directory to the boundary");
    }
  }
  if (::chown(path_.c_str(), ::geteuid(), uid) != 0 || ::chmod(path_.c_str(), 0710) != 0) {
    return HostFault("isolation.scratch", "cannot let the boundary into its scratch directory");
  }
  return {};
}

Status Scratch::Remove() {
  if (path_.empty()) {
    return {};
  }
  const size_t slash = path_.rfind('/');
  TRY_ASSIGN(const UniqueFd parent, sys::Open(path_.substr(0, slash), O_PATH | O_DIRECTORY));
  TRY(RemoveTree(parent.get(), path_.substr(slash + 1)));
  path_.clear();  // until then the destructor tries once more
  return {};
}

size_t SweepScratch() {
  size_t removed = 0;
  const Result<UniqueFd> parent = sys::Open(Parent(), O_RDONLY | O_DIRECTORY);
  if (!parent.ok()) {
    return 0;
  }
  const Result<std::vector<sys::DirEntry>> entries = sys::ListDir(parent->get());
  if (!entries.ok()) {
    return 0;
  }
  for (const sys::DirEntry& entry : *entries) {
    if (!std::string_view(entry.name).starts_with(kPrefix)) {
      continue;
    }
    pid_t pid = 0;
    int64_t made = 0;
    const char* const end = entry.name.data() + entry.name.size();
    const auto [after, problem] = std::from_chars(entry.name.data() + kPrefix.size(), end, pid);
    if (problem != std::errc() || after == end ||
        std::from_chars(after + 1, end, made, 16).ec != std::errc()) {
      continue;
    }
    struct stat info;
    const bool ours =
        ::fstatat(parent->get(), entry.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
    if (pid > 0 && ours && !MakerLives(pid, std::chrono::milliseconds(made)) &&
        RemoveTree(parent->get(), entry.name).ok()) {
      ++removed;
    }
  }
  return removed;
}

}  // namespace coffer::call
