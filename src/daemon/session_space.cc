// SPDX-License-Identifier: Apache-2.0
#include "daemon/session_space.h"

namespace coffer::daemon {
namespace {

constexpr uint64_t kBlock = 4096;

uint64_t WholeBlocks(uint64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

}  // namespace

struct SessionSpace::Part::Shared {
  struct Ledger {
    Room most;
    Room used;
    Room taken;  // by uploads under way
  };
  std::mutex mutex;
  std::map<std::string, Ledger> ledgers;  // of sessions with uploads

  static bool Take(Ledger& ledger, uint64_t bytes) {
    const uint64_t before = ledger.used.bytes + ledger.taken.bytes;
    if (before > ledger.most.bytes || bytes > ledger.most.bytes - before) {
      return false;
    }
    ledger.taken.bytes += bytes;
    return true;
  }
};

SessionSpace::SessionSpace() : shared_(std::make_shared<Part::Shared>()) {}
SessionSpace::~SessionSpace() = default;

std::unique_ptr<SessionSpace::Part> SessionSpace::Begin(const std::string& session,
                                                        const Room& most, const Room& used,
                                                        uint64_t bytes) {
  const std::lock_guard lock(shared_->mutex);
  Part::Shared::Ledger& ledger = shared_->ledgers[session];
  ledger.most = most;
  ledger.used = used;
  std::unique_ptr<Part> part(new Part(shared_, session));
  const uint64_t whole = WholeBlocks(bytes);
  const bool fits =
      used.files + ledger.taken.files < most.files && Part::Shared::Take(ledger, whole);
  if (!fits) {
    part->shared_.reset();  // it has nothing to give back
    if (ledger.taken.files == 0) {
      shared_->ledgers.erase(session);
    }
    return nullptr;
  }
  ++ledger.taken.files;
  part->taken_ = whole;
  return part;
}

bool SessionSpace::Part::Grow(uint64_t bytes) {
  const std::lock_guard lock(shared_->mutex);
  const uint64_t wanted = WholeBlocks(written_ + bytes);
  if (wanted > taken_) {
    if (!Shared::Take(shared_->ledgers[session_], wanted - taken_)) {
      return false;
    }
    taken_ = wanted;
  }
  written_ += bytes;
  return true;
}

void SessionSpace::Part::Keep() {
  const std::lock_guard lock(shared_->mutex);
  Shared::Ledger& ledger = shared_->ledgers[session_];
  ledger.used.bytes += taken_;
  ++ledger.used.files;
}

SessionSpace::Part::~Part() {
  if (shared_ == nullptr) {
    return;
  }
  const std::lock_guard lock(shared_->mutex);
  Shared::Ledger& ledger = shared_->ledgers[session_];
  ledger.taken.bytes -= taken_;
  if (--ledger.taken.files == 0) {
    shared_->ledgers.erase(session_);
  }
}

}  // namespace coffer::daemon
