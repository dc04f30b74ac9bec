// SPDX-License-Identifier: Apache-2.0
//
// A process that writes the store is killed at random moments, hundreds of times: what it had acknowledged is there when
// the store is opened again, and every call is in a state that the state machine allows.
//
// The writer says on a pipe what it is about to do and, once the store has answered, that it is done. From that the
// test knows for each call the states it may be in. Another process holds a call of its own all the time: nobody may
// touch it. The control throws the write-ahead log away after the kill, and the same check must notice. SIGKILL
// does not lose what the kernel has; a loss of power is not tested here.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "store/admission.h"
#include "store/call_list.h"
#include "store/recovery.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "tests/support/run.h"
#include "tests/support/store_state.h"

namespace coffer::store {
namespace {

using test::Strings;

constexpr int kRounds = 240;
constexpr int kMostCalls = 40;  // of one writer

TenantId Us() { return TenantId::Local(); }

struct Message {
  int call = 0;  // its number in this round: the idempotency key
  CallState state = CallState::kAdmitted;
  bool done = false;  // acknowledged; otherwise about to be asked for
};

AdmitRequest RequestOf(int round, int call) {
  AdmitRequest request;
  request.identity.agent = "bot";
  request.identity.tool = "tool-" + std::to_string(call % 3);
  request.args_hash = "sha256:" + std::to_string(call);
  request.idempotency_key = std::to_string(round) + "/" + std::to_string(call);
  request.request_hash = "h";
  request.quotas.tool.calls = {{1'000'000, std::chrono::hours(1)}};
  return request;
}

StoreOptions OptionsOf(int round) {
  StoreOptions options;
  options.fsync = round % 8 == 0;  // the slow way now and then
  return options;
}

// Never returns. Every call takes another way through the states.
[[noreturn]] void Write(const std::string& path, int round, int out) {
  const auto say = [&](int call, CallState state, bool done) {
    const Message message{call, state, done};
    if (::write(out, &message, sizeof(message)) != sizeof(message)) {
      ::_exit(3);
    }
  };
  const auto go = [&](int call, CallState state, const Status& status) {
    if (!status.ok()) {
      ::_exit(4);
    }
    say(call, state, true);
  };
  Result<Store> store = Store::Open(path, OptionsOf(round));
  if (!store.ok()) {
    ::_exit(2);
  }
  for (int call = 0; call < kMostCalls; ++call) {
    say(call, CallState::kAdmitted, false);
    const Result<Admission> admission = AdmitCall(*store, RequestOf(round, call));
    if (!admission.ok() || admission->verdict != AdmitVerdict::kAdmitted) {
      ::_exit(4);
    }
    say(call, CallState::kAdmitted, true);
    const std::string& id = admission->call_id;
    CallEnd end;
    end.receipt = std::string(static_cast<size_t>(call) * 300, 'r');
    end.result = "result " + std::to_string(call);
    if (call % 4 == 1) {
      say(call, CallState::kRefused, false);
      end.outcome = Outcome::kDenied;
      go(call, CallState::kRefused, RefuseCall(*store, Us(), id, end));
      continue;
    }
    if (call % 4 == 2) {
      say(call, CallState::kGated, false);
      go(call, CallState::kGated, GateCall(*store, Us(), id, {}));
    }
    say(call, CallState::kRecorded, false);
    go(call, CallState::kRecorded, RecordCall(*store, Us(), id, {.args_redacted = "{}"}));
    say(call, CallState::kStarted, false);
    go(call, CallState::kStarted, StartCall(*store, Us(), id, {::getpid(), 1, "boot"}));
    if (call % 4 == 3 && call % 8 != 3) {
      continue;  // still running when it dies
    }
    say(call, CallState::kFinished, false);
    end.outcome = Outcome::kSuccess;
    go(call, CallState::kFinished, FinishCall(*store, Us(), id, end));
    (void)store->Maintain().ok();
  }
  ::_exit(0);
}

// After recovery: what a call may be that was last acknowledged in one state and maybe asked to go to another.
CallState Recovered(CallState state) {
  if (HasEnded(state)) {
    return state;
  }
  return state == CallState::kStarted ? CallState::kUnknown : CallState::kRefused;
}

struct Known {
  std::optional<CallState> acknowledged;
  std::optional<CallState> asked;
};

class StoreKillTest : public ::testing::Test {
 protected:
  std::string Path() const { return dir_ / "state"; }

