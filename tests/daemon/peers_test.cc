// SPDX-License-Identifier: Apache-2.0
//
// Who somebody is on the unix socket: what the kernel says of the peer, and what the configuration makes of it. Real
// processes with real uids ask, so most of it needs root.
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/sys.h"
#include "tests/daemon/daemon.h"

namespace coffer::test {
namespace {

constexpr uid_t kAgent = 61001, kApprover = 61002, kOperator = 61003, kAuditor = 61004,
                kElsewhere = 61005, kNobodyKnown = 61099;

// In a child: everything up to the end of the connection goes to `to`.
[[noreturn]] void AskAs(uid_t uid, const std::string& socket, const std::string& request, int to) {
  if (uid != ::getuid() && (::setgroups(0, nullptr) != 0 || ::setresgid(uid, uid, uid) != 0 ||
                            ::setresuid(uid, uid, uid) != 0)) {
    ::_exit(2);
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket.c_str(), sizeof(address.sun_path) - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    ::_exit(3);
  }
  if (::write(fd, request.data(), request.size()) != static_cast<ssize_t>(request.size())) {
    ::_exit(4);
  }
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(fd, buffer, sizeof(buffer))) > 0;) {
    if (::write(to, buffer, static_cast<size_t>(got)) != got) {
      ::_exit(5);
    }
  }
  ::_exit(0);
}

struct PeerAnswer {
  int status = 0;  // 0: it could not even connect
  std::string text;
  Json body;
};

class Peers : public ::testing::Test {
 protected:
  bool Start(const std::string& config) {
    Write(config);
    return daemon_.Start({"--config", file_, "--socket", socket_});
  }
  void Write(const std::string& config) {
    std::ofstream(file_, std::ios::trunc) << config;
    ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
  }

  PeerAnswer Ask(uid_t uid, const std::string& method, const std::string& path,
                 const std::string& body = "", const std::string& fields = "") const {
    std::string request =
        method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "Connection: close\r\n";
    if (!body.empty()) {
      request +=
          "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
          "\r\n";
    }
    request += "\r\n" + body;
    Result<sys::Pipe> pipe = sys::MakePipe();
    const pid_t child = ::fork();
    if (child == 0) {
      AskAs(uid, socket_, request, pipe->write_end.get());
    }
    pipe->write_end.Reset();
    PeerAnswer answer;
    answer.text = sys::ReadFd(pipe->read_end.get()).value();
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3))
        << status;
    if (answer.text.starts_with("HTTP/1.1 ")) {
      answer.status = std::atoi(answer.text.c_str() + 9);
      answer.body =
          Json::parse(answer.text.substr(answer.text.find("\r\n\r\n") + 4), nullptr, false);
    }
    return answer;
  }

  TempDir dir_;
  std::string file_ = dir_ / "coffer.toml";
  std::string socket_ = dir_ / "coffer.sock";
  Daemon daemon_;
};

std::string PeerOf(uid_t uid, const std::string& tenant, const std::string& role,
                   const std::string& agent) {
  return "[[peer]]\nuid = " + std::to_string(uid) + "\ntenant = \"" + tenant + "\"\nrole = \"" +
         role + "\"\nagent = \"" + agent + "\"\n";
}

std::string Everybody() {
  return PeerOf(kAgent, "acme", "agent", "builder") +
         PeerOf(kApprover, "acme", "approver", "boss") +
         PeerOf(kOperator, "acme", "operator", "ops") +
         PeerOf(kAuditor, "acme", "auditor", "eyes") +
         PeerOf(kElsewhere, "other", "operator", "ops");
}

