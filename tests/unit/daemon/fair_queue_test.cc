// SPDX-License-Identifier: Apache-2.0
#include "daemon/fair_queue.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <thread>
#include <vector>

#include "base/disk_wait.h"
#include "daemon/workers.h"

namespace coffer::daemon {
namespace {

// One thread that works when the test says so, so that the order is the queue's alone.
class FairQueueTest : public ::testing::Test {
 protected:
  std::shared_ptr<FairQueue> Make(size_t threads, FairLimits limits = {}) {
    return std::make_shared<FairQueue>(
        threads, limits,
        FairClocks{[this] { return time_.load(); }, [this] { return now_.load(); }});
  }
  FairTask Say(const std::string& word) {
    return {[this, word] { said_.push_back(word); }, nullptr};
  }
  // Everything that was added, on this thread.
  static void WorkOff(FairQueue& queue) {
    queue.Stop();
    queue.Work();
  }
  // The same, and uses CPU time.
  FairTask Burn(const std::string& word, std::chrono::milliseconds time) {
    return {[this, word, time] {
              said_.push_back(word);
              time_ = time_.load() + time;
            },
            nullptr};
  }
  // The task, and when it is done.
  static std::future<void> Run(FairQueue& queue, const char* tenant,
                               const std::function<void()>& task) {
    auto done = std::make_shared<std::promise<void>>();
    EXPECT_TRUE(queue.Add({tenant, "k"}, {[task, done] {
                                            task();
                                            done->set_value();
                                          },
                                          nullptr}));
    return done->get_future();
  }
  std::vector<std::string> said_;
  std::atomic<std::chrono::nanoseconds> time_{
      std::chrono::nanoseconds(0)};  // CPU time of every thread
  std::atomic<std::chrono::steady_clock::time_point> now_{
      std::chrono::steady_clock::time_point(std::chrono::hours(1))};
};

using Words = std::vector<std::string>;

TEST_F(FairQueueTest, TenantsAndTheirKeysTakeTurns) {
  const auto queue = Make(1);
  for (const char* word : {"a1", "a2", "a3", "a4"}) {
    ASSERT_TRUE(queue->Add({"hostile", "a"}, Say(word)));
  }
  ASSERT_TRUE(queue->Add({"hostile", "b"}, Say("b1")));
  ASSERT_TRUE(queue->Add({"victim", "v"}, Say("v1")));
  ASSERT_TRUE(queue->Add({"victim", "v"}, Say("v2")));
  WorkOff(*queue);
  EXPECT_EQ(said_, (Words{"a1", "v1", "b1", "v2", "a2", "a3", "a4"}));
}

TEST_F(FairQueueTest, WhoUsedLeastGoesNext) {
  const auto queue = Make(1);
  for (const char* word : {"h1", "h2", "h3"}) {
    ASSERT_TRUE(queue->Add({"hostile", "h"}, Burn(word, std::chrono::milliseconds(10))));
  }
  for (const char* word : {"v1", "v2", "v3", "v4"}) {
    ASSERT_TRUE(queue->Add({"victim", "v"}, Burn(word, std::chrono::milliseconds(4))));
  }
  WorkOff(*queue);
  EXPECT_EQ(said_, (Words{"h1", "v1", "v2", "v3", "h2", "v4", "h3"}));
}

// Ten milliseconds at a time, each asked for when the one before is done: not forgiven in between. And the victim, which was
// idle meanwhile, has saved nothing up: after its share the hostile tenant goes on.
TEST_F(FairQueueTest, APauseForgivesNothingAndSavesNothing) {
  const auto queue = Make(1);
  ASSERT_TRUE(queue->Add({"victim", "v"}, Burn("v0", std::chrono::milliseconds(1))));
  ASSERT_TRUE(queue->Add({"hostile", "h"}, Burn("h1", std::chrono::milliseconds(10))));
  ASSERT_TRUE(
      queue->Add({"hostile", "h"},
                 {[&] {
                    said_.push_back("h2");
                    time_ = time_.load() + std::chrono::milliseconds(10);
                    // By now nothing waits.
                    for (const char* word : {"h3", "h4"}) {
                      (void)queue->Add({"hostile", "h"}, Burn(word, std::chrono::milliseconds(10)));
                    }
                    for (const char* word : {"v1", "v2", "v3"}) {
                      (void)queue->Add({"victim", "v"}, Burn(word, std::chrono::milliseconds(6)));
                    }
                  },
                  nullptr}));
  WorkOff(*queue);
  EXPECT_EQ(said_, (Words{"v0", "h1", "h2", "v1", "v2", "h3", "v3", "h4"}));
}

// Two threads. The tasks of the hostile tenant each use a tenth of a second, and one task of the victim runs all the time.
TEST_F(FairQueueTest, BesideOthersATenantWaitsForItsShare) {
  FairLimits limits;
  limits.share = 0.5;
  const auto queue = Make(4, limits);
  std::thread one([queue] { queue->Work(); }), other([queue] { queue->Work(); });
  const auto run = [&](const char* tenant, std::chrono::milliseconds time) {
    auto done = std::make_shared<std::promise<void>>();
    EXPECT_TRUE(queue->Add({tenant, "k"}, {[this, time, done] {
                                             time_ = time_.load() + time;
                                             done->set_value();
                                           },
                                           nullptr}));
    return done->get_future();
  };
  const auto hostile = [&] { return run("hostile", std::chrono::milliseconds(100)); };
  const auto victim = [&] { return run("victim", std::chrono::milliseconds(0)); };
  const auto busy = [&] { return run("busy", std::chrono::milliseconds(30)); };
  const auto soon = std::chrono::seconds(20);
  const auto waits = [](const std::future<void>& task) {
    return task.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout;
  };
  // Alone it waits for nothing.
  ASSERT_EQ(hostile().wait_for(soon), std::future_status::ready);
  ASSERT_EQ(hostile().wait_for(soon), std::future_status::ready);
  // Nor beside clients without a key.
  ASSERT_EQ(run("?", std::chrono::milliseconds(0)).wait_for(soon), std::future_status::ready);
  ASSERT_EQ(hostile().wait_for(soon), std::future_status::ready);
  ASSERT_EQ(victim().wait_for(soon), std::future_status::ready);

  std::promise<void> go;
  std::promise<void> runs;
  EXPECT_TRUE(queue->Add({"victim", "k"}, {[&] {
                                             runs.set_value();
                                             go.get_future().wait();
                                           },
                                           nullptr}));
  ASSERT_EQ(runs.get_future().wait_for(soon), std::future_status::ready);
  std::future<void> late = hostile();
  EXPECT_TRUE(waits(late));
  ASSERT_EQ(victim().wait_for(soon), std::future_status::ready);
  // Another that is over its share, and owes less, does not wait.
  ASSERT_EQ(busy().wait_for(soon), std::future_status::ready);
  ASSERT_EQ(busy().wait_for(soon), std::future_status::ready);
  EXPECT_TRUE(waits(late));
  // In a tenth of a second it has a half of that back, in two and a half all of what it owed.
  now_ = now_.load() + std::chrono::milliseconds(100);
  ASSERT_EQ(victim().wait_for(soon), std::future_status::ready);
  EXPECT_TRUE(waits(late));
  now_ = now_.load() + std::chrono::milliseconds(150);
  EXPECT_EQ(late.wait_for(soon), std::future_status::ready);
  // It owes again. When nothing else runs, it waits no longer.
  ASSERT_EQ(victim().wait_for(soon), std::future_status::ready);
  std::future<void> again = hostile();
  EXPECT_TRUE(waits(again));
  // What must happen waits for no share.
  std::promise<void> end;
  queue->AddAlways({"hostile", ""}, [&] { end.set_value(); });
  EXPECT_EQ(end.get_future().wait_for(soon), std::future_status::ready);
  EXPECT_TRUE(waits(again));
  go.set_value();
  EXPECT_EQ(again.wait_for(soon), std::future_status::ready);
  queue->Stop();
  one.join();
  other.join();
}

// A tenant that owes waits for the tasks of clients. Upkeep may take a second.
TEST_F(FairQueueTest, UpkeepMakesNoTenantWait) {
  for (const auto& [beside, is_made_to_wait] :
       {std::pair("victim", true), std::pair("?", true), std::pair("", false)}) {
    SCOPED_TRACE(beside);
    const auto queue = Make(4);
    std::thread one([queue] { queue->Work(); }), other([queue] { queue->Work(); });
    const auto run = [&](const char* tenant, const std::function<void()>& task) {
      return Run(*queue, tenant, task);
    };
    run("busy", [this] { time_ = time_.load() + std::chrono::seconds(1); }).get();
    run("victim", [] {}).get();
    std::promise<void> runs, go;
    std::future<void> slow = run(beside, [&] {
      runs.set_value();
      go.get_future().wait();
    });
    runs.get_future().get();
    std::future<void> next = run("busy", [] {});
    const auto patience =
        is_made_to_wait ? std::chrono::milliseconds(50) : std::chrono::seconds(20);
    EXPECT_EQ(next.wait_for(patience) == std::future_status::timeout, is_made_to_wait);
    go.set_value();
    slow.get();
    next.get();
    queue->Stop();
    one.join();
    other.join();
  }
}

// A tenant that owes gets no second processor. Its task that waits for the disk needs none.
TEST_F(FairQueueTest, ATaskThatWaitsForTheDiskHoldsUpNoOther) {
  for (const bool on_disk : {false, true}) {
    SCOPED_TRACE(on_disk);
    const auto queue = Make(4);
    std::thread one([queue] { queue->Work(); }), other([queue] { queue->Work(); });
    const auto run = [&](const char* tenant, const std::function<void()>& task) {
      return Run(*queue, tenant, task);
    };
    run("busy", [this] { time_ = time_.load() + std::chrono::seconds(1); }).get();
    run("victim", [] {}).get();
    std::promise<void> runs, go;
    std::future<void> first = run("busy", [&] {
      const auto wait = on_disk ? std::make_unique<DiskWait>() : nullptr;
      runs.set_value();
      go.get_future().wait();
    });
    runs.get_future().get();
    std::future<void> second = run("busy", [] {});
    const auto patience = on_disk ? std::chrono::seconds(20) : std::chrono::milliseconds(50);
    EXPECT_EQ(second.wait_for(patience) == std::future_status::timeout, !on_disk);
    go.set_value();
    first.get();
    second.get();
    queue->Stop();
    one.join();
    other.join();
  }
}

// The others compute all the time, and what it owes grows with every task.
TEST_F(FairQueueTest, ATenantThatOwesIsNotStarved) {
  FairLimits limits;
  limits.share = 0.1;
  const auto queue = Make(4, limits);
  std::thread one([queue] { queue->Work(); }), other([queue] { queue->Work(); });
  const auto add = [&](const char* tenant, const std::function<void()>& task) {
    return Run(*queue, tenant, task);
  };
  const auto use = [this] { time_ = time_.load() + std::chrono::milliseconds(40); };
  add("busy", use).get();
  add("victim", [] {}).get();
  std::promise<void> runs, go;
  std::future<void> slow = add("victim", [&] {
    runs.set_value();
    go.get_future().wait();
  });
  runs.get_future().get();
  for (int i = 0; i < 3; ++i) {
    std::future<void> next = add("busy", use);
    EXPECT_EQ(next.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout) << i;
    now_ = now_.load() + std::chrono::milliseconds(50);
    EXPECT_EQ(next.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout) << i;
    now_ = now_.load() + std::chrono::milliseconds(31);
    EXPECT_EQ(next.wait_for(std::chrono::seconds(20)), std::future_status::ready) << i;
    next.get();
    add("victim", [] {}).get();  // it is served
  }
  go.set_value();
  slow.get();
  queue->Stop();
  one.join();
  other.join();
}

// A thread of each kind. Beside others, what may take long is done by the patient one and by no other, also while nothing
// else runs; that thread does nothing else.
TEST_F(FairQueueTest, BesideOthersAPatientThreadComputes) {
  FairLimits limits;
  limits.share = 0.5;
  const auto queue = Make(2, limits);
  std::thread prompt([queue] { queue->Work(); });
  std::thread patient([queue] { queue->Work(FairQueue::Worker::kPatient); });
  const auto run = [&](const char* tenant, std::chrono::milliseconds time, bool may_take_long) {
    std::promise<std::thread::id> who;
    EXPECT_TRUE(queue->Add({tenant, "k"}, {[&] {
                                             time_ = time_.load() + time;
                                             who.set_value(std::this_thread::get_id());
                                           },
                                           nullptr, may_take_long}));
    return who.get_future().get();
  };
  const std::chrono::milliseconds none{0}, much{100};
  EXPECT_EQ(run("hostile", much, true), prompt.get_id());  // alone
  EXPECT_EQ(run("victim", none, false), prompt.get_id());
  EXPECT_EQ(run("hostile", none, true), patient.get_id());
  EXPECT_EQ(run("victim", none, true), patient.get_id());
  EXPECT_EQ(run("hostile", none, false), prompt.get_id());
  EXPECT_EQ(run("victim", none, false), prompt.get_id());
  std::promise<std::thread::id> rest;
  queue->AddRest({"hostile", "k"},
                 {[&] { rest.set_value(std::this_thread::get_id()); }, nullptr, true});
  EXPECT_EQ(rest.get_future().get(), patient.get_id());
  now_ = now_.load() + std::chrono::milliseconds(201);  // the others have been idle
  EXPECT_EQ(run("hostile", none, true), prompt.get_id());
  queue->Stop();
  prompt.join();
  patient.join();
}

TEST_F(FairQueueTest, WhatMustHappenComesFirstAndIsNeverRefused) {
  FairLimits limits;
  limits.requests_per_key = 1;
  const auto queue = Make(1, limits);
  ASSERT_TRUE(queue->Add({"t", "k"}, Say("asked")));
  EXPECT_FALSE(queue->Add({"t", "k"}, Say("too many"))) << "the control";
  queue->AddAlways({"t", "k"}, [this] { said_.push_back("end of a call"); });
  WorkOff(*queue);
  EXPECT_EQ(said_, (Words{"end of a call", "asked"}));
  EXPECT_EQ(queue->counts().refused, 1U);
}

TEST_F(FairQueueTest, ATenantLeavesAsManyPlacesAsItTakes) {
  FairLimits limits;
  limits.requests = 12;
  limits.requests_per_key = 100;
  const auto queue = Make(1, limits);
  size_t taken = 0;
  while (queue->Add({"one", "k"}, Say(""))) {
    ++taken;
  }
  EXPECT_EQ(taken, 6U);
  size_t second = 0;
  while (queue->Add({"two", "k"}, Say(""))) {
    ++second;
  }
  EXPECT_EQ(second, 3U);
  EXPECT_TRUE(queue->Add({"newcomer", "k"}, Say("")));
  WorkOff(*queue);
}

TEST_F(FairQueueTest, WorkThatNobodyWantsIsDropped) {
  const auto queue = Make(1);
  bool gone = false;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(
        queue->Add({"t", "k"}, {[this] { said_.push_back("done"); }, [&] { return !gone; }}));
  }
  ASSERT_TRUE(queue->Add({"t", "k"}, Say("last")));
  gone = true;
  WorkOff(*queue);
  EXPECT_EQ(said_, Words{"last"});
  EXPECT_EQ(queue->counts().dropped, 100U);
}

TEST_F(FairQueueTest, WorkThatIsWantedIsNotDropped) {
  const auto queue = Make(1);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(queue->Add({"t", "k"}, {[this] { said_.push_back("done"); }, [] { return true; }}));
  }
  WorkOff(*queue);
  EXPECT_EQ(said_.size(), 100U);
}

