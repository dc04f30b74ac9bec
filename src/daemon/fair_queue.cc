// SPDX-License-Identifier: Apache-2.0
#include "daemon/fair_queue.h"

#include <algorithm>
#include <utility>

namespace coffer::daemon {

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
    turns_.push_back(name);
  }
}

// One thread is always left to a tenant that has none, as long as there is one.
bool FairQueue::MayStart(const Tenant& tenant) const { return free_ > tenant.running; }

// The next task, taken out of its queue; tasks whose client is gone are dropped on the way, outside the lock.
bool FairQueue::Next(std::unique_lock<std::mutex>& lock, std::string* name,
                     std::function<void()>* run) {
  for (size_t left = turns_.size(); left > 0; --left) {
    *name = std::move(turns_.front());
    turns_.pop_front();
    Tenant& tenant = tenants_[*name];
    const bool has_room = tenant.answers <= limits_.bytes - std::min(bytes_, limits_.bytes) ||
                          tenant.answers == 0 || stopping_;
    FairTask task;
    if (MayStart(tenant) && !tenant.always.empty()) {
      task.run = std::move(tenant.always.front());
      tenant.always.pop_front();
    } else if (MayStart(tenant) && tenant.waiting > 0 && has_room) {
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
    }
    if (tenant.waiting > 0 || !tenant.always.empty()) {
      turns_.push_back(*name);
    } else {
      tenant.queued = false;
    }
    if (task.run == nullptr) {
      continue;
    }
    if (task.wanted != nullptr && !task.wanted()) {
      ++dropped_;
      ForgetIfIdle(*name);
      lock.unlock();
      task = {};
      lock.lock();
      left = turns_.size() + 1;
      continue;
    }
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
    lock.unlock();
    run();
    run = nullptr;  // what it holds goes before the lock is taken
    lock.lock();
    ++free_;
    --tenants_[name].running;
    ForgetIfIdle(name);
    // A tenant that had its share of threads may go on now.
    wake_.notify_all();
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
  }
  wake_.notify_all();  // work that waited for bytes
}

void FairQueue::ForgetIfIdle(const std::string& name) {
  const auto found = tenants_.find(name);
  if (found != tenants_.end() && !found->second.queued && found->second.running == 0 &&
      found->second.bytes == 0) {
    tenants_.erase(found);
  }
}

FairQueue::Counts FairQueue::counts() const {
  const std::lock_guard lock(mutex_);
  return {waiting_, bytes_, dropped_, refused_};
}

}  // namespace coffer::daemon