TEST_F(Peers, HaveTheRoleThatTheConfigurationGivesTheirUid) {
  if (!IsRoot()) {
    GTEST_SKIP() << "only root can be somebody else";
  }
  ASSERT_TRUE(Start(Everybody()));
  const std::string call = Bash("echo hi").dump();
  const struct {
    const char* method;
    const char* path;
    std::string body;
    bool agent, approver, op, auditor;
  } kTable[] = {
      {"GET", "/v1/tools", "", true, true, true, true},
      {"GET", "/v1/sessions", "", true, true, true, true},
      {"POST", "/v1/calls", call, true, false, true, false},
      {"POST", "/v1/sessions", "{}", true, false, true, false},
      {"GET", "/v1/keys", "", false, false, true, true},
      {"POST", "/v1/keys", R"({"role":"agent","agent":"x"})", false, false, true, false},
      {"GET", "/v1/switches", "", false, false, true, true},
      {"PUT", "/v1/switches/agent/x", R"({"reason":"r"})", false, false, true, false},
      {"GET", "/v1/audit", "", false, false, true, true},
      {"GET", "/metrics", "", false, false, true, true},
  };
  for (const auto& row : kTable) {
    const std::pair<uid_t, bool> expected[] = {{kAgent, row.agent},
                                               {kApprover, row.approver},
                                               {kOperator, row.op},
                                               {kAuditor, row.auditor}};
    for (const auto& [uid, allowed] : expected) {
      const PeerAnswer answer = Ask(uid, row.method, row.path, row.body);
      if (std::string(row.path) == "/v1/calls" && !allowed) {
        EXPECT_TRUE(Contains(answer.text, "policy.role")) << answer.text;
        continue;
      }
      EXPECT_EQ(answer.status / 100 == 2, allowed)
          << uid << " " << row.method << " " << row.path << ": " << answer.text;
      EXPECT_TRUE(allowed || answer.status == 403) << answer.text;
    }
  }
  // Whoever is not named is nobody, on every route; a key makes him somebody.
  for (const auto& row : kTable) {
    EXPECT_EQ(Ask(kNobodyKnown, row.method, row.path, row.body).status, 401) << row.path;
  }
  const std::string key = daemon_.NewKey("acme", "agent", "with-a-key")["key"];
  EXPECT_EQ(
      Ask(kNobodyKnown, "GET", "/v1/tools", "", "Authorization: Bearer " + key + "\r\n").status,
      200);
  // A wrong key does not fall back on who it comes from.
  EXPECT_EQ(Ask(kOperator, "GET", "/v1/tools", "", "Authorization: Bearer " + key + "0\r\n").status,
            401);
}

TEST_F(Peers, BelongToTheirTenantAndAreOnRecordWithTheirUid) {
  if (!IsRoot()) {
    GTEST_SKIP() << "only root can be somebody else";
  }
  ASSERT_TRUE(Start(Everybody()));
  const PeerAnswer made = Ask(kAgent, "POST", "/v1/calls", Bash("echo hi").dump());
  ASSERT_EQ(made.status, 200) << made.text;
  const std::string id = made.body["call_id"];
  EXPECT_EQ(Ask(kAgent, "GET", "/v1/calls/" + id).status, 200);
  EXPECT_EQ(Ask(kOperator, "GET", "/v1/calls/" + id).status, 200);
  EXPECT_EQ(Ask(kElsewhere, "GET", "/v1/calls/" + id).status, 404) << "another tenant's operator";
  const PeerAnswer receipt = Ask(kAuditor, "GET", "/v1/calls/" + id + "/receipt");
  ASSERT_EQ(receipt.status, 200) << receipt.text;
  EXPECT_EQ(receipt.body["tenant"], "acme");
  EXPECT_EQ(receipt.body["agent"], "builder");
  EXPECT_EQ(receipt.body["user"], "uid:" + std::to_string(kAgent));
  // Root is the operator of everything, whatever the file says of others.
  EXPECT_EQ(Ask(0, "GET", "/v1/calls/" + id).status, 200);
}

TEST_F(Peers, ChangeOnHangup) {
  if (!IsRoot()) {
    GTEST_SKIP() << "only root can be somebody else";
  }
  ASSERT_TRUE(Start(Everybody()));
  EXPECT_EQ(Ask(kAuditor, "GET", "/v1/keys").status, 200);
  EXPECT_EQ(Ask(kNobodyKnown, "GET", "/v1/tools").status, 401);
  Write(PeerOf(kNobodyKnown, "acme", "agent", "late"));
  ::kill(daemon_.monitor(), SIGHUP);
  EXPECT_TRUE(WaitUntil([&] { return Ask(kNobodyKnown, "GET", "/v1/tools").status == 200; }));
  EXPECT_EQ(Ask(kAuditor, "GET", "/v1/keys").status, 401) << "taken away at once";
}

TEST_F(Peers, WithoutAnyOnlyTheOwnerCanKnock) {
  ASSERT_TRUE(Start(""));
  struct stat info{};
  ASSERT_EQ(::stat(socket_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_EQ(Ask(::getuid(), "GET", "/v1/keys").status, 200);
  if (IsRoot()) {
    EXPECT_EQ(Ask(kAgent, "GET", "/v1/tools").status, 0) << "the file's mode kept nobody out";
  }
}

}  // namespace
}  // namespace coffer::test
