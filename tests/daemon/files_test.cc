// SPDX-License-Identifier: Apache-2.0
//
// Files of a session that a call left in a strange state: each is answered with a word for it, none with a 500.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>

#include "tests/daemon/daemon.h"
#include "tests/gateway/harness.h"

namespace coffer::test {
namespace {

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(daemon_.Start());
    session_ = daemon_.NewSession(daemon_.key());
    ASSERT_FALSE(session_.empty());
  }
  void Run(const std::string& command) const {
    const HttpAnswer answer = daemon_.Call(daemon_.key(), Bash(command, session_));
    ASSERT_EQ(answer.Outcome(), "success") << answer.text;
  }
  void SetMode(const std::string& name, mode_t mode) const {
    ASSERT_EQ(::chmod((daemon_.Workspace(session_) + "/" + name).c_str(), mode), 0);
  }
  HttpAnswer Ask(const std::string& method, const std::string& path,
                 const std::string& body = {}) const {
    return daemon_.Ask(method, "/v1/sessions/" + session_ + "/files" + path, daemon_.key(), body);
  }

  Daemon daemon_;
  std::string session_;
};

TEST_F(Files, AModeThatClosesAFileIsNamed) {
  Run("echo x > closed; chmod 000 closed; mkdir shut; echo y > shut/in; echo z > open");
  // By the test: for an ordinary user a directory that cannot be counted ends the call that makes it.
  SetMode("shut", 0);
  EXPECT_EQ(Ask("GET", "/open").status, 200) << "the control";
  const HttpAnswer closed = Ask("GET", "/closed");
  EXPECT_EQ(closed.status, 403) << closed.text;
  EXPECT_EQ(closed.At("code"), "file.mode");
  const HttpAnswer inside = Ask("GET", "/shut/in");
  EXPECT_EQ(inside.status, 403) << inside.text;
  EXPECT_EQ(Ask("DELETE", "/shut/in").status, 403);
  EXPECT_EQ(Ask("DELETE", "/closed").status, 204) << "its directory is open";
  SetMode("shut", 0700);
  EXPECT_EQ(Ask("GET", "/shut/in").text, "y\n") << "the control";
  SetMode("shut", 0500);
  EXPECT_EQ(Ask("PUT", "/shut/new", "x").status, 403);
  SetMode("shut", 0700);
  EXPECT_EQ(Ask("PUT", "/shut/new", "x").status, 201) << "the control";
}

// The client has sent half of its file when `meanwhile` happens; the answer, once it has sent the rest.
HttpAnswer PutAround(const Daemon& daemon, const std::string& path,
                     const std::function<void()>& meanwhile) {
  const std::string half(200'000, 'x');
  gateway::RawClient client = gateway::RawClient::Tcp(daemon.port());
  EXPECT_TRUE(client.Send("PUT " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
                          daemon.key() + "\r\nContent-Length: " + std::to_string(2 * half.size()) +
                          "\r\n\r\n" + half));
  meanwhile();
  EXPECT_TRUE(client.Send(half));
  const gateway::Reply1 reply = client.Receive();
  HttpAnswer answer;
  answer.status = reply.status;
  answer.text = reply.body;
  answer.body = Json::parse(reply.body, nullptr, false);
  return answer;
}

TEST_F(Files, AnUploadThatItsSessionDoesNotOutliveIsNamed) {
  const std::string path = "/v1/sessions/" + session_ + "/files/d/f";
  const auto begun = [&] {
    return WaitUntil([&] { return Exists(daemon_.Workspace(session_) + "/d"); });
  };
  const HttpAnswer good = PutAround(daemon_, path, [&] { EXPECT_TRUE(begun()); });
  EXPECT_EQ(good.status, 201) << "the control: " << good.text;
  Run("rm -rf d");
  const HttpAnswer removed = PutAround(daemon_, path, [&] {
    EXPECT_TRUE(begun());
    Run("rm -rf d");
  });
  EXPECT_EQ(removed.status, 409) << removed.text;
  EXPECT_EQ(removed.At("code"), "file.conflict");
  const HttpAnswer ended = PutAround(daemon_, path, [&] {
    EXPECT_TRUE(begun());
    EXPECT_EQ(daemon_.Ask("DELETE", "/v1/sessions/" + session_, daemon_.key()).status, 200);
  });
  EXPECT_EQ(ended.status, 409) << ended.text;
  EXPECT_EQ(ended.At("code"), "session.ended");
}

TEST_F(Files, WhatHasTheNameAlreadyIsNamed) {
  Run("mkdir directory; echo x > file");
  const HttpAnswer onto = Ask("PUT", "/directory", "x");
  EXPECT_EQ(onto.status, 409) << onto.text;
  EXPECT_EQ(onto.At("code"), "file.conflict");
  const HttpAnswer below = Ask("PUT", "/file/below", "x");
  EXPECT_EQ(below.status, 409) << below.text;
  EXPECT_EQ(Ask("PUT", "/directory/new", "x").status, 201) << "the control";
  EXPECT_EQ(Ask("PUT", "/file", "y").status, 201) << "a file is replaced";
}

TEST_F(Files, EveryNameThatIsListedCanBeFetchedAndRemoved) {
  Run(R"(printf 1 > $'a\nb'; printf 2 > $'\xff\xfe'; printf 3 > 'q?#% "'; mkdir $'d\r'; printf 4 > $'d\r/\x01')");
  const HttpAnswer listed = Ask("GET", "");
  ASSERT_EQ(listed.status, 200) << listed.text;
  ASSERT_EQ(listed.body["files"].size(), 4U) << listed.text;
  std::string contents;
  for (const Json& file : listed.body["files"]) {
    const std::string path = "/" + file["encoded_path"].get<std::string>();
    const HttpAnswer got = Ask("GET", path);
    EXPECT_EQ(got.status, 200) << path << got.text;
    contents += got.text;
    EXPECT_EQ(Ask("DELETE", path).status, 204) << path;
  }
  std::sort(contents.begin(), contents.end());
  EXPECT_EQ(contents, "1234");
  EXPECT_EQ(Ask("GET", "").body["files"].size(), 0U);
  EXPECT_EQ(Ask("PUT", "/a%0Ab", "x").status, 400) << "such a name is not made here";
}

}  // namespace
}  // namespace coffer::test
