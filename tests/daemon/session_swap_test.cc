// SPDX-License-Identifier: Apache-2.0
//
// A session's workspace is swapped after the runner has looked at it and before it is mounted: by a link to the secret, and by
// another directory. What was looked at is what a call sees. The others of what is bound are in escape/swapped_test.cc.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "tests/daemon/daemon.h"
#include "tests/support/open_files.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

class SessionSwap : public ::testing::Test {
 protected:
  void SetUp() override {
    secrets_ = dir_.MakeDir("secrets");
    dir_.Write("secrets/key", token_, 0644);
    // Holds the runner's first child, its init, at that child's first system call: the runner has looked at everything.
    ASSERT_TRUE(
        daemon_.StartTraced([this](const TracedProcess& caller, const auto& family) -> pid_t {
          const auto runner = family.find(caller.parent);
          if (!armed_ || runner == family.end() || runner->second.parent != warden_) {
            return 0;
          }
          examined_ = HoldsOpen(caller.parent, workspace_);
          swap_();
          swapped_ = true;
          return kLetGo;
        }));
    warden_ = daemon_.Find(RoleOf::kWarden);
    session_ = daemon_.NewSession(daemon_.key());
    workspace_ = daemon_.WorkspacePath(session_);
    ASSERT_EQ(Ask("PUT", "kept").status, 201);
  }
  HttpAnswer Ask(const std::string& method, const std::string& file) const {
    return daemon_.Ask(method, "/v1/sessions/" + session_ + "/files/" + file, daemon_.key(),
                       method == "PUT" ? "own file" : "");
  }
  // What a call sees whose workspace is swapped by `swap`.
  std::string RunSwapped(std::function<void()> swap) {
    swap_ = std::move(swap);
    armed_ = true;
    const HttpAnswer answer =
        daemon_.Call(daemon_.key(), Bash("cat kept key; ls; echo x > mark; pwd", session_));
    EXPECT_TRUE(swapped_) << "no boundary was begun: " << answer.text;
    EXPECT_TRUE(examined_) << "NO-CONTROL: the runner has not looked at it yet";
    return answer.text;
  }
  // As the caller of the swap sees it at that moment.
  void ExpectTheSecretAtItsPlace() const {
    EXPECT_EQ(ReadFile(workspace_ + "/key").value_or(""), token_) << "NO-CONTROL: it is not there";
  }
  void ExpectNothingOf(const std::string& seen) const {
    EXPECT_FALSE(Contains(seen, token_)) << seen;
    EXPECT_FALSE(Exists(secrets_ + "/mark")) << "the call wrote there";
  }

  TempDir dir_;
  const std::string token_ = NewToken();
  std::string secrets_, session_, workspace_;
  std::function<void()> swap_;
  std::atomic<pid_t> warden_ = 0;
  std::atomic<bool> armed_ = false, swapped_ = false, examined_ = false;
  Daemon daemon_;
};

TEST_F(SessionSwap, TheControlSeesItsOwnFiles) {
  const std::string seen = RunSwapped([] {});
  EXPECT_TRUE(Contains(seen, "own file") && Contains(seen, "/workspace")) << seen;
  EXPECT_EQ(Ask("GET", "mark").text, "x\n");
}

TEST_F(SessionSwap, ByALink) {
  ExpectNothingOf(RunSwapped([this] {
    fs::rename(workspace_, workspace_ + ".away");
    fs::create_directory_symlink(secrets_, workspace_);
    ExpectTheSecretAtItsPlace();
  }));
}

TEST_F(SessionSwap, ByAnotherDirectory) {
  const std::string other = daemon_.state() + "/sessions/other";
  ExpectNothingOf(RunSwapped([&] {
    fs::create_directory(other);
    fs::copy(secrets_, other, fs::copy_options::recursive);
    fs::rename(workspace_, workspace_ + ".away");
    fs::rename(other, workspace_);
    ExpectTheSecretAtItsPlace();
  }));
  EXPECT_FALSE(Exists(workspace_ + "/mark")) << "the call wrote into what took its place";
}

}  // namespace
}  // namespace coffer::test
