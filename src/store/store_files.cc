// SPDX-License-Identifier: Apache-2.0
#include "store/store_files.h"

#include <endian.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <span>
#include <string_view>

#include "base/sys.h"

namespace coffer::store {
namespace {

// https://sqlite.org/fileformat2.html
constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr uint32_t kWalMagic = 0x377f0682;  // its lowest bit set: checksums of big-endian words
constexpr size_t kWalWords = 8;             // the last two are the checksum of the others

Error Damaged(const std::string& what) {
  return HostFault("store.corrupt", "the store is damaged (" + what + ")",
                   "nothing runs until its files are restored; stop the daemon, restore the "
                   "state directory from a backup, start it again");
}

bool IsWalHeader(std::span<const uint32_t, kWalWords> raw) {
  const uint32_t magic = be32toh(raw[0]);
  if ((magic & ~1U) != kWalMagic) {
    return false;
  }
  const bool big = (magic & 1U) != 0;
  uint32_t one = 0, two = 0;
  for (size_t i = 0; i + 2 < kWalWords; i += 2) {
    one += (big ? be32toh(raw[i]) : le32toh(raw[i])) + two;
    two += (big ? be32toh(raw[i + 1]) : le32toh(raw[i + 1])) + one;
  }
  return one == be32toh(raw[kWalWords - 2]) && two == be32toh(raw[kWalWords - 1]);
}

bool IsWal(const Connection& db) {
  // Another process may be writing it at this moment, and no lock is taken for so little.
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    std::array<uint32_t, kWalWords> header{};
    const int64_t got =
        db.ReadStart(Connection::File::kWal,
                     std::span<char>(reinterpret_cast<char*>(header.data()), sizeof header));
    if (got == 0 || (got == sizeof header && IsWalHeader(header))) {
      return true;  // empty: everything is in the database
    }
  }
  return false;
}

}  // namespace

Result<StoreFiles> StoreFiles::Open(const std::string& directory) {
  StoreFiles files;
  files.database_ = directory + "/coffer.db";
  files.log_ = files.database_ + "-wal";
  TRY_ASSIGN(files.database_place_, Look(files.database_));
  TRY_ASSIGN(files.log_place_, Look(files.log_));
  TRY_ASSIGN(files.wal_, sys::Open(files.log_, O_RDONLY | O_NOFOLLOW));
  return files;
}

Result<StoreFiles::Place> StoreFiles::Look(const std::string& path) {
  struct stat info{};
  const long answer = raw::Syscall(SYS_newfstatat, AT_FDCWD, raw::Arg(path.c_str()),
                                   raw::Arg(&info), AT_SYMLINK_NOFOLLOW);
  if (answer < 0) {
    return sys::ErrnoError("store.open", "cannot look at " + path, answer);
  }
  return Place{info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size)};
}

Status StoreFiles::CheckPlace(const std::string& path, const Place& opened) {
  const Result<Place> now = Look(path);
  if (!now.ok()) {
    return Damaged(now.error().message);
  }
  if (!now->IsAt(opened)) {
    return Damaged(path + " is another file than the one that was opened");
  }
  return {};
}

uint64_t StoreFiles::Size() const {
  const Result<Place> now = Look(database_);
  return now.ok() ? now->size : 0;
}

Status StoreFiles::Check(const Connection& db) const {
  TRY(CheckPlace(database_, database_place_));
  TRY(CheckPlace(log_, log_place_));
  std::array<char, kMagic.size()> start{};
  if (db.ReadStart(Connection::File::kDatabase, start) < 0 ||
      std::string_view(start.data(), start.size()) != kMagic) {
    return Damaged(database_ + " does not begin like a database");
  }
  if (!IsWal(db)) {
    return Damaged(log_ + " does not begin like a write-ahead log");
  }
  return {};
}

}  // namespace coffer::store
