// SPDX-License-Identifier: Apache-2.0
#include "audit/log/verify_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "audit/log/checkpoint.h"
#include "audit/log/merkle.h"
#include "audit/log/verify_log_calls.h"
#include "audit/log/verify_log_chunks.h"
#include "base/regular_file.h"
#include "base/sys.h"

namespace coffer::audit {
namespace {

// Goes through the lines in order and keeps what the next one depends on.
class Judge {
 public:
  Judge(const VerifyOptions& options, PublicKey key, const std::optional<Note>& kept)
      : options_(options), key_(std::move(key)), kept_(kept) {
    verdict_.key_id = key_.id();
  }

  void Line(const ScannedLine& line) {
    ++line_;
    if (line_ == 1) {
      Header(line);
    } else if (line.kind == ScannedLine::Kind::kLeaf) {
      Leaf(line);
    } else if (line.kind == ScannedLine::Kind::kCheckpoint) {
      SeeCheckpoint(line);
    } else {
      Find("log.line", "is neither a record nor a checkpoint");
    }
  }

  LogVerdict End(uint64_t rest) {
    if (rest > 0 || line_ == 0) {
      ++line_;
      Find(line_ == 1 ? "log.header" : "log.line", "the file ends in the middle of a line");
    }
    if (last_) {
      if (!last_->SignedBy(key_, verdict_.origin)) {
        FindAt(
            last_at_, "log.signature",
            fmt::format("the last checkpoint is not signed with key {} for this log", key_.id()));
      }
      verdict_.size = last_->size;
      verdict_.root = HexOf(last_->root);
    } else {
      FindAt(0, "log.checkpoint", "there is no checkpoint");
    }
    if (leaves_since_ > 0) {
      FindAt(0, "log.tail",
             fmt::format("{} records stand behind the last checkpoint", leaves_since_));
    }
    Kept();
    return std::move(verdict_);
  }

 private:
  void Find(const char* code, std::string message, std::optional<uint64_t> seq = std::nullopt) {
    FindAt(line_, code, std::move(message), seq);
  }
  void FindAt(uint64_t line, std::string code, std::string message,
              std::optional<uint64_t> seq = std::nullopt) {
    if (verdict_.findings.size() >= options_.max_findings) {
      verdict_.more_findings = true;
      return;
    }
    verdict_.findings.push_back({line, seq, std::move(code), std::move(message)});
  }

  void Header(const ScannedLine& line) {
    const std::optional<std::string> origin = ParseHeader(line.text);
    if (!origin) {
      Find("log.header", "the first line is not the header of a log");
    }
    verdict_.origin = origin.value_or("");
    prev_ = LineHash(line.text);
  }

  void Leaf(const ScannedLine& line) {
    frontier_.Append(line.hash);
    ++verdict_.records;
    ++leaves_since_;
    if (kept_ && frontier_.size() == kept_->checkpoint.size) {
      root_at_kept_ = frontier_.Root();
    }
    if (line.problem != nullptr) {
      Find("log.line", fmt::format("a record that cannot be read: {}", line.problem), next_seq_);
      ++next_seq_;
      return;
    }
    const LeafFacts& facts = line.facts;
    Sequence(facts.seq);
    if (const char* problem = calls_.See(facts); problem != nullptr) {
      Find(facts.kind == LeafFacts::Kind::kReceipt && calls_.repeated() ? "log.receipt"
                                                                        : "log.decision",
           fmt::format("call {}: {}", facts.call, problem), facts.seq);
    }
    if (options_.on_record) {
      LeafFacts known = facts;
      known.ended_before = calls_.ended_before();
      if (std::optional<LogFinding> found = options_.on_record(known)) {
        FindAt(line_, std::move(found->code), std::move(found->message), facts.seq);
      }
    }
  }

  void Sequence(uint64_t seq) {
    if (seq > next_seq_) {
      Find("log.seq",
           fmt::format("record {} follows, {} was expected: {} missing", seq, next_seq_,
                       seq - next_seq_),
           seq);
    } else if (seq < next_seq_) {
      Find("log.seq",
           fmt::format("record {} stands where {} was expected: twice, or out of order", seq,
                       next_seq_),
           seq);
    }
    next_seq_ = seq + 1;
  }

  void SeeCheckpoint(const ScannedLine& line) {
    ++verdict_.checkpoints;
    std::optional<Checkpoint> read = ParseCheckpointLine(line.text);
    const Hash prev = std::exchange(prev_, line.hash);
    if (!read) {
      Find("log.checkpoint", "a checkpoint that cannot be read");
      return;
    }
    if (read->prev != prev) {
      Find("log.chain", "the checkpoint does not follow the one before it");
    }
    const int64_t drift = static_cast<int64_t>(read->size - verdict_.records);
    if (drift != drift_) {
      Find("log.size", fmt::format("the checkpoint is for {} records, {} stand before it",
                                   read->size, verdict_.records));
      drift_ = drift;
    } else if (last_ && read->size <= last_->size) {
      Find("log.size", "the checkpoint is for no more records than the one before it");
    }
    if (roots_hold_ && read->root != frontier_.Root()) {
      Find("log.root", fmt::format("records {} to {} differ from the signed checkpoint",
                                   last_ ? last_->size : 0, read->size - 1));
      roots_hold_ = false;  // nor can any later one be right
    }
    leaves_since_ = 0;
    last_ = std::move(read);
    last_at_ = line_;
  }

