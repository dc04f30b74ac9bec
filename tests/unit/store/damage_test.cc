// SPDX-License-Identifier: Apache-2.0
//
// The files of an open store are damaged by somebody else. Nothing may be acknowledged from memory that the files do not
// have, nothing that was acknowledged is lost by the refusal, and once the files are whole again it goes on.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "tests/support/store_state.h"
#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

namespace fs = std::filesystem;

class Damage : public StoreTest {
 protected:
  Damage() {
    for (int i = 0; i < 200; ++i) {
      last_ = Run(Request());
    }
  }
  std::string File(const std::string& name) const { return Path() + "/" + name; }

  // By another process: this one would lose SQLite's locks by closing the file.
  static void Elsewhere(const std::function<bool()>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::_exit(work() ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  static void Overwrite(const std::string& file, const std::string& bytes, off_t at = 0) {
    Elsewhere([&] {
      const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
      return fd >= 0 &&
             ::pwrite(fd, bytes.data(), bytes.size(), at) == static_cast<ssize_t>(bytes.size());
    });
  }
  // As SQLite left it: the file is read by another process too.
  std::string Bytes(const std::string& file) {
    const std::string copy = dir_ / ("copy-" + fs::path(file).filename().string());
    Elsewhere([&] { return fs::copy_file(file, copy, fs::copy_options::overwrite_existing); });
    return test::ReadFile(copy).value_or("");
  }
  std::string AdmitCode() { return Code(AdmitCall(store(), Request())); }
  // As the timer of a daemon would, often.
  ::testing::AssertionResult BecomesWhole() {
    Status whole;
    return test::WaitUntil([&] { return (whole = store().Inspect()).ok(); }, test::Seconds(3))
               ? ::testing::AssertionSuccess()
               : ::testing::AssertionFailure() << whole.error().message;
  }
  void ExpectNothingLost() {
    EXPECT_EQ(AdmitCode(), "");
    EXPECT_EQ(Found(last_).state, CallState::kFinished);
    Must(test::CheckIntegrity(store()));
    Reopen();
    EXPECT_EQ(Found(last_).state, CallState::kFinished);
  }

  std::string last_;
};

TEST_F(Damage, AFileThatIsOverwrittenStopsEveryWriteAtOnce) {
  for (const char* name : {"coffer.db", "coffer.db-wal"}) {
    SCOPED_TRACE(name);
    const std::string good = Bytes(File(name));
    ASSERT_FALSE(good.empty());
    EXPECT_EQ(AdmitCode(), "") << "the control";
    const std::string now = Bytes(File(name));
    Overwrite(File(name), std::string(now.size(), 'x'));
    const Result<Admission> refused = AdmitCall(store(), Request());
    ASSERT_EQ(Code(refused), "store.corrupt");
    EXPECT_NE(refused.error().message.find(name), std::string::npos) << refused.error().message;
    EXPECT_FALSE(refused.error().hint.empty());
    EXPECT_FALSE(store().Maintain().ok()) << "nothing of it is moved into the database";
    EXPECT_FALSE(store().Inspect().ok());
    Overwrite(File(name), now);
    EXPECT_EQ(AdmitCode(), "store.corrupt") << "until all of it was read";
    EXPECT_TRUE(BecomesWhole());
    ExpectNothingLost();
  }
}

TEST_F(Damage, AFileThatIsCutOrGoneStopsEveryWrite) {
  const std::string log = File("coffer.db-wal");
  const std::string good = Bytes(log);
  Elsewhere([&] { return ::truncate(log.c_str(), 20) == 0; });
  EXPECT_EQ(AdmitCode(), "store.corrupt");
  Overwrite(log, good);
  EXPECT_TRUE(BecomesWhole());

  fs::rename(log, log + ".away");
  EXPECT_EQ(AdmitCode(), "store.corrupt");
  fs::rename(log + ".away", log);
  EXPECT_TRUE(BecomesWhole());
  ExpectNothingLost();
}

// The same bytes in another file: what we write goes where nobody looks.
TEST_F(Damage, AFileThatIsReplacedStopsEveryWrite) {
  const std::string database = File("coffer.db");
  Elsewhere([&] { return fs::copy_file(database, database + ".other"); });
  fs::rename(database, database + ".ours");
  fs::rename(database + ".other", database);
  const Result<Admission> refused = AdmitCall(store(), Request());
  ASSERT_EQ(Code(refused), "store.corrupt");
  EXPECT_NE(refused.error().message.find("another file"), std::string::npos);
  fs::rename(database + ".ours", database);
  EXPECT_TRUE(BecomesWhole());
  ExpectNothingLost();
}

// Pages in the middle: SQLite has them in memory, so only reading the files again finds it.
TEST_F(Damage, APageInTheMiddleIsFoundByTheTimer) {
  Reopen();  // moves everything into the database
  EXPECT_TRUE(store().Inspect().ok()) << "the control";
  Reopen();
  const std::string database = File("coffer.db");
  const std::string good = Bytes(database);
  ASSERT_GT(good.size(), 16U * 4096);
  Overwrite(database, std::string(good.size() - 4096, 'x'), 4096);
  EXPECT_EQ(Code(store().Inspect()), "store.corrupt");
  EXPECT_EQ(AdmitCode(), "store.corrupt");
  Overwrite(database, good);
  EXPECT_TRUE(BecomesWhole());
  ExpectNothingLost();
}

// A large one is not read for this alone; what is wrong with its files as a whole is still seen, and then it is read.
TEST_F(Damage, ALargeStoreIsReadOnlyToSeeThatItIsWholeAgain) {
  store_.reset();
  StoreOptions options = Options();
  options.inspect_most = 4096;
  store_ = std::make_unique<Store>(Must(Store::Open(Path(), options)));
  const std::string database = File("coffer.db");
  const std::string good = Bytes(database);
  ASSERT_GT(good.size(), 16U * 4096);
  Overwrite(database, std::string(good.size() - 4096, 'x'), 4096);
  EXPECT_TRUE(store().Inspect().ok());
  Overwrite(database, "x");
  EXPECT_EQ(Code(store().Inspect()), "store.corrupt");
  Overwrite(database, good.substr(0, 4096));
  EXPECT_EQ(Code(store().Inspect()), "store.corrupt") << "now the middle is seen too";
  Overwrite(database, good);
  EXPECT_TRUE(BecomesWhole());
  ExpectNothingLost();
}

// The other half of the control: what other processes rightly do to the files is not taken for damage.
TEST_F(Damage, OthersThatWriteAndCheckpointAreNone) {
  const pid_t other = ::fork();
  if (other == 0) {
    int done = 0;
    for (int i = 0; i < 20; ++i) {
      Result<Store> opened = Store::Open(Path(), Options());
      for (int k = 0; opened.ok() && k < 60; ++k) {
        done += AdmitCall(*opened, Request()).ok() ? 1 : 0;
      }
    }
    ::_exit(done == 1200 ? 0 : 1);
  }
  int status = 0;
  int looks = 0;
  while (::waitpid(other, &status, WNOHANG) == 0) {
    ASSERT_EQ(AdmitCode(), "");
    ASSERT_TRUE(store().Inspect().ok());
    ASSERT_TRUE(store().Maintain().ok());
    ++looks;
  }
  EXPECT_EQ(status, 0);
  EXPECT_GT(looks, 100);
}

}  // namespace
}  // namespace coffer::store
