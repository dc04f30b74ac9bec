// SPDX-License-Identifier: Apache-2.0
#include "audit/log/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "audit/log/log_lines.h"
#include "base/disk_wait.h"
#include "base/hash.h"
#include "base/regular_file.h"
#include "base/sys.h"

namespace coffer::audit {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr size_t kMostDroppedBytes =
    16 << 20;  // of a torn tail that are hashed and kept beside the log

Error Damaged(std::string message) {
  return HostFault(
      "audit.log.damaged", std::move(message),
      "run `coffer audit verify`; restore the log from a copy, or move its whole directory away");
}

Error Unwritable(const char* what, long answer) {
  Error error = sys::ErrnoError("audit.log", what, answer);
  error.hint =
      answer == -ENOSPC || answer == -EDQUOT
          ? "free some space in the state directory: nothing runs that cannot be recorded"
          : "look at the disk of the state directory: nothing runs that cannot be recorded";
  return error;
}

std::vector<std::string> HexOfAll(const std::vector<Hash>& hashes) {
  std::vector<std::string> all;
  all.reserve(hashes.size());
  for (const Hash& hash : hashes) {
    all.push_back(HexOf(hash));
  }
  return all;
}

}  // namespace

// The lock on the file, between processes. Polls, because waiting in the kernel could not be given up.
class LogFile::Turn {
 public:
  static Result<Turn> Take(int fd, Nanos timeout) {
    const Nanos give_up = BootTime() + timeout;
    for (long nap = 50'000;; nap = std::min(nap * 2, 1'000'000L)) {
      const long answer = Syscall(SYS_flock, fd, LOCK_EX | LOCK_NB);
      if (answer == 0) {
        return Turn(fd);
      }
      if (answer != -EWOULDBLOCK && answer != -EINTR) {
        return Unwritable("cannot lock the log", answer);
      }
      if (BootTime() > give_up) {
        return HostFault("audit.log", "another process keeps the log locked",
                         "find it with `fuser records` in the log directory");
      }
      const timespec pause{0, nap};
      ::nanosleep(&pause, nullptr);
    }
  }
  Turn(Turn&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Turn& operator=(Turn&&) = delete;
  ~Turn() {
    if (fd_ >= 0) {
      Syscall(SYS_flock, fd_, LOCK_UN);
    }
  }

 private:
  explicit Turn(int fd) : fd_(fd) {}
  int fd_;
};

Result<std::unique_ptr<LogFile>> LogFile::Open(const LogHome& home, const LogOptions& options,
                                               const LogFile* before) {
  std::unique_ptr<LogFile> file(new LogFile(home, options));
  TRY_ASSIGN(file->records_, OpenRecords(home.directory.get()));
  TRY_ASSIGN(const Turn turn, Turn::Take(file->records_.get(), options.busy_timeout));
  TRY(file->ReadHeader());
  TRY(file->FirstLook(before));
  if (!file->recovered_.empty()) {
    // If it cannot be written now, it goes before whatever can.
    const Result<std::vector<Appended>> said = file->WriteBatch({});
    (void)said.ok();
  }
  return file;
}

Status LogFile::ReadHeader() {
  std::string text(kHeaderPrefix.size() + kOriginPrefix.size() + 16 + 1, '\0');
  if (!ReadAt(records_.get(), text.data(), text.size(), 0).ok() || text.back() != '\n') {
    return Damaged("the log does not begin with its header");
  }
  text.pop_back();
  const std::optional<std::string> origin = ParseHeader(text);
  if (!origin) {
    return Damaged("the log does not begin with its header");
  }
  origin_ = *origin;
  tip_ = TailOfHeader(text);
  return {};
}

Status LogFile::FirstLook(const LogFile* before) {
  struct stat info{};
  const long answer = Syscall(SYS_fstat, records_.get(), Arg(&info));
  if (answer < 0) {
    return Unwritable("cannot look at the log", answer);
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  if (before != nullptr) {
    recovered_ = before->recovered_;
  }
  std::optional<LogTail> cached = before != nullptr ? std::optional(before->tip_)
                                                    : ReadTailCache(home_.directory.get(), origin_);
  if (cached) {
    // It is written after the batch is on disk, so it can be behind the log but never before it.
    if (!ConfirmTail(records_.get(), size, *cached)) {
      return Damaged(fmt::format("the log had {} records, and they are not there any more",
                                 cached->frontier.size()));
    }
    tip_ = std::move(*cached);
  }
  TRY(CatchUp());
  if (!tip_.last) {
    return Damaged("the log has no checkpoint");
  }
  if (!tip_.last->SignedBy(home_.signer.public_key(), origin_)) {
    return Damaged("the log's last checkpoint is not signed with its key");
  }
  return {};
}

// After it, tip_ is the end of the file.
Status LogFile::CatchUp() {
  struct stat info{};
  const long answer = Syscall(SYS_fstat, records_.get(), Arg(&info));
  if (answer < 0) {
    return Unwritable("cannot look at the log", answer);
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  if (info.st_nlink == 0) {
    broken_ = true;
    return Damaged("the log's file was removed");
  }
  if (size < tip_.end) {
    broken_ = true;
    return Damaged("the log was cut short");
  }
  if (size == tip_.end) {
    return {};
  }
  TRY_ASSIGN(FoundTails found, ReadForward(records_.get(), size, tip_));
  const PublicKey& key = home_.signer.public_key();
  LogTail& end =
      found.last.last && found.last.last->SignedBy(key, origin_) ? found.last : found.before;
  if (!end.last || !end.last->SignedBy(key, origin_)) {
    return Damaged("the log's last checkpoint is not signed with its key");
  }
  tip_ = std::move(end);
  return size == tip_.end ? Status() : CutTail(size);
}

// What stands behind the last valid checkpoint was never acknowledged: a crash left it, unless more batches follow.
Status LogFile::CutTail(uint64_t file_size) {
  TRY_ASSIGN(const bool more,
             HasLaterBatch(records_.get(), file_size, tip_, home_.signer.public_key(), origin_));
  if (more) {
    return Damaged(
        fmt::format("after record {}, byte {}, the log differs from the signed checkpoints",
                    tip_.frontier.size(), tip_.end));
  }
  const uint64_t dropped = file_size - tip_.end;
  std::string tail(std::min<uint64_t>(dropped, kMostDroppedBytes), '\0');
  TRY(ReadAt(records_.get(), tail.data(), tail.size(), tip_.end));
  // For inspection only: the disk may be full, and the file is not needed.
  const std::string name = fmt::format("dropped.{}.{}", tip_.end, WallTime().count());
  (void)MakeLogFile(home_.directory.get(), name, tail, 0600).ok();
  EventRecord event;
  event.name = "log.recovered";
  event.detail = {{"bytes", static_cast<int64_t>(dropped)}, {"sha256", HashOf(tail)}};
  TRY_ASSIGN(LeafText leaf, FormatLeaf(event));
  if (options_.recovering) {
    TRY(options_.recovering(event));
  }
  const long answer = Syscall(SYS_ftruncate, records_.get(), static_cast<long>(tip_.end));
  if (answer < 0) {
    return Unwritable("cannot cut off what a crash left in the log", answer);
  }
  recovered_.push_back(std::move(leaf));
  return {};
}

Result<std::vector<Appended>> LogFile::Append(std::span<const LeafText* const> leaves) {
  TRY_ASSIGN(const Turn turn, Turn::Take(records_.get(), options_.busy_timeout));
  TRY(CatchUp());
  return WriteBatch(leaves);
}

Result<Checkpoint> LogFile::Newest() {
  TRY_ASSIGN(const Turn turn, Turn::Take(records_.get(), options_.busy_timeout));
  TRY(CatchUp());
  return *tip_.last;
}

Result<uint64_t> LogFile::End() {
  TRY_ASSIGN(const Turn turn, Turn::Take(records_.get(), options_.busy_timeout));
  TRY(CatchUp());
  return tip_.end;
}

Result<std::vector<Appended>> LogFile::WriteBatch(std::span<const LeafText* const> leaves) {
  std::vector<const LeafText*> all;
  all.reserve(recovered_.size() + leaves.size());
  for (const LeafText& owed : recovered_) {
    all.push_back(&owed);
  }
  all.insert(all.end(), leaves.begin(), leaves.end());

  const uint64_t first = tip_.frontier.size();
  std::vector<std::string> lines;
  std::vector<Hash> hashes;
  Frontier frontier = tip_.frontier;
  std::string text;
  for (const LeafText* leaf : all) {
    lines.push_back(leaf->Line(first + lines.size()));
    hashes.push_back(LeafHash(lines.back()));
    frontier.Append(hashes.back());
    text += lines.back() + "\n";
  }
  const BatchTree tree(tip_.frontier, hashes);
  const Checkpoint checkpoint =
      SignCheckpoint(home_.signer, origin_, tree.size(), tree.root(), tip_.last_line);
  const std::string line = checkpoint.Line();
  text += line + "\n";
  TRY(WriteDurably(text));

  tip_ = {tip_.end + text.size(), std::move(frontier), checkpoint, LineHash(line)};
  KeepTip();
  std::vector<Appended> answers;
  const std::string root = HexOf(tree.root());
  for (size_t i = recovered_.size(); i < lines.size(); ++i) {
    answers.push_back(
        {{first + i, tree.size(), root}, std::move(lines[i]), HexOfAll(tree.Proof(first + i))});
  }
  recovered_.clear();
  return answers;
}

Status LogFile::WriteDurably(const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const long wrote =
        Syscall(SYS_pwrite64, records_.get(), Arg(text.data() + done),
                static_cast<long>(text.size() - done), static_cast<long>(tip_.end + done));
    if (wrote == -EINTR) {
      continue;
    }
    if (wrote <= 0) {
      GoBack();
      return Unwritable("cannot write to the log", wrote == 0 ? -EIO : wrote);
    }
    done += static_cast<size_t>(wrote);
  }
  if (options_.fsync) {
    const DiskWait wait;
    const long synced = Syscall(SYS_fdatasync, records_.get());
    if (synced < 0) {
      // The kernel reports a lost page once and then calls it clean: this descriptor is not believed again.
      GoBack();
      broken_ = true;
      return Unwritable("cannot sync the log", synced);
    }
  }
  return {};
}

void LogFile::GoBack() {
  if (Syscall(SYS_ftruncate, records_.get(), static_cast<long>(tip_.end)) < 0) {
    broken_ = true;
  }
}

// Not synced and not needed: without it, opening reads the whole log.
void LogFile::KeepTip() {
  if (!cache_.valid()) {
    const std::string name = "tree";
    Result<UniqueFd> file = sys::OpenRegularAt(home_.directory.get(), name, O_WRONLY | O_NOFOLLOW);
    if (!file.ok()) {
      (void)MakeLogFile(home_.directory.get(), name, "", 0600).ok();
      file = sys::OpenRegularAt(home_.directory.get(), name, O_WRONLY | O_NOFOLLOW);
    }
    if (!file.ok()) {
      return;
    }
    cache_ = std::move(file).value();
  }
  const std::string text = FormatTailCache(tip_, origin_);
  Syscall(SYS_pwrite64, cache_.get(), Arg(text.data()), static_cast<long>(text.size()), 0);
}

}  // namespace coffer::audit
