// SPDX-License-Identifier: Apache-2.0
#include "audit/log/log.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "audit/log/log_file.h"
#include "audit/log/log_home.h"
#include "base/disk_wait.h"

namespace coffer::audit {
namespace {

constexpr size_t kMostLeavesOfBatch = 1024;

}  // namespace

struct Log::Impl {
  // One thread inside Append.
  struct Waiter {
    LeafText leaf;
    std::optional<Result<Appended>> answer;
  };

  Impl(LogHome its_home, LogOptions its_options)
      : home(std::move(its_home)), options(std::move(its_options)) {}

  // The first thread that finds the file free writes the leaves of all that wait; the others wait
  // for their answer or turn.
  Result<Appended> Append(Result<LeafText> leaf, const std::string& tenant) {
    if (!leaf.ok()) {
      return leaf.error();
    }
    const Nanos began = BootTime();
    Waiter me{std::move(leaf).value(), std::nullopt};
    std::unique_lock lock(mutex);
    waiting.push_back(&me);
    while (!me.answer) {
      if (busy) {
        const DiskWait wait;  // until another thread has written
        turn.wait(lock);
        continue;
      }
      busy = true;
      std::vector<Waiter*> batch = TakeBatch();
      lock.unlock();
      Write(batch);
      lock.lock();
      busy = false;
      turn.notify_all();
    }
    lock.unlock();
    if (options.appended && me.answer->ok()) {
      options.appended(tenant, BootTime() - began, (*me.answer)->position.size);
    }
    return *std::move(me.answer);
  }

  // What the file answers to `ask`, while no thread appends.
  template <typename Answer>
  Result<Answer> Ask(Result<Answer> (LogFile::*ask)()) {
    std::unique_lock lock(mutex);
    turn.wait(lock, [&] { return !busy; });
    busy = true;
    lock.unlock();
    Result<Answer> answer = [&]() -> Result<Answer> {
      TRY(Reopen());
      return (file.get()->*ask)();
    }();
    lock.lock();
    busy = false;
    turn.notify_all();
    return answer;
  }

  std::vector<Waiter*> TakeBatch() {
    const size_t count = std::min(waiting.size(), kMostLeavesOfBatch);
    const auto end = waiting.begin() + static_cast<std::ptrdiff_t>(count);
    std::vector<Waiter*> batch(waiting.begin(), end);
    waiting.erase(waiting.begin(), end);
    return batch;
  }

  // Only while busy. The answers are read under the mutex, after it.
  void Write(const std::vector<Waiter*>& batch) {
    std::vector<const LeafText*> leaves;
    leaves.reserve(batch.size());
    for (const Waiter* waiter : batch) {
      leaves.push_back(&waiter->leaf);
    }
    Result<std::vector<Appended>> answers = [&]() -> Result<std::vector<Appended>> {
      TRY(Reopen());
      return file->Append(leaves);
    }();
    for (size_t i = 0; i < batch.size(); ++i) {
      if (answers.ok()) {
        batch[i]->answer.emplace(std::move((*answers)[i]));
      } else {
        batch[i]->answer.emplace(answers.error());
      }
    }
  }

  // After a failure of the disk; otherwise nothing.
  Status Reopen() {
    if (!file->broken()) {
      return {};
    }
    file->Close();
    TRY_ASSIGN(std::unique_ptr<LogFile> fresh, LogFile::Open(home, options, file.get()));
    if (fresh->origin() != origin) {
      return HostFault("audit.log.damaged", "the log was replaced by another one",
                       "start the program again if that was you");
    }
    file = std::move(fresh);
    return {};
  }

  const LogHome home;
  const LogOptions options;
  std::string origin;

  std::mutex mutex;
  std::condition_variable turn;
  std::vector<Waiter*> waiting;
  bool busy = false;              // a thread uses `file`
  std::unique_ptr<LogFile> file;  // never null
};

Log::Log(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Log::Log(Log&&) noexcept = default;
Log& Log::operator=(Log&&) noexcept = default;
Log::~Log() = default;

Result<Log> Log::Open(const std::string& directory, LogOptions options) {
  TRY_ASSIGN(LogHome home, OpenLogHome(directory));
  auto impl = std::make_unique<Impl>(std::move(home), std::move(options));
  TRY_ASSIGN(impl->file, LogFile::Open(impl->home, impl->options));
  impl->origin = impl->file->origin();
  return Log(std::move(impl));
}

Result<Appended> Log::Append(const DecisionRecord& record) {
  return impl_->Append(FormatLeaf(record), record.identity.tenant.name());
}
Result<Appended> Log::Append(const ReceiptRecord& record) {
  return impl_->Append(FormatLeaf(record), record.identity.tenant.name());
}
Result<Appended> Log::Append(const EventRecord& record) {
  return impl_->Append(FormatLeaf(record), record.tenant);
}

Result<std::string> Log::Checkpoint() {
  TRY_ASSIGN(const audit::Checkpoint newest, impl_->Ask(&LogFile::Newest));
  return newest.Note(impl_->origin);
}

Status Log::FindRecords(CallRecordsByKey& sought, Nanos since) const {
  TRY_ASSIGN(const uint64_t end, impl_->Ask(&LogFile::End));
  TRY_ASSIGN(const UniqueFd records, OpenRecords(impl_->home.directory.get()));
  return ReadCallRecords(records.get(), end, since, sought);
}

const std::string& Log::origin() const { return impl_->origin; }
const PublicKey& Log::public_key() const { return impl_->home.signer.public_key(); }
std::string Log::Sign(std::string_view bytes) const { return impl_->home.signer.Sign(bytes); }

}  // namespace coffer::audit
