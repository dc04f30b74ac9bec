// SPDX-License-Identifier: Apache-2.0
//
// Decides which tenant's work is done next, and how much memory each tenant may hold: one queue for each key, served in
// turn.
//
// The tenant goes next whose tasks have used the least CPU time, and within a tenant its keys take
// turns. So a tenant that asks ten thousand times, or for what is expensive, waits behind itself. A
// tenant that comes back after a pause starts where the others are: it has saved nothing up. A
// tenant's share beside others is a quarter of the processors. The tenant that has lately used most
// beyond its share starts nothing while a task of any client computes, so that the others' next
// request finds a processor that is free; alone it may use all of them. A task that waits for the
// disk does not compute (base/disk_wait.h): a tenant whose tasks mostly do that would otherwise
// have them done one by one, and never catch up with what it fell behind. Nor does it wait for
// ever: beside others that always compute it gets a third of a processor. Tasks that only compute
// (read a large body, format a long answer) are patient: beside others they are done by a thread of
// their own, which the kernel runs after the prompt ones (workers.h).
//
// No tenant may take more of anything (places in the queue, threads, bytes) than it leaves free:
// one tenant alone gets a half, two get a third each, and a newcomer finds room. Bytes are those of
// bodies that came in and of answers that have not been sent. A tenant whose clients do not read
// their answers gets no new ones made: it waits until they are read, or their time is over. Bodies
// make no tenant wait, because its tasks are what frees them. Nor does the rest of an answer that
// was begun, which goes before the tenant's new tasks.
//
// Within what a tenant may hold, a key holds at most a half of what the tenant's other keys leave,
// and the last eighth is for keys that hold nothing (base/fair_share.h). So a key whose clients do not
// read waits, or has its bodies refused, while the other keys of its tenant are served.
//
// A task whose client is gone is dropped when its turn comes. What must happen (the end of a call) is never refused or
// dropped. Thread-safe. Made with make_shared: a handle of Hold keeps it alive.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/fair_share.h"
#include "base/thread_time.h"

namespace coffer::daemon {

// The tenant of clients whose key is not known yet. No tenant counts them as another one: a client
// without a key must not be able to cut the tenants down to their shares.
inline constexpr std::string_view kStrangers = "?";

// Tenant "" is the daemon's own upkeep.
struct Lane {
  std::string tenant;
  std::string key;
};

struct FairLimits {
  size_t requests = 2048;           // that wait, of all tenants
  size_t requests_per_key = 128;    // of these
  size_t bytes = size_t{96} << 20;  // held, of all tenants
  double share =
      QuarterOfProcessors();  // seconds of CPU time in a second, of one tenant beside others
  static double QuarterOfProcessors();
};

struct FairClocks {
  std::function<std::chrono::nanoseconds()> used = ThreadCpuTime;
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

struct FairTask {
  std::function<void()> run;
  std::function<bool()> wanted;  // empty: always
  bool patient = false;          // it may take long, and holds no lock that others wait for
};

class FairQueue : public std::enable_shared_from_this<FairQueue> {
 public:
  // `threads`: the prompt ones.
  FairQueue(size_t threads, FairLimits limits, FairClocks clocks = {})
      : limits_(limits), clocks_(std::move(clocks)), free_(threads) {}
  FairQueue(const FairQueue&) = delete;
  FairQueue& operator=(const FairQueue&) = delete;

  // False if the key or its tenant has its share of places; then the task never runs.
  [[nodiscard]] bool Add(const Lane& lane, FairTask task);
  // Never refused, never dropped, and done before all other tasks of its tenant.
  void AddAlways(const Lane& lane, std::function<void()> run);

  // Goes on with an answer that was begun, one step at a time: never refused, because what was
  // begun is bounded elsewhere.
  void AddRest(const Lane& lane, FairTask task);

  // Bytes of a body, which count as the key's and the tenant's until the handle is dropped. No
  // handle if one of them has its share.
  enum class Holder : uint8_t { kTenant, kKey };
  struct Holding {
    std::shared_ptr<void> handle;
    Holder full = Holder::kTenant;  // without a handle: whose share is used up
  };
  [[nodiscard]] Holding Hold(const Lane& lane, size_t bytes);
  // The same for an answer, which is there already. It must go away without any task of the tenant.
  [[nodiscard]] std::shared_ptr<void> HoldAnyway(const Lane& lane, size_t bytes);