// With one tenant busy on every thread it may have, another finds a thread that is free.
TEST_F(FairQueueTest, ATenantLeavesThreads) {
  const auto queue = Make(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([queue] { queue->Work(); });
  }
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> running = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(queue->Add({"hostile", std::to_string(i)}, {[&, gone] {
                                                              ++running;
                                                              gone.wait();
                                                            },
                                                            nullptr}));
  }
  std::promise<void> served;
  ASSERT_TRUE(queue->Add({"victim", "v"}, {[&] { served.set_value(); }, nullptr}));
  EXPECT_EQ(served.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_LE(running, 2) << "half of the threads";
  go.set_value();
  queue->Stop();
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(running, 20) << "the control: all of it was real work";
}

TEST_F(FairQueueTest, BytesAreHeldWithinAShareAndComeBack) {
  FairLimits limits;
  limits.bytes = 100;
  const auto queue = Make(1, limits);
  std::shared_ptr<void> first = queue->Hold({"one", "k"}, 50).handle;
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(queue->Hold({"one", "k"}, 1).handle, nullptr);
  EXPECT_EQ(queue->Hold({"two", "k"}, 51).handle, nullptr);
  std::shared_ptr<void> second = queue->Hold({"two", "k"}, 25).handle;
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(queue->counts().bytes, 75U);
  first.reset();
  EXPECT_EQ(queue->counts().bytes, 25U);
  EXPECT_NE(queue->Hold({"one", "k"}, 30).handle, nullptr);
}

