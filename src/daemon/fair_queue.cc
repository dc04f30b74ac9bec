// SPDX-License-Identifier: Apache-2.0
#include "daemon/fair_queue.h"

#include <time.h>

#include <algorithm>
#include <utility>

namespace coffer::daemon {
namespace {

// What a task costs at least: the loop's part of it, which is not measured.
constexpr std::chrono::microseconds kLeast{50};

}  // namespace

std::chrono::nanoseconds ThreadCpuTime() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

bool FairQueue::Add(const Lane& lane, FairTask task) {
  {
    const std::lock_guard lock(mutex_);
    Tenant& tenant = tenants_[lane.tenant];
    const auto key = tenant.keys.find(lane.key);
    const size_t of_key = key == tenant.keys.end() ? 0 : key->second.size();
    if (waiting_ >= limits_.requests || tenant.waiting >= limits_.requests - waiting_ ||
        of_key >= limits_.requests_per_key) {
      ++refused_;
      ForgetIfIdle(lane.tenant);
      return false;
    }
    if (of_key == 0) {
      tenant.turns.push_back(lane.key);
    }
    tenant.keys[lane.key].push_back(std::move(task));
    ++tenant.waiting;
    ++waiting_;
    Queue(lane.tenant, tenant);
  }
  wake_.notify_one();
  return true;
}

void FairQueue::AddAlways(const Lane& lane, std::function<void()> run) {
  {
    const std::lock_guard lock(mutex_);
    Tenant& tenant = tenants_[lane.tenant];
    tenant.always.push_back(std::move(run));
    Queue(lane.tenant, tenant);
  }
  wake_.notify_one();
}

void FairQueue::Queue(const std::string& name, Tenant& tenant) {
  if (!std::exchange(tenant.queued, true)) {
    tenant.used = std::max(tenant.used, reached_);
    turns_.push_back(name);
  }
}

// One thread is always left to a tenant that has none, as long as there is one. A tenant whose answers are not read waits.
bool FairQueue::MayStart(const Tenant& tenant) const {
  const bool has_room = tenant.answers <= limits_.bytes - std::min(bytes_, limits_.bytes) ||
                        tenant.answers == 0 || stopping_;
  return free_ > tenant.running && (!tenant.always.empty() || (tenant.waiting > 0 && has_room));
}

// Of those that may start, the one that has used least; the first of equals.
std::deque<std::string>::iterator FairQueue::FindNext() {
  auto best = turns_.end();
  std::chrono::nanoseconds least{0};
  for (auto at = turns_.begin(); at != turns_.end(); ++at) {
    const Tenant& tenant = tenants_.at(*at);
    if (MayStart(tenant) && (best == turns_.end() || tenant.used < least)) {
      best = at;
      least = tenant.used;
    }
  }
  return best;
}

FairTask FairQueue::TakeTask(Tenant& tenant) {
  FairTask task;
  if (!tenant.always.empty()) {
    task.run = std::move(tenant.always.front());
    tenant.always.pop_front();
    return task;
  }
  const std::string key = std::move(tenant.turns.front());
  tenant.turns.pop_front();
  const auto queue = tenant.keys.find(key);
  task = std::move(queue->second.front());
  queue->second.pop_front();
  if (queue->second.empty()) {
    tenant.keys.erase(queue);
  } else {
    tenant.turns.push_back(key);
  }
  --tenant.waiting;
  --waiting_;
  return task;
}

// The next task, taken out of its queue; tasks whose client is gone are dropped on the way, outside the lock.
bool FairQueue::Next(std::unique_lock<std::mutex>& lock, std::string* name,
                     std::function<void()>* run) {
  for (auto next = FindNext(); next != turns_.end(); next = FindNext()) {
    *name = std::move(*next);
    turns_.erase(next);
    Tenant& tenant = tenants_.at(*name);
    FairTask task = TakeTask(tenant);
    if (tenant.waiting > 0 || !tenant.always.empty()) {
      turns_.push_back(*name);
    } else {
      tenant.queued = false;
    }
    if (task.wanted != nullptr && !task.wanted()) {
      ++dropped_;
      ForgetIfIdle(*name);
      lock.unlock();
      task = {};
      lock.lock();
      continue;
    }
    reached_ = std::max(reached_, tenant.used);
    tenant.used += kLeast;
    ++tenant.running;
    --free_;
    *run = std::move(task.run);
    return true;
  }
  return false;
}

void FairQueue::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::string name;
    std::function<void()> run;
    if (!Next(lock, &name, &run)) {
      if (stopping_ && turns_.empty()) {
        return;
      }
      wake_.wait(lock);
      continue;
    }
    // Each thread that finds work wakes one more, if there is more: who comes back to nothing has been woken for nothing.
    const bool more = FindNext() != turns_.end();
    lock.unlock();
    if (more) {
      wake_.notify_one();
    }
    const std::chrono::nanoseconds began = time_();
    run();
    run = nullptr;  // what it holds goes before the lock is taken
    const std::chrono::nanoseconds used = time_() - began;
    lock.lock();
    ++free_;
    Tenant& tenant = tenants_.at(name);
    --tenant.running;
    tenant.used += used;
    ForgetIfIdle(name);
    if (stopping_ && turns_.empty()) {
      wake_.notify_all();
    }
  }
}

void FairQueue::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
}

std::shared_ptr<void> FairQueue::Hold(const std::string& tenant, size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = tenants_.find(tenant);
    const size_t held = found == tenants_.end() ? 0 : found->second.bytes;
    const size_t left = limits_.bytes - std::min(bytes_, limits_.bytes);
    if (bytes > left || held + bytes > left) {
      ++refused_;
      return nullptr;
    }
    bytes_ += bytes;
    tenants_[tenant].bytes += bytes;
  }
  return MakeHold(tenant, bytes, Held::kBody);
}

std::shared_ptr<void> FairQueue::HoldAnyway(const std::string& tenant, size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes;
    tenants_[tenant].bytes += bytes;
    tenants_[tenant].answers += bytes;
  }
  return MakeHold(tenant, bytes, Held::kAnswer);
}

std::shared_ptr<void> FairQueue::MakeHold(const std::string& tenant, size_t bytes, Held what) {
  return {this, [self = shared_from_this(), tenant, bytes, what](void*) {
            self->Release(tenant, bytes, what);
          }};
}

void FairQueue::Release(const std::string& tenant, size_t bytes, Held what) {
  {
    const std::lock_guard lock(mutex_);
    bytes_ -= bytes;
    tenants_[tenant].bytes -= bytes;
    tenants_[tenant].answers -= what == Held::kAnswer ? bytes : 0;
    ForgetIfIdle(tenant);
    if (FindNext() == turns_.end()) {
      return;
    }
  }
  wake_.notify_one();  // for work that waited for bytes
}

// What a tenant has used beyond the others is remembered, or it would be forgiven between two of its requests.
void FairQueue::ForgetIfIdle(const std::string& name) {
  const auto found = tenants_.find(name);
  if (found != tenants_.end() && !found->second.queued && found->second.running == 0 &&
      found->second.bytes == 0 && found->second.used <= reached_) {
    tenants_.erase(found);
  }
}

FairQueue::Counts FairQueue::counts() const {
  const std::lock_guard lock(mutex_);
  return {waiting_, bytes_, dropped_, refused_};
}

}  // namespace coffer::daemon
