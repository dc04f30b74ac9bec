// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite.h"

#include <errno.h>
#include <sqlite3.h>
#include <unistd.h>

#include <limits>

#include "tests/support/store_state.h"
#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

class SqliteTest : public ::testing::Test {
 protected:
  SqliteTest() {
    path_ = dir_.Write("x.db", "");
    db_ = Must(Connection::Open(path_, milliseconds(50)));
    Must(db_->Script("PRAGMA journal_mode = WAL; CREATE TABLE t (a, b)"));
  }
  test::TempDir dir_;
  std::string path_;
  std::unique_ptr<Connection> db_;
};

TEST_F(SqliteTest, BindsWhatItIsGiven) {
  const std::string odd("a\0'; DROP TABLE t; --", 21);
  Must(db_->Run("INSERT INTO t VALUES (?, ?)", odd, std::numeric_limits<uint64_t>::max()));
  Must(db_->Run("INSERT INTO t VALUES (?, ?)", std::optional<std::string>(), Nanos(-5)));
  Must(db_->Run("INSERT INTO t VALUES (?, ?)", std::string_view(), 7));
  Statement all = Must(db_->Prepare("SELECT a, b FROM t ORDER BY rowid"));
  ASSERT_TRUE(Must(all.Step()));
  EXPECT_EQ(all.Text(0), odd);
  EXPECT_EQ(all.Int(1), std::numeric_limits<int64_t>::max());
  ASSERT_TRUE(Must(all.Step()));
  EXPECT_TRUE(all.IsNull(0));
  EXPECT_EQ(all.Time(1), Nanos(-5));
  EXPECT_EQ(all.Count(1), 0u);
  ASSERT_TRUE(Must(all.Step()));
  EXPECT_FALSE(all.IsNull(0)) << "an empty text is not NULL";
  EXPECT_FALSE(Must(all.Step()));
}

TEST_F(SqliteTest, OneStatementCanBeUsedTwiceAtOnce) {
  Must(db_->Run("INSERT INTO t VALUES (1, 2), (3, 4)"));
  const char* sql = "SELECT a FROM t ORDER BY a";
  Statement outer = Must(db_->Prepare(sql));
  ASSERT_TRUE(Must(outer.Step()));
  {
    Statement inner = Must(db_->Prepare(sql));
    ASSERT_TRUE(Must(inner.Step()));
    EXPECT_EQ(inner.Int(0), 1);
  }
  ASSERT_TRUE(Must(outer.Step()));
  EXPECT_EQ(outer.Int(0), 3);
}

TEST_F(SqliteTest, ATransactionThatIsNotCommittedIsRolledBack) {
  {
    const Transaction transaction = Must(Transaction::Begin(*db_));
    Must(db_->Run("INSERT INTO t VALUES (1, 2)"));
  }
  EXPECT_FALSE(db_->in_transaction());
  EXPECT_EQ(Must(db_->Number("SELECT count(*) FROM t")), 0);
  Transaction kept = Must(Transaction::Begin(*db_));
  Must(db_->Run("INSERT INTO t VALUES (1, 2)"));
  Must(kept.Commit());
  EXPECT_EQ(Must(db_->Number("SELECT count(*) FROM t")), 1);
}

TEST_F(SqliteTest, WaitsForAnotherWriterAndThenSaysBusy) {
  auto other = Must(Connection::Open(path_, milliseconds(50)));
  const Transaction held = Must(Transaction::Begin(*other));
  const Nanos before = BootTime();
  EXPECT_EQ(Code(Transaction::Begin(*db_)), "store.busy");
  EXPECT_GE(BootTime() - before, milliseconds(50));
}

TEST_F(SqliteTest, NonsenseIsAnInternalError) {
  EXPECT_EQ(Code(db_->Prepare("SELEKT 1")), "store.sqlite");
}

// The disk is full for as long as one of these lives.
int g_writes_left = 0;
extern "C" ssize_t FullWrite(int fd, const void* bytes, size_t size, off_t at) {
  if (g_writes_left-- > 0) {
    return ::pwrite(fd, bytes, size, at);
  }
  errno = ENOSPC;
  return -1;
}
class FullDisk {
 public:
  explicit FullDisk(int writes_left) {
    g_writes_left = writes_left;
    Set(reinterpret_cast<sqlite3_syscall_ptr>(&FullWrite));
  }
  ~FullDisk() { Set(nullptr); }

 private:
  static void Set(sqlite3_syscall_ptr call) {
    sqlite3_vfs* vfs = ::sqlite3_vfs_find(nullptr);
    for (const char* name : {"pwrite", "pwrite64"}) {
      vfs->xSetSystemCall(vfs, name, call);
    }
  }
};

class FullDiskTest : public StoreTest {};

// Fails the first write, then all but the first, and so on, until everything goes through.
TEST_F(FullDiskTest, NothingAcknowledgedIsLostAndNothingElseIsClaimed) {
  bool all_went = false;
  int failed_runs = 0;
  for (int writes = 0; !all_went && writes < 200; ++writes) {
    std::string id;
    std::optional<CallState> acknowledged;
    all_went = true;
    {
      const FullDisk full(writes);
      const auto note = [&](const Status& status, CallState state) {
        if (status.ok()) {
          acknowledged = state;
        } else {
          EXPECT_EQ(status.error().code, "store.full") << status.error().message;
          all_went = false;
        }
      };
      const Result<Admission> admission = AdmitCall(store(), Request());
      if (admission.ok()) {
        id = admission->call_id;
        note({}, CallState::kAdmitted);
        note(RecordCall(store(), a_, id, {.args_redacted = std::string(9000, 'a')}),
             CallState::kRecorded);
        if (acknowledged == CallState::kRecorded) {
          note(StartCall(store(), a_, id, {}), CallState::kStarted);
        }
        if (acknowledged == CallState::kStarted) {
          CallEnd end;
          end.outcome = Outcome::kSuccess;
          end.receipt = std::string(9000, 'r');
          note(FinishCall(store(), a_, id, end), CallState::kFinished);
        }
      } else {
        EXPECT_EQ(Code(admission), "store.full");
        all_went = false;
      }
    }
    failed_runs += all_went ? 0 : 1;
    if (acknowledged.has_value()) {
      EXPECT_EQ(Found(id).state, *acknowledged) << "after " << writes << " writes";
    }
    Must(test::CheckIntegrity(store()));
    Reopen();
    if (acknowledged.has_value()) {
      const CallState after = Found(id).state;
      EXPECT_TRUE(*acknowledged == CallState::kFinished  ? after == CallState::kFinished
                  : *acknowledged == CallState::kStarted ? after == CallState::kUnknown
                                                         : after == CallState::kRefused)
          << CallStateName(*acknowledged) << " became " << CallStateName(after);
    }
  }
  EXPECT_TRUE(all_went);
  EXPECT_GT(failed_runs, 5) << "the control: the disk was full at several places";
}

}  // namespace
}  // namespace coffer::store
