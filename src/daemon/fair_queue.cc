// SPDX-License-Identifier: Apache-2.0
#include "daemon/fair_queue.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/disk_wait.h"

namespace coffer::daemon {
namespace {

// What a task costs at least: the loop's part of it, which is not measured.
constexpr std::chrono::microseconds kLeast{50};
// How long a tenant counts as served after its last task began.
constexpr std::chrono::milliseconds kRecentUse{200};
// What a tenant may use at once of its share, and what it may owe.
constexpr std::chrono::milliseconds kMostCredit{20}, kMostDebt{100};
// How long a tenant that owes waits beside others between two tasks: so many times what the first used, or the least.
constexpr int kPauseTimes = 2;
constexpr std::chrono::milliseconds kLeastPause{2};
// How often work is looked at that waits for its tenant's share.
constexpr std::chrono::milliseconds kLook{1};
// Of the bytes that the other keys of its tenant leave, how much a key may hold.
constexpr uint64_t kKeyPercent = 50;

// Neither upkeep of the daemon's own nor strangers are a tenant beside others.
bool IsTenant(const std::string& name) { return !name.empty() && name != kStrangers; }

}  // namespace

double FairLimits::QuarterOfProcessors() {
  return std::max(1U, std::thread::hardware_concurrency()) / 4.0;
}

bool FairQueue::Add(const Lane& lane, FairTask task) {
  Worker worker{};
  {
    const std::lock_guard lock(mutex_);
    Tenant& tenant = tenants_[lane.tenant];
    const auto key = tenant.keys.find(lane.key);
    const size_t of_key = key == tenant.keys.end() ? 0 : key->second.tasks.size();
    if (waiting_ >= limits_.requests || tenant.waiting >= limits_.requests - waiting_ ||
        of_key >= limits_.requests_per_key) {
      ++refused_;
      ForgetIfIdle(lane.tenant);
      return false;
    }
    if (of_key == 0) {
      tenant.turns.push_back(lane.key);
    }
    tenant.keys[lane.key].tasks.push_back(std::move(task));
    ++tenant.waiting;
    ++waiting_;
    Queue(lane.tenant, tenant);
    worker = IsPatient(lane.tenant, tenant, clocks_.now()) ? Worker::kPatient : Worker::kPrompt;
  }
  WakeOne(worker);
  return true;
}

void FairQueue::AddAlways(const Lane& lane, std::function<void()> run) {
  {
    const std::lock_guard lock(mutex_);
    Tenant& tenant = tenants_[lane.tenant];
    tenant.always.push_back(std::move(run));
    Queue(lane.tenant, tenant);
  }
  WakeOne(Worker::kPrompt);
}

void FairQueue::AddRest(const Lane& lane, FairTask task) {
  Worker worker{};
  {
    const std::lock_guard lock(mutex_);
    Tenant& tenant = tenants_[lane.tenant];
    tenant.rest.push_back(std::move(task));
    Queue(lane.tenant, tenant);
    worker = IsPatient(lane.tenant, tenant, clocks_.now()) ? Worker::kPatient : Worker::kPrompt;
  }
  WakeOne(worker);
}

// As much as it leaves free.
FairShare FairQueue::ShareOfKeys(const Tenant& tenant) const {
  const size_t others = bytes_ - tenant.bytes;
  return {(limits_.bytes - std::min(others, limits_.bytes)) / 2, kKeyPercent, 0};
}

// A key whose answers are not read waits, until they are below its share of the tenant's answers. Bodies of other keys
// are no reason to wait: a key that only follows events has answers on their way all the time.
std::deque<std::string>::const_iterator FairQueue::FindKey(const Tenant& tenant) const {
  const FairShare share = ShareOfKeys(tenant);
  return std::find_if(tenant.turns.begin(), tenant.turns.end(), [&](const std::string& name) {
    const size_t answers = tenant.keys.at(name).answers;
    return answers == 0 || stopping_ || share.Leaves(answers, tenant.answers);
  });
}

const FairTask* FairQueue::NextTask(const Tenant& tenant) const {
  if (!tenant.rest.empty()) {
    return &tenant.rest.front();
  }
  const auto key = FindKey(tenant);
  return key == tenant.turns.end() ? nullptr : &tenant.keys.at(*key).tasks.front();
}

void FairQueue::Queue(const std::string& name, Tenant& tenant) {
  if (!std::exchange(tenant.queued, true)) {
    tenant.used = std::max(tenant.used, reached_);
    Credit(tenant, clocks_.now());
    turns_.push_back(name);
  }
}

bool FairQueue::OthersAreServed(const std::string& name, Time now) const {
  return now - (latest_ == name ? other_at_ : latest_at_) < kRecentUse;
}

// Of those that have used up their shares beside others, the one that owes most.
bool FairQueue::MustWait(const std::string& name, const Tenant& tenant, Time now) const {
  const bool owes_most = tenant.credit.count() < 0 && tenant.credit <= lowest_credit_;
  return owes_most && OthersAreServed(name, now);
}

// Its next task is the patient thread's.
bool FairQueue::IsPatient(const std::string& name, const Tenant& tenant, Time now) const {
  const FairTask* const next = NextTask(tenant);
  return next != nullptr && next->patient && !stopping_ && OthersAreServed(name, now);
}

// One prompt thread is always left to a tenant that has none, as long as there is one. A tenant
// whose answers are not read waits.
bool FairQueue::MayStart(Worker worker, const std::string& name, const Tenant& tenant,
                         Time now) const {
  if (worker == Worker::kPrompt && free_ <= tenant.running) {
    return false;
  }
  if (!tenant.always.empty() || stopping_) {
    return worker == Worker::kPrompt;
  }
  const bool has_room = tenant.answers <= limits_.bytes - std::min(bytes_, limits_.bytes) ||
                        tenant.answers == 0 || !tenant.rest.empty();
  if (!has_room || NextTask(tenant) == nullptr) {
    return false;
  }
  const bool patient = IsPatient(name, tenant, now);
  if (patient || worker == Worker::kPatient) {
    return patient && worker == Worker::kPatient;
  }
  return computing_ == 0 || now >= tenant.may_start || !MustWait(name, tenant, now);
}

void FairQueue::WakeOne(Worker worker) { WakeOf(worker).notify_one(); }

void FairQueue::Credit(Tenant& tenant, Time now) const {
  const std::chrono::duration<double, std::nano> come = (now - tenant.credited) * limits_.share;
  tenant.credit = std::min<std::chrono::nanoseconds>(
      kMostCredit, tenant.credit + std::chrono::duration_cast<std::chrono::nanoseconds>(come));
  tenant.credited = now;
}

// Of those that may start, the one that has used least; the first of equals.
std::deque<std::string>::iterator FairQueue::FindNext(Worker worker) {
  auto best = turns_.end();
  std::chrono::nanoseconds least{0};
  const Time now = clocks_.now();
  lowest_credit_ = kMostCredit;
  for (auto& [name, tenant] : tenants_) {
    Credit(tenant, now);
    if (IsTenant(name)) {
      lowest_credit_ = std::min(lowest_credit_, tenant.credit);
    }
  }
  for (auto at = turns_.begin(); at != turns_.end(); ++at) {
    const Tenant& tenant = tenants_.at(*at);
    if (MayStart(worker, *at, tenant, now) && (best == turns_.end() || tenant.used < least)) {
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
  if (!tenant.rest.empty()) {
    task = std::move(tenant.rest.front());
    tenant.rest.pop_front();
    return task;
  }
  const auto turn = FindKey(tenant);
  const std::string name = *turn;
  tenant.turns.erase(turn);
  std::deque<FairTask>& tasks = tenant.keys.at(name).tasks;
  task = std::move(tasks.front());
  tasks.pop_front();
  if (tasks.empty()) {
    ForgetKeyIfIdle(tenant, name);
  } else {
    tenant.turns.push_back(name);
  }
  --tenant.waiting;
  --waiting_;
  return task;
}

void FairQueue::Served(const std::string& name) {
  if (!IsTenant(name)) {
    return;
  }
  if (name != latest_) {
    other_at_ = latest_at_;
    latest_ = name;
  }
  latest_at_ = clocks_.now();
}

// The next task, taken out of its queue; tasks whose client is gone are dropped on the way, outside the lock.
bool FairQueue::Next(Worker worker, std::unique_lock<std::mutex>& lock, std::string* name,
                     std::function<void()>* run) {
  for (auto next = FindNext(worker); next != turns_.end(); next = FindNext(worker)) {
    *name = std::move(*next);
    turns_.erase(next);
    Tenant& tenant = tenants_.at(*name);
    FairTask task = TakeTask(tenant);
    if (tenant.HasTasks()) {
      turns_.push_back(*name);
    } else {
      tenant.queued = false;
    }
    if (task.wanted != nullptr && !task.wanted()) {
      ++dropped_;
      ForgetIfIdle(*name);
      lock.unlock();
      // Outside the lock: what a task holds may be large, and its end may call back into the queue.
      task = {};
      lock.lock();
      continue;
    }
    Served(*name);
    reached_ = std::max(reached_, tenant.used);
    tenant.used += kLeast;
    if (worker == Worker::kPrompt) {
      ++tenant.running;
      computing_ += name->empty() ? 0 : 1;
      --free_;
    } else {
      ++tenant.patient;
    }
    *run = std::move(task.run);
    return true;
  }
  return false;
}

// While a client's task runs on this thread, the queue is told when it waits for the disk.
class FairQueue::Computing : public DiskWaitListener {
 public:
  explicit Computing(FairQueue* queue) : queue_(queue) {
    disk_wait_listener = queue == nullptr ? nullptr : this;
  }
  ~Computing() override { disk_wait_listener = nullptr; }
  Computing(const Computing&) = delete;
  Computing& operator=(const Computing&) = delete;
  void DiskWaitBegan() override { queue_->DiskWaitBegan(); }
  void DiskWaitEnded() override { queue_->DiskWaitEnded(); }

 private:
  FairQueue* const queue_;
};

void FairQueue::DiskWaitBegan() {
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    --computing_;
    more = FindNext(Worker::kPrompt) != turns_.end();
  }
  if (more) {
    WakeOne(Worker::kPrompt);
  }
}

void FairQueue::DiskWaitEnded() {
  const std::lock_guard lock(mutex_);
  ++computing_;
}

void FairQueue::Work(Worker worker) {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::string name;
    std::function<void()> run;
    if (!Next(worker, lock, &name, &run)) {
      if (stopping_ && (turns_.empty() || worker == Worker::kPatient)) {
        return;
      }
      if (turns_.empty()) {
        WakeOf(worker).wait(lock);
      } else {
        WakeOf(worker).wait_for(lock, kLook);
      }
      continue;
    }
    // Each thread that finds work wakes one more, if there is more: who comes back to nothing has
    // been woken for nothing.
    const bool more = FindNext(worker) != turns_.end();
    lock.unlock();
    if (more) {
      WakeOne(worker);
    }
    const std::chrono::nanoseconds began = clocks_.used();
    {
      const Computing computing(worker == Worker::kPrompt && !name.empty() ? this : nullptr);
      run();
      run = nullptr;  // what it holds goes before the lock is taken
    }
    const std::chrono::nanoseconds used = clocks_.used() - began;
    lock.lock();
    Done(worker, name, used);
    if (stopping_ && turns_.empty()) {
      wake_.notify_all();
    }
  }
}

void FairQueue::Done(Worker worker, const std::string& name, std::chrono::nanoseconds used) {
  Tenant& tenant = tenants_.at(name);
  if (worker == Worker::kPrompt) {
    ++free_;
    computing_ -= name.empty() ? 0 : 1;
    --tenant.running;
    tenant.may_start =
        clocks_.now() + std::max<std::chrono::nanoseconds>(kLeastPause, kPauseTimes * used);
  } else {
    --tenant.patient;
  }
  tenant.used += used;
  tenant.credit = std::max<std::chrono::nanoseconds>(-kMostDebt, tenant.credit - used);
  ForgetIfIdle(name);
}

void FairQueue::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  wake_patient_.notify_all();
}

