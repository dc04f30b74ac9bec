// SPDX-License-Identifier: Apache-2.0
//
// NW-15: a TLS server asks for a second hello, and the program names another host in that one. A tunnel that was opened for one
// name stays with it.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/support/egress_fixture.h"
#include "tests/support/run.h"

namespace coffer::test {
namespace {

class SecondHello : public EgressFixture {
 protected:
  void SetUp() override {
    EgressFixture::SetUp();
    script_ = std::string(::getenv("COFFER_SOURCE")) + "/tests/support/egress_second_hello.py";
    RunOptions options;
    options.input = std::string(Background::kKeepOpen, 5);
    own_.emplace(Strings{"python3", script_, "serve", own_dir_.path()}, options);
    ASSERT_TRUE(own_->WaitForOutput(" .\n", Seconds(60))) << own_->err();
    ASSERT_EQ(sscanf(own_->out().c_str(), "port %d", &port_), 1);
  }

  // What the server took its clients for since the last time. It says so before it answers.
  std::string Names() {
    const std::string all = ReadFile(own_dir_.path() + "/names").value_or("");
    std::string fresh = all.substr(read_own_);
    read_own_ = all.size();
    return fresh;
  }
  std::string Code(const std::string& words) const {
    return "import sys\nsys.argv = ['x'] + " + words + ".split()\n" +
           ReadFile(script_).value_or("no script");
  }
  std::string Ask(const std::string& second, const char* proxy) const {
    return "'ask api.test " + std::to_string(port_) + " api.test " + second + " " + proxy + "'";
  }
  std::string Outside(const std::string& second) const {
    RunOptions options;
    options.timeout = Seconds(60);
    return RunProgram({"python3", script_, "ask", "127.0.0.1", std::to_string(port_), "api.test",
                       second, "0"},
                      options)
        .out;
  }
  RunResult Inside(const std::string& second, const char* proxy) {
    return RunWith({"--allow", "api.test:" + std::to_string(port_)},
                   {"python3", "-c", Code(Ask(second, proxy))});
  }

  TempDir own_dir_;
  std::string script_;
  std::optional<Background> own_;
  int port_ = 0;
  size_t read_own_ = 0;
};

TEST_F(SecondHello, NW_15_NamesTheHostOfTheTunnel) {
  // The server goes by the second name.
  EXPECT_TRUE(Contains(Outside("other.test"), "hello from the server")) << "NO-CONTROL";
  EXPECT_EQ(Names(), "api.test\nother.test\n") << "NO-CONTROL";
  for (const char* const proxy : {"3128", "0"}) {  // by CONNECT, and by the name alone
    SCOPED_TRACE(proxy);
    const RunResult honest = Inside("api.test", proxy);
    EXPECT_TRUE(Contains(honest.out, "hello from the server")) << honest.out << honest.err;
    EXPECT_EQ(Names(), "api.test\napi.test\n") << "NO-CONTROL: it did not ask again";
    const RunResult other = Inside("other.test", proxy);
    EXPECT_FALSE(Contains(other.out, "hello from the server")) << "OPEN\n" << other.out;
    EXPECT_EQ(Names(), "api.test\n") << "OPEN: the second hello reached the server";
    const std::string denials = Receipt()["denials"].dump();
    EXPECT_TRUE(Contains(denials, "the TLS hello asks for other.test")) << denials << other.err;
  }
}

}  // namespace
}  // namespace coffer::test
