// SPDX-License-Identifier: Apache-2.0
//
// The files of a session stay within its size, over all calls and uploads, and counting them costs little memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/daemon/daemon.h"
#include "tests/gateway/harness.h"

namespace coffer::test {
namespace {

constexpr uint64_t kMiB = 1ULL << 20;

class SessionSize : public ::testing::Test {
 protected:
  void Start(const std::string& config) {
    const std::string file = dir_.Write("coffer.toml", config, 0644);
    ASSERT_TRUE(daemon_.Start({"--config", file}));
  }
  HttpAnswer Put(const std::string& session, const std::string& name, const std::string& body) {
    return daemon_.Ask("PUT", "/v1/sessions/" + session + "/files/" + name, daemon_.key(), body);
  }
  // The status for an upload of that size, asked before its body is sent.
  int Announce(const std::string& session, uint64_t size) {
    gateway::RawClient client = gateway::RawClient::Tcp(daemon_.port());
    EXPECT_TRUE(client.Send(
        "PUT /v1/sessions/" + session +
        "/files/announced HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + daemon_.key() +
        "\r\nContent-Length: " + std::to_string(size) + "\r\nConnection: close\r\n\r\n"));
    return client.Receive().status;
  }
  Json Files(const std::string& session) {
    return daemon_.Ask("GET", "/v1/sessions/" + session, daemon_.key()).body["files"];
  }
  // Bytes on the disk, summed from outside.
  uint64_t Held(const std::string& session) {
    uint64_t bytes = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(daemon_.Workspace(session))) {
      struct stat info{};
      if (::lstat(entry.path().c_str(), &info) == 0) {
        bytes += static_cast<uint64_t>(info.st_blocks) * 512;
      }
    }
    return bytes;
  }
  uint64_t GatewayMemory(const char* field) {
    return std::stoull(StatusOf(daemon_.Find(RoleOf::kGateway))[field]) * 1024;
  }
  TempDir dir_;
  Daemon daemon_;
};

TEST_F(SessionSize, FiveUploadsAtOnceStayWithinIt) {
  Start("[storage]\nsession = \"20MiB\"\n");
  const std::string session = daemon_.NewSession(daemon_.key());
  EXPECT_EQ(Files(session)["max_bytes"], 20 * kMiB);
  if (::geteuid() == 0 && Files(session)["enforced"] != true) {
    GTEST_SKIP() << "this host has no loop devices or no mke2fs";
  }
  EXPECT_EQ(Files(session)["enforced"], ::geteuid() == 0);
  const std::string body(12 * kMiB, 'x');
  std::vector<std::thread> uploads;
  std::atomic<int> taken = 0;
  for (int i = 0; i < 5; ++i) {
    uploads.emplace_back(
        [&, i] { taken += Put(session, "f" + std::to_string(i), body).status == 201 ? 1 : 0; });
  }
  for (std::thread& upload : uploads) {
    upload.join();
  }
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(Announce(session, body.size()), 413);
  EXPECT_LE(Held(session), 21 * kMiB);
  // The control: what fits is taken, and another session has its own size.
  const std::string other = daemon_.NewSession(daemon_.key());
  EXPECT_EQ(Put(other, "f", body).status, 201);
  EXPECT_GE(Held(other), 12 * kMiB);
}

// Each call may add 100 MiB by its manifest; the session as a whole has less.
TEST_F(SessionSize, CallAfterCallStaysWithinIt) {
  Start("[storage]\nsession = \"20MiB\"\n");
  const std::string session = daemon_.NewSession(daemon_.key());
  for (int i = 0; i < 7; ++i) {
    (void)daemon_.Call(daemon_.key(),
                       Bash("head -c 9000000 /dev/zero > f" + std::to_string(i), session));
  }
  EXPECT_GE(Held(session), 8 * kMiB) << "the control: what fits is written";
  EXPECT_LE(Held(session), 32 * kMiB) << "of 60 that were tried";
  if (::geteuid() == 0) {
    EXPECT_LE(Held(session), 21 * kMiB) << "the kernel is exact";
  }
  EXPECT_EQ(Announce(session, 15 * kMiB), 413);
  // Removing makes room again.
  EXPECT_EQ(
      daemon_.Call(daemon_.key(), Bash("rm -f f*; echo done", session)).body["result"]["stdout"],
      "done\n");
  EXPECT_EQ(Put(session, "more", std::string(15 * kMiB, 'x')).status, 201);
}

// The same of their number: one for every 4 KiB of the session's size, whatever the manifest allows one call.
TEST_F(SessionSize, CallAfterCallStaysWithinItsNumberOfFiles) {
  Start("[storage]\nsession = \"4MiB\"\n");
  const std::string session = daemon_.NewSession(daemon_.key());
  const auto make = [&](const std::string& name, const std::string& number,
                        const std::string& where) {
    return daemon_.Call(daemon_.key(), Bash("i=0; while [ $i -lt " + number + " ]; do : > " + name +
                                                "$i || exit 3; i=$((i+1)); done; echo all",
                                            where));
  };
  const auto all = [](const HttpAnswer& answer) {
    return answer.Outcome() == "success" && answer.body["result"]["stdout"] == "all\n";
  };
  EXPECT_TRUE(all(make("a", "450", session))) << "the control: what fits is made";
  EXPECT_TRUE(all(make("b", "450", session)));
  const HttpAnswer full = make("c", "1000000", session);
  EXPECT_FALSE(all(full)) << full.text.substr(0, 500);
  if (Files(session)["enforced"] == true) {
    EXPECT_EQ(full.body["result"]["exit"]["code"], 3) << "the kernel says no";
  } else {
    EXPECT_EQ(full.body["error"]["class"], "limit.disk") << "between two looks it may make more";
  }
  EXPECT_FALSE(all(make("d", "1000000", session)));
  // The control: a session that is empty takes what this one has refused, and removing makes room.
  const std::string other = daemon_.NewSession(daemon_.key());
  EXPECT_TRUE(all(make("c", "450", other)));
  EXPECT_EQ(daemon_.Call(daemon_.key(), Bash("find . -type f -exec rm -f {} +; echo done", session))
                .body["result"]["stdout"],
            "done\n");
  EXPECT_TRUE(all(make("e", "450", session)));
}

TEST_F(SessionSize, ADeepTreeOfManyFilesCostsLittleMemory) {
  Start("[storage]\nsession = \"512MiB\"\n");
  const std::string session = daemon_.NewSession(daemon_.key());
  // As a call would have left them: names as long as they may be, directories in directories.
  std::string dir = daemon_.Workspace(session);
  struct stat owner{};
  ASSERT_EQ(::stat(dir.c_str(), &owner), 0);
  const std::string part(50, 'd');
  int made = 0;
  for (int depth = 0; depth < 50; ++depth) {
    dir += "/" + part;
    ASSERT_EQ(::mkdir(dir.c_str(), 0755), 0);
    ASSERT_EQ(::chown(dir.c_str(), owner.st_uid, owner.st_gid), 0);
    for (int i = 0; i < 2000; ++i, ++made) {
      const std::string file = dir + "/" + std::string(40, 'f') + std::to_string(i);
      const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT, 0644);
      ASSERT_GE(fd, 0) << depth << " " << i;
      ::close(fd);
    }
  }
  ASSERT_EQ(made, 100'000);
  const uint64_t before = GatewayMemory("VmRSS");
  std::vector<std::thread> uploads;
  std::atomic<int> taken = 0;
  for (int i = 0; i < 8; ++i) {
    uploads.emplace_back(
        [&, i] { taken += Put(session, "f" + std::to_string(i), "x").status == 201 ? 1 : 0; });
  }
  for (std::thread& upload : uploads) {
    upload.join();
  }
  EXPECT_GT(taken, 0);
  std::string cursor;
  size_t listed = 0;
  for (int page = 0; page < 3; ++page) {
    const HttpAnswer answer =
        daemon_.Ask("GET", "/v1/sessions/" + session + "/files?limit=500" + cursor, daemon_.key());
    ASSERT_EQ(answer.status, 200) << answer.text;
    listed += answer.body["files"].size();
    cursor = "&cursor=" + answer.At("next");
  }
  EXPECT_EQ(listed, 1500U);
  EXPECT_LT(GatewayMemory("VmHWM"), before + 100 * kMiB);
  EXPECT_LT(GatewayMemory("VmHWM"), 256 * kMiB);
}

// A session is ended when nothing of it is left; until then it says so.
TEST_F(SessionSize, EndedMeansGoneFromTheDisk) {
  Start("");
  const std::string session = daemon_.NewSession(daemon_.key());
  (void)daemon_.Call(
      daemon_.key(),
      Bash("i=0; while [ $i -lt 300 ]; do mkdir d; cd d; : > f; i=$((i+1)); done", session));
  ASSERT_TRUE(Exists(daemon_.Workspace(session) + "/d/d/d/f"));
  const HttpAnswer gone = daemon_.Ask("DELETE", "/v1/sessions/" + session, daemon_.key());
  ASSERT_EQ(gone.status, 200);
  EXPECT_TRUE(gone.At("state") != "ended" || !Exists(daemon_.Workspace(session))) << gone.text;
  EXPECT_TRUE(WaitUntil(
      [&] {
        return daemon_.Ask("GET", "/v1/sessions/" + session, daemon_.key()).At("state") == "ended";
      },
      Seconds(5)));
  EXPECT_FALSE(Exists(daemon_.Workspace(session)));
  EXPECT_FALSE(Exists(daemon_.state() + "/volumes/session-" + session));
}

// An image must be nothing that the gateway could have written.
TEST_F(SessionSize, OnlyRootsDirectoryHoldsImages) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root has volumes";
  }
  Start("");
  const std::string first = daemon_.NewSession(daemon_.key());
  struct stat info{};
  ASSERT_EQ(::stat((daemon_.state() + "/volumes").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0U);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  ASSERT_EQ(::rename((daemon_.state() + "/volumes").c_str(), (daemon_.state() + "/away").c_str()),
            0);
  ASSERT_EQ(::mkdir((daemon_.state() + "/volumes").c_str(), 0700), 0);
  struct stat state{};
  ASSERT_EQ(::stat(daemon_.state().c_str(), &state), 0);
  ASSERT_EQ(::chown((daemon_.state() + "/volumes").c_str(), state.st_uid, state.st_gid), 0);
  const HttpAnswer refused = daemon_.Ask("POST", "/v1/sessions", daemon_.key(), "{}");
  EXPECT_EQ(refused.status, 500) << refused.text;
  ASSERT_EQ(::rmdir((daemon_.state() + "/volumes").c_str()), 0);
  ASSERT_EQ(::rename((daemon_.state() + "/away").c_str(), (daemon_.state() + "/volumes").c_str()),
            0);
  EXPECT_EQ(daemon_.Ask("POST", "/v1/sessions", daemon_.key(), "{}").status, 201) << "the control";
}

TEST_F(SessionSize, FilesSurviveARestartOfTheDaemon) {
  Start("");
  const std::string session = daemon_.NewSession(daemon_.key());
  ASSERT_EQ(Put(session, "kept", "here").status, 201);
  const std::string key = daemon_.key();
  ASSERT_EQ(daemon_.Stop(), 0);
  ASSERT_TRUE(daemon_.Start());
  EXPECT_TRUE(WaitUntil([&] {
    return daemon_.Ask("GET", "/v1/sessions/" + session + "/files/kept", key).text == "here";
  }));
  EXPECT_EQ(daemon_.Call(key, Bash("cat kept", session)).body["result"]["stdout"], "here");
}

}  // namespace
}  // namespace coffer::test