FairQueue::Holding FairQueue::Hold(const Lane& lane, size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    Tenant& tenant = tenants_[lane.tenant];
    Key& key = tenant.keys[lane.key];
    const size_t left = limits_.bytes - std::min(bytes_, limits_.bytes);
    const bool tenant_full = bytes > left || tenant.bytes + bytes > left;
    const bool key_full =
        key.bytes > 0 && !ShareOfKeys(tenant).Leaves(key.bytes + bytes, tenant.bytes + bytes);
    if (tenant_full || key_full) {
      ++refused_;
      ForgetKeyIfIdle(tenant, lane.key);
      ForgetIfIdle(lane.tenant);
      return {nullptr, key_full ? Holder::kKey : Holder::kTenant};
    }
    bytes_ += bytes;
    tenant.bytes += bytes;
    key.bytes += bytes;
  }
  return {MakeHold(lane, bytes, Held::kBody)};
}

std::shared_ptr<void> FairQueue::HoldAnyway(const Lane& lane, size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    Tenant& tenant = tenants_[lane.tenant];
    Key& key = tenant.keys[lane.key];
    bytes_ += bytes;
    tenant.bytes += bytes;
    tenant.answers += bytes;
    key.bytes += bytes;
    key.answers += bytes;
  }
  return MakeHold(lane, bytes, Held::kAnswer);
}

