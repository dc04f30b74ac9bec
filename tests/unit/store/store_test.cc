// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "store/migrations.h"
#include "store/sqlite.h"
#include "tests/support/store_state.h"
#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

namespace fs = std::filesystem;

class OpenTest : public StoreTest {
 protected:
  std::string File(const std::string& name) const { return Path() + "/" + name; }
  void Close() { store_.reset(); }
  std::string OpenCode() { return Code(Store::Open(Path(), Options())); }
  // Everything into coffer.db, as after a quiet time; the store is closed then.
  void Settle() {
    Close();
    auto db = Must(Connection::Open(File("coffer.db"), seconds(5)));
    ASSERT_TRUE(Must(db->RunCheckpoint(Connection::Checkpoint::kRestart)));
    db.reset();
    fs::remove(File("coffer.db-wal"));
  }
  void Sql(const std::string& text) {
    Must(Must(Connection::Open(File("coffer.db"), seconds(5)))->Script(text));
  }
};

TEST_F(OpenTest, KeepsStrangersOut) {
  EXPECT_EQ(fs::status(Path()).permissions(), fs::perms::owner_all);
  for (const char* name : {"coffer.db", "coffer.db-wal", "coffer.db-shm", "owners"}) {
    const fs::perms mode = fs::status(File(name)).permissions();
    EXPECT_EQ(mode & (fs::perms::group_all | fs::perms::others_all), fs::perms::none) << name;
  }
  Close();
  fs::permissions(Path(), fs::perms(0770));
  const Result<Store> open = Store::Open(Path(), Options());
  EXPECT_EQ(Code(open), "store.open");
  EXPECT_NE(open.error().message.find("written by others"), std::string::npos);
}

TEST_F(OpenTest, NeedsAParentDirectory) {
  EXPECT_EQ(Code(Store::Open(dir_ / "no/such/place")), "store.open");
}

TEST_F(OpenTest, RefusesANewerSchema) {
  const int64_t newest =
      Must(store().core().Read([](Connection& db) { return db.Number("PRAGMA user_version"); }));
  Close();
  Sql("PRAGMA user_version = 99");
  const Result<Store> open = Store::Open(Path(), Options());
  ASSERT_EQ(Code(open), "store.newer");
  EXPECT_NE(open.error().message.find("99"), std::string::npos) << open.error().message;
  Sql("PRAGMA user_version = " + std::to_string(newest));
  EXPECT_EQ(OpenCode(), "");
}

TEST_F(OpenTest, RefusesAnotherProgramsDatabase) {
  const std::string other = dir_.MakeDir("other", 0700);
  dir_.Write("other/coffer.db", "");
  Must(Must(Connection::Open(other + "/coffer.db", seconds(5)))
           ->Script("CREATE TABLE songs (name TEXT); INSERT INTO songs VALUES ('x')"));
  EXPECT_EQ(Code(Store::Open(other, Options())), "store.foreign");
  Must(Must(Connection::Open(other + "/coffer.db", seconds(5)))
           ->Script("SELECT count(*) FROM songs"));
}

TEST_F(OpenTest, RefusesGarbageAndLeavesItAlone) {
  Settle();
  const std::string garbage(8192, 'x');
  std::ofstream(File("coffer.db"), std::ios::binary) << garbage;
  const Result<Store> open = Store::Open(Path(), Options());
  EXPECT_EQ(Code(open), "store.corrupt");
  EXPECT_FALSE(open.error().hint.empty());
  EXPECT_EQ(test::ReadFile(File("coffer.db")), garbage) << "never recreated silently";
}

TEST_F(OpenTest, NoticesThatTheDatabaseIsGoneOrEmpty) {
  Settle();
  fs::rename(File("coffer.db"), File("kept"));
  EXPECT_EQ(OpenCode(), "store.corrupt");
  EXPECT_FALSE(fs::exists(File("coffer.db")));
  std::ofstream(File("coffer.db"), std::ios::binary);
  EXPECT_EQ(OpenCode(), "store.corrupt");
  fs::rename(File("kept"), File("coffer.db"));
  EXPECT_EQ(OpenCode(), "");
}

TEST_F(OpenTest, DamageInTheMiddleIsFoundAndSaid) {
  for (int i = 0; i < 200; ++i) {
    Run(Request());
  }
  EXPECT_TRUE(test::CheckIntegrity(store()).ok());
  Settle();
  const auto size = fs::file_size(File("coffer.db"));
  ASSERT_GT(size, 16u * 4096);
  std::fstream file(File("coffer.db"), std::ios::binary | std::ios::in | std::ios::out);
  for (uintmax_t page = 1; page < size / 4096; ++page) {  // all but the first
    file.seekp(static_cast<std::streamoff>(page * 4096 + 8));
    file << std::string(2000, '\xee');
  }
  file.close();
  const Result<Store> open = Store::Open(Path(), Options());
  EXPECT_EQ(Code(open), "store.corrupt") << "recovery reads the calls";
}

