// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/lock_server.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "base/sys.h"
#include "base/unique_fd.h"
#include "isolation/seccomp/waiting_thread.h"

namespace coffer::isolation {
namespace {

using raw::Syscall;
using std::chrono::milliseconds;

// Between two tries: a lock is often held for a moment, and sometimes for hours.
constexpr int kQuickTries = 100;
constexpr milliseconds kQuick{1};
constexpr milliseconds kSlow{10};

}  // namespace

// One lock that is asked for.
struct LockServer::Work {
  seccomp_notif request{};
  UniqueFd file;  // a duplicate of the payload's
  int tries = 0;
};

struct LockServer::Shared {
  MayWrite may_write;
  UniqueFd listener;  // a duplicate, of the first call that waits on

  std::mutex mutex;  // of what follows
  std::condition_variable more;
  std::list<Work> waiting;
  uint64_t refused = 0;
  size_t open = 0;  // that have no answer yet
  bool ending = false;

  // The answer for the payload; nothing if it has to be tried again.
  std::optional<long> Try(Work& work);
  void TryAll(std::list<Work>& tried);
  void Run();
};

bool OnWritableMount(int file) {
  struct statfs system{};
  struct stat info{};
  if (Syscall(SYS_fstatfs, file, raw::Arg(&system)) < 0 ||
      Syscall(SYS_fstat, file, raw::Arg(&info)) < 0 || (system.f_flags & ST_RDONLY) != 0) {
    return false;
  }
  // /dev/null and its like can be written, and are the host's; a terminal is the boundary's own.
  return !S_ISCHR(info.st_mode) || system.f_type == DEVPTS_SUPER_MAGIC;
}

LockServer::LockServer(MayWrite may_write) : shared_(std::make_shared<Shared>()) {
  shared_->may_write = std::move(may_write);
}

LockServer::~LockServer() {
  const std::lock_guard lock(shared_->mutex);
  shared_->ending = true;
  shared_->waiting.clear();
  shared_->more.notify_all();
}

uint64_t LockServer::TakeRefused() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->refused, 0);
}

std::optional<long> LockServer::Take(int notify_fd, const seccomp_notif& request) {
  WaitingThread caller(notify_fd, request);
  Work work;
  work.request = request;
  const long file = caller.Duplicate(static_cast<int>(request.data.args[0]));
  if (file < 0) {
    return file == -EBADF ? std::optional<long>(file) : std::nullopt;
  }
  work.file = UniqueFd(static_cast<int>(file));
  if (!caller.StillWaits()) {
    return 0;  // the descriptor may have been another's
  }
  if (!shared_->listener.valid()) {
    const long listener = Syscall(SYS_fcntl, notify_fd, F_DUPFD_CLOEXEC, 3);
    if (listener < 0) {
      return -ENOLCK;
    }
    shared_->listener = UniqueFd(static_cast<int>(listener));
    // Detached: a file system that hangs must not hold up the end of a call. The thread keeps what it uses alive.
    std::thread([shared = shared_] { shared->Run(); }).detach();
  }
  const std::lock_guard lock(shared_->mutex);
  if (shared_->open >= kMostWaiting) {
    return -ENOLCK;
  }
  ++shared_->open;
  shared_->waiting.push_back(std::move(work));
  shared_->more.notify_one();
  return 0;
}

std::optional<long> LockServer::Shared::Try(Work& work) {
  if (work.tries++ == 0 && !may_write(work.file.get())) {
    const std::lock_guard lock(mutex);
    ++refused;
    return -EROFS;
  }
  const auto operation = static_cast<int>(work.request.data.args[1]);
  const long made = Syscall(SYS_flock, work.file.get(), operation | LOCK_NB);
  if (made != -EWOULDBLOCK || (operation & LOCK_NB) != 0) {
    return made;
  }
  const WaitingThread caller(listener.get(), work.request);
  return caller.HasSignal() ? std::optional<long>(-EINTR) : std::nullopt;
}

// What has its answer is taken off the list.
void LockServer::Shared::TryAll(std::list<Work>& tried) {
  for (auto work = tried.begin(); work != tried.end();) {
    const WaitingThread caller(listener.get(), work->request);
    if (!caller.StillWaits()) {
      work = tried.erase(work);
      continue;
    }
    const std::optional<long> answer = Try(*work);
    if (!answer) {
      ++work;
      continue;
    }
    if (!AnswerCall(listener.get(), work->request.id, *answer) && *answer == 0) {
      // The caller left meanwhile. Others may have the same open file, and none of them asked.
      (void)Syscall(SYS_flock, work->file.get(), LOCK_UN);
    }
    work = tried.erase(work);
  }
}

void LockServer::Shared::Run() {
  std::list<Work> tried;
  std::unique_lock lock(mutex);
  while (!ending) {
    if (tried.empty()) {
      more.wait(lock, [&] { return ending || !waiting.empty(); });
    } else {
      // Those that came last are tried often.
      const milliseconds pause = tried.back().tries < kQuickTries ? kQuick : kSlow;
      more.wait_for(lock, pause, [&] { return ending || !waiting.empty(); });
    }
    tried.splice(tried.end(), waiting);
    lock.unlock();
    TryAll(tried);
    lock.lock();
    open = tried.size() + waiting.size();
  }
}

}  // namespace coffer::isolation
