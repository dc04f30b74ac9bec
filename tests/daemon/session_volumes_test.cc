// SPDX-License-Identifier: Apache-2.0
//
// The file systems of sessions end with the daemon, however it ends, and their files do not. Needs root.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/daemon/daemon.h"

namespace coffer::test {
namespace {

class SessionVolumes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "only root has volumes";
    }
    ASSERT_TRUE(daemon_.Start());
    key_ = daemon_.key();
    session_ = daemon_.NewSession(key_);
    ASSERT_EQ(daemon_.Ask("PUT", File("kept"), key_, "here").status, 201);
  }
  std::string File(const std::string& name) const {
    return "/v1/sessions/" + session_ + "/files/" + name;
  }
  // Loop devices whose images lie in the state directory.
  size_t Devices() const {
    size_t count = 0;
    for (const auto& device : std::filesystem::directory_iterator("/sys/block")) {
      const std::string image =
          ReadFile(device.path().string() + "/loop/backing_file").value_or("");
      count += image.starts_with(daemon_.state() + "/volumes/") ? 1 : 0;
    }
    return count;
  }
  bool HostSeesAMount() const {
    return Contains(ReadFile("/proc/self/mountinfo").value_or(""), " " + daemon_.state() + "/");
  }
  // The kernel ends the devices a moment after the last process.
  void ExpectNothingLeft() {
    EXPECT_FALSE(HostSeesAMount());
    EXPECT_TRUE(WaitUntil([&] { return Devices() == 0; }, Seconds(5))) << Devices();
  }

  Daemon daemon_;
  std::string key_, session_;
};

TEST_F(SessionVolumes, AnOrderlyStopLeavesNothingMounted) {
  EXPECT_EQ(Devices(), 1U) << "the control: while it runs there is one";
  EXPECT_FALSE(HostSeesAMount());
  ASSERT_EQ(daemon_.Stop(), 0);
  ExpectNothingLeft();
  // And the control of HostSeesAMount.
  const std::string path = daemon_.WorkspacePath(session_);
  ASSERT_EQ(::mount("none", path.c_str(), "tmpfs", 0, nullptr), 0);
  EXPECT_TRUE(HostSeesAMount());
  ASSERT_EQ(::umount2(path.c_str(), 0), 0);
}

TEST_F(SessionVolumes, AKilledDaemonLeavesNothingAndTheNextHasTheFiles) {
  for (const RoleOf role : {RoleOf::kMonitor, RoleOf::kWarden, RoleOf::kGateway}) {
    ASSERT_EQ(::kill(daemon_.Find(role), SIGKILL), 0);
    ASSERT_TRUE(daemon_.Gone());
    ExpectNothingLeft();
    ASSERT_TRUE(daemon_.Start());
    // The very first request, of either kind.
    if (role == RoleOf::kWarden) {
      EXPECT_EQ(daemon_.Call(key_, Bash("cat kept", session_)).body["result"]["stdout"], "here");
    }
    EXPECT_EQ(daemon_.Ask("GET", File("kept"), key_).text, "here");
    EXPECT_EQ(Devices(), 1U);
  }
  ASSERT_EQ(daemon_.Stop(), 0);
  ExpectNothingLeft();
}

// The next daemon may be there before the last mount of a killed one is gone.
TEST_F(SessionVolumes, ManyRequestsAfterARestartMountOnce) {
  ASSERT_EQ(::kill(daemon_.monitor(), SIGKILL), 0);
  ASSERT_TRUE(daemon_.Gone());
  ASSERT_TRUE(daemon_.Start());
  std::vector<std::thread> clients;
  std::atomic<int> good = 0;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back(
        [&] { good += daemon_.Ask("GET", File("kept"), key_).text == "here" ? 1 : 0; });
  }
  for (std::thread& client : clients) {
    client.join();
  }
  EXPECT_EQ(good, 8);
  EXPECT_EQ(Devices(), 1U);
}

TEST_F(SessionVolumes, WithoutItsFileSystemASessionTakesNothing) {
  ASSERT_EQ(daemon_.Stop(), 0);
  const std::string image = daemon_.state() + "/volumes/session-" + session_;
  const std::string good = *ReadFile(image);
  ASSERT_EQ(::truncate(image.c_str(), 4096), 0);
  ASSERT_TRUE(daemon_.Start());
  EXPECT_EQ(daemon_.Ask("PUT", File("more"), key_, "x").status, 500);
  EXPECT_NE(daemon_.Call(key_, Bash("echo x > more", session_)).Outcome(), "success");
  EXPECT_FALSE(Exists(daemon_.Workspace(session_) + "/more"));
  // The control: with it, it does.
  std::ofstream(image, std::ios::binary | std::ios::trunc) << good;
  EXPECT_EQ(daemon_.Ask("PUT", File("more"), key_, "x").status, 201);
  EXPECT_EQ(daemon_.Ask("GET", File("kept"), key_).text, "here");
}

// Also of a session that ended while nothing of it was mounted.
TEST_F(SessionVolumes, AnEndedSessionLosesItsImage) {
  const std::string image = daemon_.state() + "/volumes/session-" + session_;
  ASSERT_EQ(daemon_.Stop(), 0);
  ASSERT_TRUE(Exists(image)) << "the control";
  ASSERT_TRUE(daemon_.Start());
  EXPECT_EQ(daemon_.Ask("DELETE", "/v1/sessions/" + session_, key_).status, 200);
  EXPECT_TRUE(WaitUntil([&] { return !Exists(image); }));
  EXPECT_TRUE(WaitUntil([&] { return !Exists(daemon_.WorkspacePath(session_)); }));
}

// While its image cannot be removed, a session is ending and not ended; once it can be, the daemon removes it by itself.
TEST_F(SessionVolumes, IsNotEndedWhileItsImageIsThere) {
  const std::string volumes = daemon_.state() + "/volumes";
  const std::string away = daemon_.state() + "/away";
  const std::string image = "/session-" + session_;
  ASSERT_EQ(daemon_.Stop(), 0);  // so that nothing of it is mounted
  ASSERT_TRUE(daemon_.Start());
  struct stat state{};
  ASSERT_EQ(::stat(daemon_.state().c_str(), &state), 0);
  ASSERT_EQ(::rename(volumes.c_str(), away.c_str()), 0);
  ASSERT_EQ(::mkdir(volumes.c_str(), 0700), 0);  // not root's: the warden uses no such directory
  ASSERT_EQ(::chown(volumes.c_str(), state.st_uid, state.st_gid), 0);
  const auto how = [&] { return daemon_.Ask("GET", "/v1/sessions/" + session_, key_).At("state"); };
  const HttpAnswer gone = daemon_.Ask("DELETE", "/v1/sessions/" + session_, key_);
  EXPECT_EQ(gone.status, 200) << gone.text;
  EXPECT_EQ(gone.At("state"), "ending");
  EXPECT_EQ(how(), "ending");
  ASSERT_TRUE(Exists(away + image)) << "the control: there is something left";
  ASSERT_EQ(::rmdir(volumes.c_str()), 0);
  ASSERT_EQ(::rename(away.c_str(), volumes.c_str()), 0);
  EXPECT_TRUE(WaitUntil([&] { return how() == "ended"; }));
  EXPECT_FALSE(Exists(volumes + image));
}

}  // namespace
}  // namespace coffer::test