// Answers that are not read keep further ones of the same tenant from being made, and of no other.
TEST_F(FairQueueTest, ATenantWhoseAnswersAreNotReadWaits) {
  FairLimits limits;
  limits.bytes = 100;
  const auto queue = Make(2, limits);
  std::thread thread([queue] { queue->Work(); });
  std::shared_ptr<void> unread = queue->HoldAnyway({"hostile", "k"}, 80);
  std::promise<void> hostile, victim, end;
  ASSERT_TRUE(queue->Add({"hostile", "h"}, {[&] { hostile.set_value(); }, nullptr}));
  ASSERT_TRUE(queue->Add({"victim", "v"}, {[&] { victim.set_value(); }, nullptr}));
  queue->AddAlways({"hostile", ""}, [&] { end.set_value(); });
  std::future<void> made = hostile.get_future();
  EXPECT_EQ(victim.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(end.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(made.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  unread.reset();
  EXPECT_EQ(made.wait_for(std::chrono::seconds(20)), std::future_status::ready) << "the control";
  queue->Stop();
  thread.join();
}

// An answer that was begun is what holds the memory, and only its next step frees it.
TEST_F(FairQueueTest, TheRestOfAnAnswerWaitsForNoRoomAndComesBeforeNewOnes) {
  FairLimits limits;
  limits.bytes = 100;
  limits.requests_per_key = 1;
  const auto queue = Make(2, limits);
  std::shared_ptr<void> unread = queue->HoldAnyway({"slow", "k"}, 80);
  ASSERT_TRUE(queue->Add({"slow", "s"}, Say("new")));
  ASSERT_FALSE(queue->Add({"slow", "s"}, Say("one too many"))) << "the control";
  queue->AddRest({"slow", "s"}, Say("first step"));
  std::promise<void> stepped;
  queue->AddRest({"slow", "s"}, {[&] { stepped.set_value(); }, nullptr});
  std::thread thread([queue] { queue->Work(); });
  ASSERT_EQ(stepped.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(said_, Words{"first step"});
  unread.reset();
  queue->Stop();
  thread.join();
  EXPECT_EQ(said_, (Words{"first step", "new"}));
}

// Bodies are freed by the tasks that wait to read them. If they made those tasks wait, a tenant that once had its share in
// memory would never be served again.
TEST_F(FairQueueTest, BodiesDoNotHoldUpTheTasksThatFreeThem) {
  FairLimits limits;
  limits.bytes = 100;
  const auto queue = Make(2, limits);
  std::vector<std::shared_ptr<void>> bodies;
  for (;;) {
    std::shared_ptr<void> body = queue->Hold({"one", std::to_string(bodies.size())}, 9).handle;
    if (body == nullptr) {
      break;
    }
    bodies.push_back(std::move(body));
  }
  ASSERT_GT(queue->counts().bytes, 50U) << "more than it leaves free";
  std::promise<void> done;
  for (size_t i = 0; i < bodies.size(); ++i) {
    const auto read = [&, i] {
      bodies[i].reset();
      if (i + 1 == bodies.size()) {
        done.set_value();
      }
    };
    ASSERT_TRUE(queue->Add({"one", std::to_string(i)}, {read, nullptr}));
  }
  std::thread thread([queue] { queue->Work(); });
  EXPECT_EQ(done.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  queue->Stop();
  thread.join();
  EXPECT_EQ(queue->counts().bytes, 0U);
}

// All keys of a tenant together have 160 here: as much as the tenant leaves free.
TEST_F(FairQueueTest, AKeyLeavesBytesToTheOtherKeysOfItsTenant) {
  FairLimits limits;
  limits.bytes = 320;
  const auto queue = Make(1, limits);
  std::vector<std::shared_ptr<void>> handles;
  const auto take_all = [&](const std::string& key) {
    size_t taken = 0;
    for (;;) {
      FairQueue::Holding one = queue->Hold({"t", key}, 1);
      if (one.handle == nullptr) {
        EXPECT_EQ(one.full, FairQueue::Holder::kKey) << key;
        return taken;
      }
      handles.push_back(std::move(one.handle));
      ++taken;
    }
  };
  EXPECT_EQ(take_all("one"), 80U) << "the control: it is refused in the end";
  EXPECT_EQ(take_all("two"), 40U);
  EXPECT_EQ(take_all("three"), 20U) << "then the last eighth is left";
  EXPECT_EQ(take_all("four"), 1U) << "it held nothing";
  EXPECT_NE(queue->Hold({"other", "one"}, 100).handle, nullptr) << "another tenant's key";
  handles.clear();
  EXPECT_EQ(queue->counts().bytes, 0U);
  EXPECT_EQ(take_all("one"), 80U) << "it is served again";
}

// A key that holds nothing may take one body of any size, but only of what its tenant has.
TEST_F(FairQueueTest, ATenantsShareBoundsAllOfItsKeys) {
  FairLimits limits;
  limits.bytes = 100;
  const auto queue = Make(1, limits);
  std::vector<std::shared_ptr<void>> handles;
  for (;;) {
    FairQueue::Holding one = queue->Hold({"t", std::to_string(handles.size())}, 10);
    if (one.handle == nullptr) {
      EXPECT_EQ(one.full, FairQueue::Holder::kTenant);
      break;
    }
    handles.push_back(std::move(one.handle));
  }
  EXPECT_EQ(handles.size(), 5U);
}

// Answers that are not read keep further ones of the same key from being made, and of no other.
TEST_F(FairQueueTest, AKeyWhoseAnswersAreNotReadWaits) {
  FairLimits limits;
  limits.bytes = 160;
  const auto queue = Make(2, limits);
  std::shared_ptr<void> unread = queue->HoldAnyway({"t", "slow"}, 41);
  ASSERT_EQ(queue->Hold({"t", "slow"}, 1).handle, nullptr);
  std::thread thread([queue] { queue->Work(); });
  std::promise<void> slow, prompt, again;
  ASSERT_TRUE(queue->Add({"t", "slow"}, {[&] { slow.set_value(); }, nullptr}));
  std::future<void> made = slow.get_future();
  // It answers, too, and is served again while it holds something.
  ASSERT_TRUE(queue->Add({"t", "prompt"}, {[&] { prompt.set_value(); }, nullptr}));
  EXPECT_EQ(prompt.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  const std::shared_ptr<void> read = queue->HoldAnyway({"t", "prompt"}, 10);
  ASSERT_TRUE(queue->Add({"t", "prompt"}, {[&] { again.set_value(); }, nullptr}));
  EXPECT_EQ(again.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(made.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  unread.reset();
  EXPECT_EQ(made.wait_for(std::chrono::seconds(20)), std::future_status::ready) << "the control";
  queue->Stop();
  thread.join();
}

// A key that follows events always has an answer on its way. Bodies of the other keys do not make it wait, however much
// they hold; answers of the other keys that leave it nothing do.
TEST_F(FairQueueTest, BodiesOfOtherKeysDoNotHoldUpAKeyThatReadsItsAnswers) {
  FairLimits limits;
  limits.bytes = 160;
  const auto queue = Make(2, limits);
  std::thread thread([queue] { queue->Work(); });
  const auto asks = [&] {
    auto done = std::make_shared<std::promise<void>>();
    EXPECT_TRUE(queue->Add({"t", "reader"}, {[done] { done->set_value(); }, nullptr}));
    return done->get_future();
  };
  const std::shared_ptr<void> stream = queue->HoldAnyway({"t", "reader"}, 1);
  std::vector<std::shared_ptr<void>> bodies;
  for (const auto& [key, bytes] :
       {std::pair("one", 39), std::pair("two", 20), std::pair("three", 19)}) {
    bodies.push_back(queue->Hold({"t", key}, static_cast<size_t>(bytes)).handle);
    ASSERT_NE(bodies.back(), nullptr) << key;
  }
  EXPECT_EQ(asks().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  bodies.clear();

  std::shared_ptr<void> unread = queue->HoldAnyway({"t", "one"}, 79);
  std::future<void> later = asks();
  EXPECT_EQ(later.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout)
      << "the control";
  unread.reset();
  EXPECT_EQ(later.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  queue->Stop();
  thread.join();
}

// What waits for room is done when the queue ends.
TEST_F(FairQueueTest, AKeyThatWaitsForRoomEndsWithTheQueue) {
  FairLimits limits;
  limits.bytes = 160;
  const auto queue = Make(1, limits);
  const std::shared_ptr<void> unread = queue->HoldAnyway({"t", "slow"}, 60);
  ASSERT_TRUE(queue->Add({"t", "slow"}, Say("slow")));
  ASSERT_TRUE(queue->Add({"t", "prompt"}, Say("prompt")));
  WorkOff(*queue);
  EXPECT_EQ(said_, (Words{"slow", "prompt"}));
}

TEST_F(FairQueueTest, AnEmptyBodyIsHeldLikeAnyOther) {
  const auto queue = Make(1);
  std::shared_ptr<void> empty = queue->Hold({"t", "k"}, 0).handle;
  std::shared_ptr<void> other = queue->HoldAnyway({"t", "k"}, 5);
  EXPECT_NE(empty, nullptr);
  other.reset();
  empty.reset();
  EXPECT_EQ(queue->counts().bytes, 0U);
}

TEST_F(FairQueueTest, AKeyHoldsMuchFromTheAverageOfItsTenantOn) {
  const auto queue = Make(1);
  EXPECT_TRUE(queue->KeyHoldsMuch({"t", "one"})) << "as much as every other: nothing";
  const auto large = queue->HoldAnyway({"t", "large"}, 90);
  const auto small = queue->HoldAnyway({"t", "small"}, 10);
  const auto other = queue->HoldAnyway({"other", "larger"}, 900);
  EXPECT_TRUE(queue->KeyHoldsMuch({"t", "large"}));
  EXPECT_FALSE(queue->KeyHoldsMuch({"t", "small"}));
  EXPECT_FALSE(queue->KeyHoldsMuch({"t", "one"}));
}

TEST_F(FairQueueTest, ATenantHoldsMuchFromTheAverageOn) {
  const auto queue = Make(1);
  EXPECT_TRUE(queue->HoldsMuch("one")) << "as much as every other: nothing";
  const auto large = queue->HoldAnyway({"large", "k"}, 900);
  const auto small = queue->HoldAnyway({"small", "k"}, 100);
  EXPECT_TRUE(queue->HoldsMuch("large"));
  EXPECT_FALSE(queue->HoldsMuch("small"));
  EXPECT_FALSE(queue->HoldsMuch("one"));
}

TEST_F(FairQueueTest, AHandleMayOutliveTheQueue) {
  std::shared_ptr<void> handle;
  {
    const auto queue = Make(1);
    handle = queue->HoldAnyway({"t", "k"}, 1);
  }
  handle.reset();
}

// The kernel knows the patient thread by its priority.
TEST(Workers, OneThreadIsPatient) {
  const auto patient_threads = [] {
    int count = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      const auto thread = static_cast<id_t>(std::stoul(task.path().filename().string()));
      count += ::getpriority(PRIO_PROCESS, thread) - ::getpriority(PRIO_PROCESS, 0) >= 5 ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(patient_threads(), 0);
  const Workers workers(3);
  // The thread lowers its priority itself.
  for (int i = 0; i < 1000 && patient_threads() == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(patient_threads(), 1);
}

}  // namespace
}  // namespace coffer::daemon
