// SPDX-License-Identifier: Apache-2.0
//
// Several processes, one state directory.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>

#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

// A process that runs `work` and writes what it returns; then it stays, with its store open, until it is killed.
class Worker {
 public:
  explicit Worker(const std::function<std::string()>& work) {
    int out[2];
    EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::string words;
      try {
        words = work();
      } catch (const std::exception& problem) {
        words = std::string("error ") + problem.what();
      }
      words += '\n';
      (void)!::write(out[1], words.data(), words.size());
      for (;;) {
        ::pause();
      }
    }
    ::close(out[1]);
    out_ = out[0];
  }
  Worker(Worker&& other) noexcept : pid_(std::exchange(other.pid_, -1)), out_(other.out_) {}
  ~Worker() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      ::close(out_);
    }
  }
  std::string Answer() const {
    std::string words;
    char letter = 0;
    while (::read(out_, &letter, 1) == 1 && letter != '\n') {
      words += letter;
    }
    return words;
  }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

class ProcessesTest : public ::testing::Test {
 protected:
  std::string Path() const { return dir_ / "state"; }
  AdmitRequest Keyed() const {
    AdmitRequest request;
    request.identity.agent = "bot";
    request.identity.tool = "pay";
    request.idempotency_key = "k";
    request.request_hash = "h";
    return request;
  }
  test::TempDir dir_;
};

TEST_F(ProcessesTest, FourteenRetriesOfOneCallRunItOnce) {
  const std::string runs = dir_.Write("runs", "");
  std::vector<Worker> workers;
  for (int i = 0; i < 14; ++i) {
    // All of them also race to make the store.
    workers.emplace_back([&]() -> std::string {
      StoreOptions options;
      options.fsync = false;
      static std::optional<Store> store;  // lives as long as the process
      store.emplace(Must(Store::Open(Path(), options)));
      Must(EnsureTenant(*store, TenantId::Local()));
      for (;;) {
        const Admission admission = Must(AdmitCall(*store, Keyed()));
        if (admission.verdict == AdmitVerdict::kReplay) {
          return admission.call_id + " " + admission.result;
        }
        if (admission.verdict == AdmitVerdict::kInFlight) {
          ::usleep(1000);  // as Retry-After asks
          continue;
        }
        if (admission.verdict != AdmitVerdict::kAdmitted) {
          return "error " + admission.reason;
        }
        Must(RecordCall(*store, TenantId::Local(), admission.call_id, {}));
        Must(StartCall(*store, TenantId::Local(), admission.call_id, Must(ThisProcess())));
        const int file = ::open(runs.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
        (void)!::write(file, "paid\n", 5);
        ::close(file);
        CallEnd end;
        end.outcome = Outcome::kSuccess;
        end.result = "done";
        Must(FinishCall(*store, TenantId::Local(), admission.call_id, end));
      }
    });
  }
  std::map<std::string, int> answers;
  for (const Worker& worker : workers) {
    ++answers[worker.Answer()];
  }
  EXPECT_EQ(answers.size(), 1u) << answers.begin()->first << " | " << answers.rbegin()->first;
  EXPECT_EQ(answers.begin()->second, 14);
  EXPECT_TRUE(answers.begin()->first.ends_with(" done")) << answers.begin()->first;
  EXPECT_EQ(test::ReadFile(runs), "paid\n") << "exactly one of them ran it";
}

TEST_F(ProcessesTest, OneOfManyMakesTheFirstKey) {
  std::vector<Worker> workers;
  for (int i = 0; i < 6; ++i) {
    workers.emplace_back([&]() -> std::string {
      StoreOptions options;
      options.fsync = false;
      Store store = Must(Store::Open(Path(), options));
      return Must(CreateFirstKey(store, TenantId::Local(), {Role::kAgent, "local", Nanos(0)}))
                     .has_value()
                 ? "made"
                 : "was there";
    });
  }
  std::map<std::string, int> answers;
  for (const Worker& worker : workers) {
    ++answers[worker.Answer()];
  }
  EXPECT_EQ(answers, (std::map<std::string, int>{{"made", 1}, {"was there", 5}}));
}

TEST_F(ProcessesTest, LimitsHoldAcrossProcesses) {
  std::vector<Worker> workers;
  for (int i = 0; i < 6; ++i) {
    workers.emplace_back([&]() -> std::string {
      StoreOptions options;
      options.fsync = false;
      Store store = Must(Store::Open(Path(), options));
      Must(EnsureTenant(store, TenantId::Local()));
      int admitted = 0;
      for (int n = 0; n < 10; ++n) {
        AdmitRequest request = Keyed();
        request.idempotency_key.clear();
        request.quotas.tool.calls = {{25, hours(1)}};
        const Admission admission = Must(AdmitCall(store, request));
        if (admission.verdict == AdmitVerdict::kAdmitted) {
          ++admitted;
          CallEnd end;
          Must(RefuseCall(store, TenantId::Local(), admission.call_id, end));
        }
      }
      return std::to_string(admitted);
    });
  }
  int admitted = 0;
  for (const Worker& worker : workers) {
    admitted += std::stoi(worker.Answer());
  }
  EXPECT_EQ(admitted, 25);
}

TEST_F(ProcessesTest, AKilledProcessLeavesItsCallsToTheNext) {
  std::string id;
  {
    const Worker worker([&]() -> std::string {
      static std::optional<Store> store;
      store.emplace(Must(Store::Open(Path())));
      Must(EnsureTenant(*store, TenantId::Local()));
      const Admission admission = Must(AdmitCall(*store, Keyed()));
      Must(RecordAndStartCall(*store, TenantId::Local(), admission.call_id, {},
                              Must(ThisProcess())));
      return admission.call_id;
    });
    id = worker.Answer();
    Store living = Must(Store::Open(Path()));
    EXPECT_TRUE(living.recovered().empty());
    EXPECT_EQ(Must(FindCall(living, TenantId::Local(), id))->state, CallState::kStarted);
  }
  Store next = Must(Store::Open(Path()));
  ASSERT_EQ(next.recovered().size(), 1u);
  EXPECT_EQ(next.recovered()[0].call.identity.call_id, id);
  EXPECT_FALSE(Must(IsAlive(*next.recovered()[0].call.supervisor)));
}

}  // namespace
}  // namespace coffer::store