bool FairQueue::HoldsMuch(const std::string& tenant) const {
  const std::lock_guard lock(mutex_);
  const auto found = tenants_.find(tenant);
  const size_t held = found == tenants_.end() ? 0 : found->second.bytes;
  const auto holders = static_cast<size_t>(std::count_if(
      tenants_.begin(), tenants_.end(), [](const auto& one) { return one.second.bytes > 0; }));
  return held * holders >= bytes_;
}

bool FairQueue::KeyHoldsMuch(const Lane& lane) const {
  const std::lock_guard lock(mutex_);
  const auto found = tenants_.find(lane.tenant);
  if (found == tenants_.end()) {
    return true;  // as much as every other: nothing
  }
  const Tenant& tenant = found->second;
  const auto key = tenant.keys.find(lane.key);
  const size_t held = key == tenant.keys.end() ? 0 : key->second.bytes;
  const auto holders =
      static_cast<size_t>(std::count_if(tenant.keys.begin(), tenant.keys.end(),
                                        [](const auto& one) { return one.second.bytes > 0; }));
  return held * holders >= tenant.bytes;
}

std::shared_ptr<void> FairQueue::MakeHold(const Lane& lane, size_t bytes, Held what) {
  return {this, [self = shared_from_this(), lane, bytes, what](void*) {
            self->Release(lane, bytes, what);
          }};
}