  void Kept() {
    if (!kept_) {
      return;
    }
    const Checkpoint& kept = kept_->checkpoint;
    if (!kept.SignedBy(key_, kept_->origin)) {
      FindAt(0, "log.kept",
             fmt::format("the kept checkpoint is not signed with key {}", key_.id()));
    } else if (kept_->origin != verdict_.origin) {
      FindAt(0, "log.kept",
             fmt::format("the kept checkpoint is of another log, {}", kept_->origin));
    } else if (kept.size > (last_ ? last_->size : 0)) {
      FindAt(0, "log.kept",
             fmt::format("the log had {} records when the checkpoint was kept: some are gone",
                         kept.size));
    } else if ((kept.size == 0 ? Frontier().Root() : root_at_kept_) != kept.root) {
      FindAt(0, "log.kept",
             fmt::format(
                 "the first {} records are not those of the kept checkpoint: the log was rewritten",
                 kept.size));
    }
  }

  const VerifyOptions& options_;
  const PublicKey key_;
  const std::optional<Note>& kept_;
  LogVerdict verdict_;
  uint64_t line_ = 0;

  Frontier frontier_;
  uint64_t next_seq_ = 0;
  uint64_t leaves_since_ = 0;
  int64_t drift_ = 0;       // of what checkpoints say to what is there
  bool roots_hold_ = true;  // until the first that does not
  Hash prev_{};
  std::optional<Checkpoint> last_;
  uint64_t last_at_ = 0;
  CallBook calls_;
  std::optional<Hash> root_at_kept_;
};

Error Unreadable(Error error) {
  error.code = "audit.verify";
  return error;
}

// The end of the last batch: no process is in the middle of one while the lock is held.
Result<uint64_t> SizeBetweenBatches(int fd) {
  for (int i = 0; i < 1000 && raw::Syscall(SYS_flock, fd, LOCK_SH | LOCK_NB) < 0; ++i) {
    const timespec pause{0, 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
  struct stat info{};
  const long answer = raw::Syscall(SYS_fstat, fd, raw::Arg(&info));
  raw::Syscall(SYS_flock, fd, LOCK_UN);
  if (answer < 0) {
    return sys::ErrnoError("audit.verify", "cannot look at the log", answer);
  }
  if (!S_ISREG(info.st_mode)) {
    return Refused("audit.verify", "the log's `records` is not a file");
  }
  return static_cast<uint64_t>(info.st_size);
}

Result<PublicKey> KeyFor(const std::string& directory, const VerifyOptions& options) {
  if (options.key) {
    return *options.key;
  }
  Result<std::string> text = sys::ReadRegular(directory + "/key.pub", 4096);
  if (!text.ok()) {
    Error error = Unreadable(text.error());
    error.hint = "give the public key with --key FILE";
    return error;
  }
  return PublicKey::Parse(*text);
}

Result<UniqueFd> OpenToRead(const std::string& directory) {
  Result<UniqueFd> file = sys::OpenRegular(directory + "/records", O_RDONLY);
  if (!file.ok()) {
    return Unreadable(file.error());
  }
  return file;
}

}  // namespace

Status ReadNewRecords(const std::string& directory, uint64_t bytes,
                      const std::function<void(const LeafFacts&)>& on_record) {
  TRY_ASSIGN(const UniqueFd file, OpenToRead(directory));
  TRY_ASSIGN(const uint64_t size, SizeBetweenBatches(file.get()));
  ChunkScanner chunks(file.get(), std::min(bytes, size), size, 1);
  for (;;) {
    Result<std::unique_ptr<ScannedChunk>> chunk = chunks.Next();
    if (!chunk.ok()) {
      return Unreadable(chunk.error());
    }
    if (*chunk == nullptr) {
      return {};
    }
    for (const ScannedLine& line : (*chunk)->lines) {
      if (line.kind == ScannedLine::Kind::kLeaf && line.problem == nullptr) {
        on_record(line.facts);
      }
    }
  }
}

Result<LogVerdict> VerifyLog(const std::string& directory, const VerifyOptions& options) {
  TRY_ASSIGN(PublicKey key, KeyFor(directory, options));
  std::optional<Note> kept;
  if (options.kept_checkpoint) {
    TRY_ASSIGN(kept, ParseNote(*options.kept_checkpoint));
  }
  TRY_ASSIGN(const UniqueFd file, OpenToRead(directory));
  TRY_ASSIGN(const uint64_t size, SizeBetweenBatches(file.get()));
  const int processors = static_cast<int>(std::thread::hardware_concurrency());
  ChunkScanner chunks(file.get(), 0, size,
                      options.threads > 0 ? options.threads : std::clamp(processors, 1, 8));
  Judge judge(options, std::move(key), kept);
  for (;;) {
    Result<std::unique_ptr<ScannedChunk>> chunk = chunks.Next();
    if (!chunk.ok()) {
      return Unreadable(chunk.error());
    }
    if (*chunk == nullptr) {
      LogVerdict verdict = judge.End(chunks.rest());
      verdict.bytes = size - chunks.rest();
      return verdict;
    }
    for (const ScannedLine& line : (*chunk)->lines) {
      judge.Line(line);
    }
  }
}

}  // namespace coffer::audit