TEST_F(OpenTest, AStateDirectoryThatCannotBeWrittenIsRefused) {
  Settle();
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0) {  // permissions do not stop root
      for (const auto& entry : fs::recursive_directory_iterator(Path())) {
        (void)!::chown(entry.path().c_str(), 65534, 65534);
      }
      (void)!::chown(Path().c_str(), 65534, 65534);
      if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) {
        ::_exit(3);
      }
    }
    (void)!::chmod(Path().c_str(), 0500);
    for (const char* name : {"coffer.db", "owners"}) {
      (void)!::chmod(File(name).c_str(), 0400);
    }
    const Result<Store> open = Store::Open(Path(), Options());
    const bool said = !open.ok() && !open.error().message.empty() &&
                      open.error().kind == ErrorKind::kHost && open.error().sys_errno == EACCES;
    ::_exit(said ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ::chmod(Path().c_str(), 0700);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(OpenTest, AFailedFsyncStopsEverythingThatMustLast) {
  Close();
  StoreOptions options = Options();
  options.fsync = true;
  Store durable = Must(Store::Open(Path(), options));
  Must(durable.Flush());
  // The store's own descriptor of the log becomes a pipe, which cannot be synced.
  int pipe_ends[2];
  ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
  int replaced = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = fs::read_symlink(entry.path(), gone).string();
    const int fd = std::stoi(entry.path().filename().string());
    if (target == File("coffer.db-wal") && (::fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) {
      ASSERT_EQ(::dup2(pipe_ends[0], fd), fd);
      ++replaced;
    }
  }
  ASSERT_EQ(replaced, 1);
  AdmitRequest request = Request();
  const Admission admission = Must(AdmitCall(durable, request));  // promises nothing about the disk
  EXPECT_EQ(Code(RecordCall(durable, a_, admission.call_id, {})), "store.io");
  EXPECT_EQ(Code(durable.Flush()), "store.io") << "and so does everything after it";
  EXPECT_EQ(Code(EnsureTenant(durable, Id("late"))), "store.io");
}

TEST_F(OpenTest, ManyThreadsShareOneStore) {
  Close();
  StoreOptions options = Options();
  options.fsync = true;
  Store shared = Must(Store::Open(Path(), options));
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const Result<Admission> admission = AdmitCall(shared, Request());
        CallEnd end;
        end.outcome = Outcome::kSuccess;
        const bool good =
            admission.ok() && RecordCall(shared, a_, admission->call_id, {}).ok() &&
            StartCall(shared, a_, admission->call_id, {}, Durability::kCommitted).ok() &&
            shared.Flush().ok() && FinishCall(shared, a_, admission->call_id, end).ok() &&
            shared.Maintain().ok();
        failures += good ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(Must(test::TenantSpent(shared, a_)).calls, 40u);
}

TEST_F(OpenTest, TheLastToCloseLeavesAShortLog) {
  CallEnd end;
  end.outcome = Outcome::kDenied;
  end.receipt = std::string(2'000'000, 'r');
  Must(RefuseCall(store(), a_, Admitted(Request()), end));
  ASSERT_GT(fs::file_size(File("coffer.db-wal")), 2'000'000u);
  {
    const Store other = Must(Store::Open(Path(), Options()));
    Close();  // somebody else still uses it: no waiting, nothing lost
  }
  Reopen();
  Must(RefuseCall(store(), a_, Admitted(Request()), end));
  Close();
  EXPECT_LT(fs::file_size(File("coffer.db-wal")), 1'000'000u);
  Reopen();
  EXPECT_EQ(Must(ListCalls(store(), a_, {}, {})).rows.size(), 2u);
}

TEST_F(OpenTest, TheLogStaysShortIfSomebodyMaintains) {
  const auto wal = [&] { return fs::file_size(File("coffer.db-wal")); };
  CallEnd end;
  end.outcome = Outcome::kDenied;
  end.receipt = std::string(100'000, 'r');
  const auto write = [&] {
    for (int i = 0; i < 60; ++i) {
      Must(RefuseCall(store(), a_, Admitted(Request()), end));
    }
  };
  write();
  Must(store().Maintain());
  const auto once = wal();
  ASSERT_GT(once, 4u << 20);
  for (int i = 0; i < 4; ++i) {
    write();
    Must(store().Maintain());
  }
  EXPECT_LT(wal(), 2 * once) << "the file starts anew when all of it was moved";
}

}  // namespace
}  // namespace coffer::store
