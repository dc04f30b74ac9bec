// SPDX-License-Identifier: Apache-2.0
//
// Servers on this host's loopback (egress_server.py) and `coffer run --allow` beside them.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>

#include "tests/support/run.h"

namespace coffer::test {

// The egress process of a `coffer run`; 0 if it has none.
inline pid_t EgressProcessOf(pid_t supervisor) {
  std::istringstream children(ReadFile("/proc/" + std::to_string(supervisor) + "/task/" +
                                       std::to_string(supervisor) + "/children")
                                  .value_or(""));
  for (pid_t child = 0; children >> child;) {
    if (ReadFile("/proc/" + std::to_string(child) + "/comm").value_or("") == "coffer-egress\n") {
      return child;
    }
  }
  return 0;
}

class EgressFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const source = ::getenv("COFFER_SOURCE");
    ASSERT_NE(source, nullptr) << "COFFER_SOURCE must be the checkout";
    ::chmod(dir_.path().c_str(), 0755);
    RunOptions options;
    options.input = std::string(Background::kKeepOpen, 5);
    server_.emplace(
        Strings{"python3", std::string(source) + "/tests/support/egress_server.py", dir_.path()},
        options);
    ASSERT_TRUE(server_->WaitForOutput(" .\n", Seconds(60))) << server_->err();
    ASSERT_EQ(sscanf(server_->out().c_str(), "ports %d %d %d %d %d", &tls_, &plain_, &mute_,
                     &settled_, &greeter_),
              5);
  }

  // What the servers saw since the last time.
  std::string Seen() {
    EXPECT_TRUE(Settle()) << server_->err();
    const std::string all = ReadFile(dir_.path() + "/seen").value_or("?");
    std::string fresh = all.substr(std::min(read_, all.size()));
    read_ = all.size();
    return fresh;
  }

  // Waits until the servers have written down every connection that was made to them.
  bool Settle() const {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(settled_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    char byte = 0;
    const bool done = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
                      ::read(fd, &byte, 1) == 1;
    ::close(fd);
    return done;
  }

  // The flags that let names lead to the test's servers.
  Strings Here() const {
    return {"--resolve",
            "api.test=127.0.0.1",
            "--resolve",
            "other.test=127.0.0.1",
            "--upstream-ca",
            dir_.path() + "/ca.pem",
            "--dangerously-allow-address",
            "127.0.0.0/8"};
  }
  Strings CofferWords(const Strings& flags, const Strings& command) const {
    Strings all = {CofferPath(), "run", "--wall", "120s", "--receipt", dir_.path() + "/receipt"};
    all.insert(all.end(), flags.begin(), flags.end());
    all.push_back("--");
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }
  // Without --resolve and the rest.
  RunResult RunBare(const Strings& flags, const Strings& command) {
    std::filesystem::remove(dir_.path() + "/receipt");
    RunOptions options;
    options.timeout = Seconds(120);
    return RunProgram(CofferWords(flags, command), options);
  }
  RunResult RunWith(Strings flags, const Strings& command) {
    const Strings here = Here();
    flags.insert(flags.end(), here.begin(), here.end());
    return RunBare(flags, command);
  }
  Json Receipt() const {
    return Json::parse(ReadFile(dir_.path() + "/receipt").value_or("{}"), nullptr, false);
  }
  std::string Api() const { return "api.test:" + std::to_string(tls_); }
  std::string Url(const std::string& host, const std::string& path) const {
    return "http://" + host + ":" + std::to_string(plain_) + path;
  }

  TempDir dir_;
  std::optional<Background> server_;
  int tls_ = 0, plain_ = 0, mute_ = 0, settled_ = 0, greeter_ = 0;
  size_t read_ = 0;
};

}  // namespace coffer::test