void FairQueue::Release(const Lane& lane, size_t bytes, Held what) {
  bool prompt = false, patient = false;
  {
    const std::lock_guard lock(mutex_);
    const size_t of_answers = what == Held::kAnswer ? bytes : 0;
    Tenant& tenant = tenants_[lane.tenant];  // no bytes are held without keeping either
    Key& key = tenant.keys[lane.key];
    bytes_ -= bytes;
    tenant.bytes -= bytes;
    tenant.answers -= of_answers;
    key.bytes -= bytes;
    key.answers -= of_answers;
    ForgetKeyIfIdle(tenant, lane.key);
    ForgetIfIdle(lane.tenant);
    prompt = FindNext(Worker::kPrompt) != turns_.end();
    patient = FindNext(Worker::kPatient) != turns_.end();
  }
  // For work that waited for bytes.
  if (prompt) {
    WakeOne(Worker::kPrompt);
  }
  if (patient) {
    WakeOne(Worker::kPatient);
  }
}

void FairQueue::ForgetKeyIfIdle(Tenant& tenant, const std::string& name) {
  const auto found = tenant.keys.find(name);
  if (found != tenant.keys.end() && found->second.tasks.empty() && found->second.bytes == 0) {
    tenant.keys.erase(found);
  }
}

// What a tenant has used beyond the others is remembered, or it would be forgiven between two of its requests.
void FairQueue::ForgetIfIdle(const std::string& name) {
  const auto found = tenants_.find(name);
  if (found != tenants_.end() && !found->second.queued && found->second.running == 0 &&
      found->second.patient == 0 && found->second.bytes == 0 && found->second.used <= reached_ &&
      found->second.credit.count() >= 0) {
    tenants_.erase(found);
  }
}

FairQueue::Counts FairQueue::counts() const {
  const std::lock_guard lock(mutex_);
  return {waiting_, bytes_, dropped_, refused_};
}

}  // namespace coffer::daemon