  // Kills a writer `delay` after it has said `messages` things; returns all that it said.
  std::map<int, Known> KillOne(int round, int messages, std::chrono::microseconds delay) {
    int pipe_ends[2];
    EXPECT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
    EXPECT_GT(::fcntl(pipe_ends[1], F_SETPIPE_SZ, 1 << 18), 0);  // all it may say fits
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(pipe_ends[0]);
      Write(Path(), round, pipe_ends[1]);
    }
    ::close(pipe_ends[1]);
    std::map<int, Known> known;
    const auto listen = [&] {
      Message message;
      if (::read(pipe_ends[0], &message, sizeof(message)) != sizeof(message)) {
        return false;
      }
      Known& call = known[message.call];
      if (message.done) {
        call = {message.state, std::nullopt};
        ++acknowledged_;
      } else {
        call.asked = message.state;
      }
      return true;
    };
    for (int i = 0; i < messages && listen(); ++i) {
    }
    ::usleep(static_cast<useconds_t>(delay.count()));  // the random moment
    ::kill(child, SIGKILL);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    killed_ += WIFSIGNALED(status) ? 1 : 0;
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0)
        << "the writer failed: " << WEXITSTATUS(status);
    while (listen()) {
    }
    ::close(pipe_ends[0]);
    return known;
  }

  // What is wrong with the store after a round; empty if nothing is.
  Strings Check(Store& store, int round, const std::map<int, Known>& known) {
    Strings wrong;
    const auto complain = [&](int call, const std::string& words) {
      wrong.push_back("round " + std::to_string(round) + " call " + std::to_string(call) + ": " +
                      words);
    };
    for (const auto& [call, state] : known) {
      std::set<std::optional<CallState>> allowed;
      if (state.acknowledged.has_value()) {
        allowed.insert(Recovered(*state.acknowledged));
      } else {
        allowed.insert(std::nullopt);  // never admitted
      }
      if (state.asked.has_value()) {
        allowed.insert(Recovered(*state.asked));
      }
      // Asking again with the same key tells what became of it; a refusal by recovery has freed the key.
      const Result<Admission> answer = AdmitCall(store, RequestOf(round, call));
      if (!answer.ok()) {
        complain(call, answer.error().message);
        continue;
      }
      std::optional<CallState> found;
      if (answer->verdict == AdmitVerdict::kReplay) {
        found = answer->state;
        const bool ended_by_writer =
            state.acknowledged.has_value() && HasEnded(*state.acknowledged);
        if (ended_by_writer && answer->result != "result " + std::to_string(call)) {
          complain(call, "its result is lost");
        }
      } else if (answer->verdict == AdmitVerdict::kAdmitted) {
        // Free: never admitted, or refused by recovery. Both mean that nothing ran.
        found =
            allowed.count(std::nullopt) != 0 ? std::nullopt : std::optional(CallState::kRefused);
        if (state.acknowledged.has_value() && HasEnded(*state.acknowledged)) {
          complain(call, "it had ended and would run again");
        }
        CallEnd end;
        if (!RefuseCall(store, Us(), answer->call_id, end, KeyFate::kRelease).ok()) {
          complain(call, "the test's own call cannot be refused");
        }
      }
      if (allowed.count(found) == 0) {
        complain(call, "is " + std::string(found ? CallStateName(*found) : "not there"));
      }
    }
    return wrong;
  }

  test::TempDir dir_;
  int killed_ = 0;
  int acknowledged_ = 0;
};

