// SPDX-License-Identifier: Apache-2.0
//
// The cgroup around the gateway (daemon/gateway_wall.h): it limits the gateway and nothing else, what happens at the limit is
// said, and it goes with the daemon.
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "limits/cgroup/host.h"
#include "limits/cgroup/surrounding.h"
#include "tests/daemon/daemon.h"
#include "tests/gateway/harness.h"
#include "tests/support/tools_fixture.h"

namespace coffer::test {
namespace {

constexpr uint64_t kWallMiB = 1 << 20;

class GatewayWall : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef COFFER_SANITIZED
    GTEST_SKIP() << "a sanitizer's own memory would count";
#endif
    const Result<limits::CgroupHost> host = limits::ProbeCgroups();
    ASSERT_TRUE(host.ok());
    const limits::ControllerPlace& memory = host->at(limits::Controller::kMemory);
    struct statfs info{};
    if (!memory.usable || host->v2_move_self) {
      GTEST_SKIP() << "the gateway can have no memory cgroup here: " << memory.why_not;
    }
    if (limits::SurroundingMemory()) {
      GTEST_SKIP() << "there is a limit around the tests already";
    }
    if (::statfs(daemon_.tools().c_str(), &info) != 0 || info.f_type == TMPFS_MAGIC) {
      GTEST_SKIP() << "the state directory would be in memory";
    }
    v2_ = memory.version == limits::CgroupVersion::kV2;
    parent_ = memory.dir;
    ASSERT_TRUE(daemon_.Start(Flags()));
    victim_ = daemon_.NewKey("victim", "agent", "v")["key"];
  }
  virtual Strings Flags() { return {}; }

