// SPDX-License-Identifier: Apache-2.0
#include "audit/log/log_home.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "audit/log/checkpoint.h"
#include "audit/log/merkle.h"
#include "base/ids.h"
#include "base/regular_file.h"
#include "base/sys.h"
#include "store/state_part.h"

namespace coffer::audit {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr const char* kMoveAway = "restore it, or move the whole log directory away to begin anew";

Status Sync(int fd, const char* what) {
  const long answer = Syscall(SYS_fsync, fd);
  if (answer < 0) {
    return sys::ErrnoError("audit.log", std::string("cannot sync ") + what, answer);
  }
  return {};
}

Result<struct stat> Look(int fd) {
  struct stat info{};
  const long answer = Syscall(SYS_fstat, fd, Arg(&info));
  if (answer < 0) {
    return sys::ErrnoError("audit.log", "cannot look at the log directory", answer);
  }
  return info;
}

// As root: a file belongs to the owner of its directory, because the daemon runs as another user.
Status GiveToOwnerOf(int place, int file) {
  if (::geteuid() != 0) {
    return {};
  }
  TRY_ASSIGN(const struct stat home, Look(place));
  const long answer = Syscall(SYS_fchown, file, home.st_uid, home.st_gid);
  if (answer < 0) {
    return sys::ErrnoError("audit.log", "cannot give a file to the log directory's owner", answer);
  }
  return {};
}

Result<UniqueFd> OpenDirectory(const std::string& path) {
  const Status made = sys::MakeDirAt(AT_FDCWD, path, 0700);
  if (!made.ok() && made.error().sys_errno != EEXIST) {
    return made.error();
  }
  // The last name without a link: what is above it is where the operator put the state directory.
  const size_t slash = path.rfind('/');
  const std::string above_path = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  TRY_ASSIGN(const UniqueFd home, sys::Open(above_path, O_PATH | O_DIRECTORY));
  TRY_ASSIGN(UniqueFd directory,
             store::OpenStatePart(home.get(), path.substr(slash + 1), O_RDONLY | O_DIRECTORY));
  if (made.ok()) {
    TRY_ASSIGN(UniqueFd above, sys::OpenAt(directory.get(), "..", O_RDONLY | O_DIRECTORY));
    TRY(GiveToOwnerOf(above.get(), directory.get()));
    TRY(Sync(above.get(), "the state directory"));
  }
  TRY_ASSIGN(const struct stat info, Look(directory.get()));
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return HostFault("audit.log", path + " can be written by others",
                     "chmod go-w it: a user who can write there can damage the log");
  }
  return directory;
}

Result<bool> Has(int directory, const char* name) {
  struct stat info{};
  const long answer =
      Syscall(SYS_newfstatat, directory, Arg(name), Arg(&info), AT_SYMLINK_NOFOLLOW);
  if (answer < 0 && answer != -ENOENT) {
    return sys::ErrnoError("audit.log", std::string("cannot look at ") + name, answer);
  }
  return answer == 0;
}

// A file of the log. Something else in its place is damage.
Result<UniqueFd> OpenPart(int directory, const std::string& name, int flags) {
  Result<UniqueFd> file = sys::OpenRegularAt(directory, name, flags | O_NOFOLLOW);
  if (!file.ok() && file.error().kind == ErrorKind::kRefused) {
    return HostFault("audit.log.damaged", "the log's `" + name + "` is not a file", kMoveAway);
  }
  return file;
}

Result<Signer> LoadKey(int directory) {
  TRY_ASSIGN(const UniqueFd file, OpenPart(directory, "key", O_RDONLY));
  TRY_ASSIGN(const struct stat info, Look(file.get()));
  if ((info.st_mode & 077) != 0) {
    return HostFault("audit.log.key", "the log's key can be read by others",
                     "chmod 600 it, and think about who may have it now");
  }
  TRY_ASSIGN(const std::string hex, sys::ReadFd(file.get(), 1024));
  return Signer::FromSeed(hex);
}

// In this order; where `records` is, everything is.
Status MakeLog(int directory) {
  TRY_ASSIGN(const bool was_here, Has(directory, "tree"));
  if (was_here) {
    return HostFault("audit.log.damaged", "the log's file `records` was there and is gone",
                     kMoveAway);
  }
  TRY_ASSIGN(const bool has_key, Has(directory, "key"));
  if (!has_key) {
    std::string hex;
    const Result<Signer> fresh = Signer::Create(hex);
    if (!fresh.ok()) {
      return fresh.error();
    }
    TRY(MakeLogFile(directory, "key", hex + "\n", 0600));
  }
  TRY_ASSIGN(const Signer signer, LoadKey(directory));
  TRY(MakeLogFile(directory, "key.pub", signer.public_key().Text() + "\n", 0644));
  TRY_ASSIGN(const std::string id, NewId());
  const std::string origin = std::string(kOriginPrefix) + HexOf(LineHash(id)).substr(0, 16);
  const std::string header = std::string(kHeaderPrefix) + origin;
  const Checkpoint empty = SignCheckpoint(signer, origin, 0, Frontier().Root(), LineHash(header));
  return MakeLogFile(directory, "records", header + "\n" + empty.Line() + "\n", 0600);
}

}  // namespace

Status MakeLogFile(int directory, const std::string& name, std::string_view content,
                   unsigned mode) {
  TRY_ASSIGN(const std::string id, NewId());
  const std::string temporary = "." + name + "." + id;
  TRY_ASSIGN(UniqueFd file,
             sys::OpenAt(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
  const auto fill = [&]() -> Status {
    TRY(GiveToOwnerOf(directory, file.get()));
    TRY(sys::WriteAll(file.get(), content));
    TRY(Sync(file.get(), name.c_str()));
    const long linked =
        Syscall(SYS_linkat, directory, Arg(temporary.c_str()), directory, Arg(name.c_str()), 0);
    if (linked < 0 && linked != -EEXIST) {
      return sys::ErrnoError("audit.log", "cannot make " + name, linked);
    }
    return {};
  };
  const Status filled = fill();
  Syscall(SYS_unlinkat, directory, Arg(temporary.c_str()), 0);
  TRY(filled);
  return Sync(directory, "the log directory");
}

Result<UniqueFd> OpenRecords(int directory) { return OpenPart(directory, "records", O_RDWR); }

Result<LogHome> OpenLogHome(const std::string& path) {
  TRY_ASSIGN(UniqueFd directory, OpenDirectory(path));
  TRY_ASSIGN(const bool has_records, Has(directory.get(), "records"));
  if (!has_records) {
    TRY(MakeLog(directory.get()));
  }
  TRY_ASSIGN(const bool has_key, Has(directory.get(), "key"));
  if (!has_key) {
    return HostFault("audit.log.key", "the log is there and its file `key` is gone", kMoveAway);
  }
  TRY_ASSIGN(Signer signer, LoadKey(directory.get()));
  TRY_ASSIGN(const bool has_public, Has(directory.get(), "key.pub"));
  if (!has_public) {
    TRY(MakeLogFile(directory.get(), "key.pub", signer.public_key().Text() + "\n", 0644));
  }
  return LogHome{std::move(directory), std::move(signer)};
}

}  // namespace coffer::audit