TEST_F(StoreKillTest, NothingAcknowledgedIsLost) {
  // A neighbour with a call that runs all the time.
  Result<Store> neighbour = Store::Open(Path());
  ASSERT_TRUE(neighbour.ok()) << neighbour.error().message;
  ASSERT_TRUE(EnsureTenant(*neighbour, Us()).ok());
  AdmitRequest own = RequestOf(-1, 0);
  const Result<Admission> held = AdmitCall(*neighbour, own);
  ASSERT_TRUE(held.ok());
  ASSERT_TRUE(RecordAndStartCall(*neighbour, Us(), held->call_id, {}, {1, 1, "b"}).ok());

  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  int recovered = 0;
  int rounds = 0;
  for (; rounds < kRounds || killed_ < 200; ++rounds) {
    ASSERT_LT(rounds, 4 * kRounds) << "too few writers were still alive when they were killed";
    // Every third is killed in its first moments, most of them while they open the store.
    const bool early = rounds % 3 == 0;
    const int messages = early ? 0 : static_cast<int>(random() % 120);
    const auto delay = std::chrono::microseconds(random() % (early ? 5000 : 400));
    const std::map<int, Known> known = KillOne(rounds, messages, delay);
    Result<Store> store = Store::Open(Path(), OptionsOf(1));
    ASSERT_TRUE(store.ok()) << store.error().message;
    for (const RecoveredCall& one : store->recovered()) {
      ASSERT_NE(one.call.identity.call_id, held->call_id) << "a living process lost its call";
      ASSERT_TRUE(one.call.state == Recovered(one.left_in)) << CallStateName(one.left_in);
      ASSERT_TRUE(FinishCleanup(*store, Us(), one.call.identity.call_id).ok());
      ++recovered;
    }
    const Result<std::vector<Call>> open = OpenCalls(*store, AllTenants());
    ASSERT_TRUE(open.ok());
    ASSERT_EQ(open->size(), 1u) << "only the neighbour's";
    const Strings wrong = Check(*store, rounds, known);
    ASSERT_TRUE(wrong.empty()) << wrong.front() << " (and " << wrong.size() - 1 << " more)";
    if (rounds % 20 == 0) {
      const Status whole = test::CheckIntegrity(*store);
      ASSERT_TRUE(whole.ok()) << whole.error().message;
    }
  }
  CallEnd end;
  end.outcome = Outcome::kSuccess;
  EXPECT_TRUE(FinishCall(*neighbour, Us(), held->call_id, end).ok());
  EXPECT_GE(killed_, 200);
  EXPECT_GT(recovered, 50) << "the kills must hit calls that are under way";
  // Every admitted call took from the counters, and nothing else did.
  size_t calls = 0;
  PageRequest page{1000, ""};
  do {
    const Result<Page<Call>> some = ListCalls(*neighbour, Us(), {}, page);
    ASSERT_TRUE(some.ok());
    calls += some->rows.size();
    page.cursor = some->next;
  } while (!page.cursor.empty());
  const Result<Spent> spent = test::TenantSpent(*neighbour, Us());
  ASSERT_TRUE(spent.ok());
  EXPECT_EQ(spent->calls, calls);
  RecordProperty("killed", killed_);
  RecordProperty("acknowledged", acknowledged_);
  RecordProperty("recovered", recovered);
  std::printf("%d writers killed in %d rounds, %d transitions acknowledged, %d calls recovered\n",
              killed_, rounds, acknowledged_, recovered);
}

TEST_F(StoreKillTest, ControlALostLogIsNoticed) {
  {
    Result<Store> store = Store::Open(Path());
    ASSERT_TRUE(store.ok()) << store.error().message;
    ASSERT_TRUE(EnsureTenant(*store, Us()).ok());
  }
  {
    Result<std::unique_ptr<Connection>> db =
        Connection::Open(Path() + "/coffer.db", std::chrono::seconds(5));
    ASSERT_TRUE(db.ok() && (*db)->RunCheckpoint(Connection::Checkpoint::kRestart).ok());
  }
  const std::map<int, Known> known = KillOne(1, 20, std::chrono::microseconds(0));
  std::filesystem::remove(Path() + "/coffer.db-wal");
  std::filesystem::remove(Path() + "/coffer.db-shm");
  Result<Store> store = Store::Open(Path());
  ASSERT_TRUE(store.ok()) << store.error().message;
  EXPECT_FALSE(Check(*store, 1, known).empty());
}

}  // namespace
}  // namespace coffer::store