  // Of a process, as /proc says: the last part of the path of its memory cgroup.
  std::string CgroupOf(pid_t pid, const std::string& thread = {}) const {
    const std::string place = thread.empty() ? "" : "/task/" + thread;
    for (const std::string& line :
         Lines(ReadFile("/proc/" + std::to_string(pid) + place + "/cgroup").value_or(""))) {
      if (v2_ ? line.starts_with("0::") : Contains(line, ":memory:")) {
        return line.substr(line.rfind('/') + 1);
      }
    }
    return {};
  }
  std::string Wall() const { return parent_ + "/" + CgroupOf(daemon_.Find(RoleOf::kGateway)); }
  std::string LimitFile() const { return v2_ ? "/memory.max" : "/memory.limit_in_bytes"; }
  uint64_t Number(const std::string& name) const {
    return std::strtoull(ReadFile(Wall() + name).value_or("").c_str(), nullptr, 10);
  }
  bool SetLimit(uint64_t bytes) const {
    std::ofstream file(Wall() + LimitFile());
    file << bytes << std::flush;
    return file.good();
  }
  // Bodies of 900 KiB that never end, of tenants that have done nothing yet, until one cannot be sent.
  std::vector<gateway::RawClient> SendBodies() const {
    const std::string most(900 << 10, 'x');
    std::vector<gateway::RawClient> clients;
    for (const char* tenant : {"one", "two", "three", "four"}) {
      const std::string key = daemon_.NewKey(tenant, "agent", "h")["key"];
      for (int i = 0; i < 20; ++i) {
        clients.push_back(gateway::RawClient::Tcp(daemon_.port()));
        clients.back().Send(gateway::Request("POST", "/v1/calls", key,
                                             "Content-Type: application/json\r\nContent-Length: "
                                             "1048576\r\n"));
        (void)!::send(clients.back().fd(), most.data(), most.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      }
    }
    return clients;
  }

  bool v2_ = false;
  std::string parent_, victim_;
  Daemon daemon_;
};

TEST_F(GatewayWall, LimitsTheGatewayAndNothingElse) {
  EXPECT_GE(Number(LimitFile()), 2048 * kWallMiB);
  EXPECT_LT(Number(LimitFile()), 1ULL << 50);
  const pid_t gateway = daemon_.Find(RoleOf::kGateway);
  const std::string wall = CgroupOf(gateway);
  EXPECT_TRUE(wall.starts_with("coffer-" + std::to_string(daemon_.monitor()) + "-")) << wall;
  size_t threads = 0;
  for (const auto& one :
       std::filesystem::directory_iterator("/proc/" + std::to_string(gateway) + "/task")) {
    EXPECT_EQ(CgroupOf(gateway, one.path().filename()), wall) << "every thread";
    ++threads;
  }
  EXPECT_GT(threads, 2U);
  for (const RoleOf role : {RoleOf::kMonitor, RoleOf::kWarden, RoleOf::kEgress, RoleOf::kProxy}) {
    EXPECT_NE(CgroupOf(daemon_.Find(role)), wall) << "the control";
  }
  EXPECT_FALSE(Contains(daemon_.Said(), "no cgroup")) << daemon_.Said();
}

TEST_F(GatewayWall, AtItTheDaemonEndsAndSaysWhy) {
  std::vector<gateway::RawClient> clients = SendBodies();
  EXPECT_EQ(daemon_.Call(victim_, Bash("echo " + NewToken())).Outcome(), "success")
      << "the control: below the limit nothing happens";
  clients.clear();
  const std::string wall = Wall();
  const uint64_t used = Number(v2_ ? "/memory.current" : "/memory.usage_in_bytes");
  ASSERT_TRUE(SetLimit(used + 8 * kWallMiB));
  clients = SendBodies();
  ASSERT_TRUE(daemon_.Gone(Seconds(20)));
  EXPECT_TRUE(
      Contains(daemon_.Said(), "limit.memory: the kernel ended the gateway for want of memory"))
      << daemon_.Said();
  EXPECT_FALSE(Exists(wall));
  ASSERT_TRUE(daemon_.Start());
  EXPECT_EQ(daemon_.Call(victim_, Bash("echo " + NewToken())).Outcome(), "success");
}

TEST_F(GatewayWall, GoesWithTheDaemon) {
  const std::string wall = Wall();
  ASSERT_TRUE(Exists(wall)) << "the control";
  EXPECT_EQ(daemon_.Stop(), 0);
  EXPECT_FALSE(Exists(wall));
}

TEST_F(GatewayWall, OfAKilledDaemonGoesWithTheNextStart) {
  const std::string wall = Wall();
  ASSERT_EQ(::kill(daemon_.monitor(), SIGKILL), 0);
  ASSERT_TRUE(daemon_.Gone());
  EXPECT_TRUE(Exists(wall)) << "the control";
  ASSERT_TRUE(daemon_.Start());
  EXPECT_TRUE(WaitUntil([&] { return !Exists(wall); }));
  EXPECT_NE(Wall(), wall);
}

// What all calls may use together is taken from the limits around the daemon, of which the wall is none.
class GatewayWallCalls : public GatewayWall {
 protected:
  Strings Flags() override {
    std::ofstream(daemon_.tools() + "/large.toml")
        << BashToolText("large", "true", "[limits]\nmemory = \"600MiB\"\n");
    return {"--config", file_};
  }
  void Reload(const std::string& text) const {
    std::ofstream(file_, std::ios::trunc) << text;
    ::kill(daemon_.monitor(), SIGHUP);
  }
  std::string Outcome() const {
    return daemon_.Call(victim_, {{"tool", "large"}, {"args", {{"word", NewToken()}}}}).Outcome();
  }
  TempDir dir_;
  std::string file_ = dir_.Write("coffer.toml", "\n", 0644);
};

TEST_F(GatewayWallCalls, TheWallDoesNotBoundCalls) {
  EXPECT_EQ(Outcome(), "success");
  Reload("[host]\nmemory = \"512MiB\"\n");
  EXPECT_TRUE(WaitUntil([&] { return Outcome() != "success"; })) << "the control";
  ASSERT_TRUE(SetLimit(400 * kWallMiB));
  Reload("\n");
  EXPECT_TRUE(WaitUntil([&] { return Outcome() == "success"; }));
}

}  // namespace
}  // namespace coffer::test