  // Whether the tenant is among those that hold most: at least what each tenant that holds anything holds on average.
  bool HoldsMuch(const std::string& tenant) const;
  // The same of the key among the keys of its tenant.
  bool KeyHoldsMuch(const Lane& lane) const;

  // A patient thread does the patient tasks of a tenant beside others, a prompt one everything else.
  enum class Worker : uint8_t { kPrompt, kPatient };
  // For a thread that works: waits for a task, runs it, and so on until Stop and nothing is left.
  void Work(Worker worker = Worker::kPrompt);
  void Stop();

  struct Counts {
    size_t waiting = 0;
    size_t bytes = 0;
    uint64_t dropped = 0;  // tasks whose clients were gone
    uint64_t refused = 0;
  };
  Counts counts() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Key {
    std::deque<FairTask> tasks;
    size_t bytes = 0;
    size_t answers = 0;  // of these
  };
  struct Tenant {
    std::deque<std::function<void()>> always;
    std::deque<FairTask> rest;
    std::map<std::string, Key, std::less<>> keys;  // each has tasks or bytes
    std::deque<std::string> turns;                 // of keys that have tasks
    size_t waiting = 0;                            // in keys
    size_t running = 0;                            // tasks, on prompt threads
    size_t patient = 0;                            // on patient ones
    size_t bytes = 0;
    size_t answers = 0;  // of these
    std::chrono::nanoseconds used{0};
    std::chrono::nanoseconds credit{0};  // of its share; below zero it waits, if others are served
    Time credited{};
    Time may_start{};     // also beside others, whatever it owes
    bool queued = false;  // it is in turns_
    bool HasTasks() const { return waiting > 0 || !rest.empty() || !always.empty(); }
  };
  bool Next(Worker worker, std::unique_lock<std::mutex>& lock, std::string* tenant,
            std::function<void()>* run);
  // What the tenant does next if nothing must happen first, or nullptr.
  const FairTask* NextTask(const Tenant& tenant) const;
  // The first of the tenant's keys in turn that may start a task.
  std::deque<std::string>::const_iterator FindKey(const Tenant& tenant) const;
  // Of what the tenant may hold, what its keys share out.
  FairShare ShareOfKeys(const Tenant& tenant) const;
  class Computing;
  void DiskWaitBegan();
  void DiskWaitEnded();
  void Done(Worker worker, const std::string& name, std::chrono::nanoseconds used);
  bool MayStart(Worker worker, const std::string& name, const Tenant& tenant, Time now) const;
  bool MustWait(const std::string& name, const Tenant& tenant, Time now) const;
  bool IsPatient(const std::string& name, const Tenant& tenant, Time now) const;
  std::condition_variable& WakeOf(Worker worker) {
    return worker == Worker::kPrompt ? wake_ : wake_patient_;
  }
  void WakeOne(Worker worker);
  bool OthersAreServed(const std::string& name, Time now) const;
  void Served(const std::string& name);
  void Credit(Tenant& tenant, Time now) const;
  std::deque<std::string>::iterator FindNext(Worker worker);
  FairTask TakeTask(Tenant& tenant);
  void Queue(const std::string& name, Tenant& tenant);
  void ForgetIfIdle(const std::string& name);
  enum class Held : uint8_t { kBody, kAnswer };
  std::shared_ptr<void> MakeHold(const Lane& lane, size_t bytes, Held what);
  void Release(const Lane& lane, size_t bytes, Held what);
  static void ForgetKeyIfIdle(Tenant& tenant, const std::string& name);

  const FairLimits limits_;
  const FairClocks clocks_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable wake_, wake_patient_;
  std::unordered_map<std::string, Tenant> tenants_;
  std::deque<std::string> turns_;              // of tenants
  std::string latest_;                         // the tenant that was served last
  Time latest_at_{}, other_at_{};              // when that was, and when any other was
  std::chrono::nanoseconds reached_{0};        // what the tenant that went last had used before
  std::chrono::nanoseconds lowest_credit_{0};  // of all tenants, at the last look
  size_t computing_ =
      0;         // tasks of clients on prompt threads, without those that wait for the disk
  size_t free_;  // prompt threads
  size_t waiting_ = 0;
  size_t bytes_ = 0;
  uint64_t dropped_ = 0;
  uint64_t refused_ = 0;
  bool stopping_ = false;
};

}  // namespace coffer::daemon
