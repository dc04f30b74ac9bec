// SPDX-License-Identifier: Apache-2.0
#include "output/relay.h"

#include <errno.h>
#include <limits.h>
#include <sys/syscall.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/sys.h"

namespace coffer::output {

using raw::Arg;
using raw::Syscall;

void Relay::Take(const char* data, size_t size) {
  budget_->produced += size;
  const uint64_t room = budget_->cap - budget_->delivered;
  const size_t kept = static_cast<size_t>(std::min<uint64_t>(room, size));
  budget_->delivered += kept;
  if (hashing_) {
    hash_.Update({data, kept});
  }
  if (kept_.size() < keeps_) {
    kept_.append(data, std::min(kept, keeps_ - kept_.size()));
  }
  if (!reader_gone_) {
    pending_.append(data, kept);
    if (kept < size && budget_->marks && !marked_) {
      marked_ = true;
      pending_ += "\n[coffer: output truncated at " + FormatSize(budget_->cap) + "]\n";
    }
  }
}

void Relay::OnReadable() {
  std::array<char, 65536> buffer;
  const long got = Syscall(SYS_read, from_.get(), Arg(buffer.data()), buffer.size());
  if (got > 0) {
    Take(buffer.data(), static_cast<size_t>(got));
  } else if (got != -EAGAIN && got != -EINTR) {
    if (got < 0 && got != -EIO) {  // EIO is how a terminal says that its other end is closed
      error_ = static_cast<int>(-got);
    }
    from_.Reset();
  }
}

void Relay::OnWritable() {
  const size_t size = std::min<size_t>(pending_.size(), PIPE_BUF);
  const long wrote = Syscall(SYS_write, to_, Arg(pending_.data()), static_cast<long>(size));
  if (wrote > 0) {
    pending_.erase(0, static_cast<size_t>(wrote));
  } else if (wrote < 0 && wrote != -EAGAIN && wrote != -EINTR) {
    error_ = wrote == -EPIPE ? 0 : static_cast<int>(-wrote);
    DropReader();
  }
}

void Relay::DropReader() {
  reader_gone_ = true;
  pending_.clear();
  from_.Reset();  // the writer inside gets SIGPIPE, as it would without us
}

void Feed::OnReadable() {
  const long got = Syscall(SYS_read, from_, Arg(buffer_.data()), buffer_.size());
  if (got > 0) {
    size_ = static_cast<size_t>(got);
    at_ = 0;
    if (kept_.size() < keeps_) {
      kept_.append(buffer_.data(), std::min(size_, keeps_ - kept_.size()));
    }
  } else if (got != -EAGAIN && got != -EINTR) {
    Close();
  }
}

void Feed::OnWritable() {
  const long wrote =
      Syscall(SYS_write, to_.get(), Arg(buffer_.data() + at_), static_cast<long>(size_));
  if (wrote > 0) {
    at_ += static_cast<size_t>(wrote);
    size_ -= static_cast<size_t>(wrote);
  } else if (wrote < 0 && wrote != -EAGAIN && wrote != -EINTR) {
    reader_gone_ = true;
    Close();
  }
}

}  // namespace coffer::output
