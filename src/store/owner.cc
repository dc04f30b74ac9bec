// SPDX-License-Identifier: Apache-2.0
#include "store/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/sys.h"

namespace coffer::store {
namespace {

constexpr std::string_view kNote = "coffer.db is here\n";

struct flock ByteLock(int64_t byte) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

// 0, or -errno.
long TryLock(int file, int64_t byte, int16_t type = F_WRLCK) {
  struct flock lock = ByteLock(byte);
  lock.l_type = type;
  // Of the open file, not of the process (fcntl(2), Linux 3.15): another descriptor of the same
  // file that is closed anywhere in the process does not drop it.
  return raw::Syscall(SYS_fcntl, file, F_OFD_SETLK, raw::Arg(&lock));
}

}  // namespace

Result<Owner> Owner::Open(int directory, Nanos timeout) {
  TRY_ASSIGN(UniqueFd file, sys::OpenAt(directory, "owners", O_RDWR | O_NOFOLLOW));
  const Nanos give_up = BootTime() + timeout;
  for (;;) {
    const long answer = TryLock(file.get(), 0);
    if (answer == 0) {
      return Owner(std::move(file));
    }
    if (answer != -EAGAIN && answer != -EACCES && answer != -EINTR) {
      return sys::ErrnoError("store.lock", "cannot lock the state directory's owners", answer);
    }
    if (BootTime() > give_up) {
      return HostFault("store.busy", "another process has been opening the store for too long",
                       "look for a process that hangs with the file owners open");
    }
    const timespec nap{0, 500'000};
    ::nanosleep(&nap, nullptr);
  }
}

Status Owner::TakeNumber() {
  for (int attempt = 0; attempt < 8; ++attempt) {
    uint64_t random = 0;
    const long got = raw::Syscall(SYS_getrandom, raw::Arg(&random), sizeof(random), 0);
    if (got != static_cast<long>(sizeof(random))) {
      return sys::ErrnoError("store.random", "the kernel gave no random bytes",
                             got < 0 ? got : -EIO);
    }
    const auto number = static_cast<int64_t>(random >> 2);  // below 2^62: the lock's end must fit
    const long answer = number > 0 ? TryLock(file_.get(), number) : -EAGAIN;
    if (answer == 0) {
      number_ = number;
      return {};
    }
    if (answer != -EAGAIN && answer != -EACCES) {
      return sys::ErrnoError("store.lock", "cannot lock the state directory's owners", answer);
    }
  }
  return Internal("store.lock", "no free number among the store's owners");
}

Status Owner::EndOpening() {
  const long answer = TryLock(file_.get(), 0, F_UNLCK);
  if (answer < 0) {
    return sys::ErrnoError("store.lock", "cannot unlock the state directory's owners", answer);
  }
  return {};
}

Result<bool> Owner::IsHeld(int64_t number) const {
  if (number == number_) {
    return true;
  }
  struct flock lock = ByteLock(number);
  const long answer = raw::Syscall(SYS_fcntl, file_.get(), F_OFD_GETLK, raw::Arg(&lock));
  if (answer < 0) {
    return sys::ErrnoError("store.lock", "cannot ask for the store's owners", answer);
  }
  return lock.l_type != F_UNLCK;
}

Result<bool> Owner::HadDatabase() const {
  char first = 0;
  const long got = raw::Syscall(SYS_pread64, file_.get(), raw::Arg(&first), 1, 0);
  if (got < 0) {
    return sys::ErrnoError("store.open", "cannot read the state directory's owners", got);
  }
  return got == 1;
}

Status Owner::NoteDatabase() {
  const long wrote = raw::Syscall(SYS_pwrite64, file_.get(), raw::Arg(kNote.data()),
                                  static_cast<long>(kNote.size()), 0);
  if (wrote != static_cast<long>(kNote.size())) {
    return sys::ErrnoError("store.open", "cannot write the state directory's owners",
                           wrote < 0 ? wrote : -ENOSPC);
  }
  return {};
}

}  // namespace coffer::store
