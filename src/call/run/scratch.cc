// SPDX-License-Identifier: Apache-2.0
#include "call/run/scratch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>

#include "base/clock.h"
#include "base/path_words.h"
#include "base/process_liveness.h"
#include "base/remove_tree.h"
#include "base/sys.h"

namespace coffer::call {
namespace {

constexpr std::string_view kPrefix = "coffer-scratch-";

std::string Parent() {
  const char* const wished = ::getenv("TMPDIR");
  return ::geteuid() == 0 || wished == nullptr ? "/tmp" : wished;
}

// Other users must not be able to put something else in the place of what is made there.
Status CheckParent(const std::string& parent) {
  struct stat info{};
  if (::stat(parent.c_str(), &info) != 0) {
    return {};  // mkdtemp says why
  }
  const bool shared = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0;
  if (shared || (info.st_uid != 0 && info.st_uid != ::geteuid())) {
    return Refused("isolation.scratch",
                   fmt::format("other users can replace files in {}", PathInWords(parent)),
                   "set TMPDIR to a directory of your own, or leave it out");
  }
  return {};
}

// A directory in `root`, open, with this mode whatever the caller's umask is.
Result<UniqueFd> MakePart(int root, const std::string& name, mode_t mode) {
  TRY(sys::MakeDirAt(root, name, mode));
  TRY_ASSIGN(UniqueFd part, sys::OpenAt(root, name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  if (::fchmodat(part.get(), ".", mode, 0) != 0) {
    return HostFault("isolation.scratch", "cannot set the mode of a scratch directory");
  }
  return part;
}

}  // namespace

Result<Scratch> Scratch::Make(const std::vector<isolation::Input>& inputs) {
  TRY(CheckParent(Parent()));
  std::string name =
      fmt::format("{}/{}{}-{:x}-XXXXXX", Parent(), kPrefix, ::getpid(),
                  std::chrono::duration_cast<std::chrono::milliseconds>(BootTime()).count());
  if (::mkdtemp(name.data()) == nullptr) {
    return HostFault("isolation.scratch",
                     fmt::format("cannot create a scratch directory in {}", PathInWords(Parent())),
                     "make room there, or set TMPDIR to a directory you can write");
  }
  Scratch scratch;
  scratch.path_.value = name;
  TRY_ASSIGN(scratch.root_, sys::Open(name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  const int root = scratch.root_.get();
  TRY_ASSIGN(scratch.workspace_, MakePart(root, "workspace", 0700));
  TRY_ASSIGN(scratch.tmp_, MakePart(root, "tmp", 0700));
  TRY_ASSIGN(scratch.in_, MakePart(root, "in", 0755));
  TRY_ASSIGN(const UniqueFd canary, sys::OpenAt(root, "canary", O_WRONLY | O_CREAT | O_EXCL, 0644));
  for (const isolation::Input& input : inputs) {
    TRY_ASSIGN(const UniqueFd file, sys::OpenAt(scratch.in_.get(), input.name,
                                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0444));
    // The mode of open(2) is narrowed by the caller's umask.
    (void)::fchmod(file.get(), 0444);
    TRY(sys::WriteAll(file.get(), input.content));
    if (::symlinkat((name + "/in/" + input.name).c_str(), scratch.workspace_.get(),
                    input.name.c_str()) != 0) {
      return HostFault("isolation.scratch", "cannot link an input into the workspace");
    }
  }
  return scratch;
}

Scratch& Scratch::operator=(Scratch&& other) noexcept {
  Discard();
  path_ = std::move(other.path_);
  root_ = std::move(other.root_);
  workspace_ = std::move(other.workspace_);
  tmp_ = std::move(other.tmp_);
  in_ = std::move(other.in_);
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
  for (const UniqueFd* const part : {&workspace_, &tmp_}) {
    if (::fchownat(part->get(), "", uid, uid, AT_EMPTY_PATH) != 0) {
      return HostFault("isolation.scratch", "cannot give the scratch directory to the boundary");
    }
  }
  // The directory above its parts stays ours: the boundary may pass through it as its group, and
  // may not rename or remove them.
  if (::fchownat(root_.get(), "", ::geteuid(), uid, AT_EMPTY_PATH) != 0 ||
      ::fchmodat(root_.get(), ".", 0710, 0) != 0) {
    return HostFault("isolation.scratch", "cannot let the boundary into its scratch directory");
  }
  return {};
}

Status Scratch::Remove() {
  if (path().empty()) {
    return {};
  }
  const size_t slash = path().rfind('/');
  TRY_ASSIGN(const UniqueFd parent, sys::Open(path().substr(0, slash), O_PATH | O_DIRECTORY));
  TRY(RemoveTree(parent.get(), path().substr(slash + 1)));
  path_.value.clear();  // until then the destructor tries once more
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
    // The name is PREFIX pid - time in hexadecimal - six letters of mkdtemp.
    const auto [after, problem] = std::from_chars(entry.name.data() + kPrefix.size(), end, pid);
    if (problem != std::errc() || after == end ||
        std::from_chars(after + 1, end, made, 16).ec != std::errc()) {
      continue;
    }
    struct stat info;
    const bool ours =
        ::fstatat(parent->get(), entry.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
    if (pid > 0 && ours && !IsAlive(pid, std::chrono::milliseconds(made)) &&
        RemoveTree(parent->get(), entry.name).ok()) {
      ++removed;
    }
  }
  return removed;
}

}  // namespace coffer::call
