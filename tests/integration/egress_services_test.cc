// SPDX-License-Identifier: Apache-2.0
//
// Protocols other than HTTP with real clients and real servers: git and ssh with OpenSSH's server on port 22, and redis-cli
// with a Redis. Each is refused without its rule, and the note names the rule.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/support/run.h"

namespace coffer::test {
namespace {

RunResult RunServices(const std::string& which) {
  RunOptions options;
  options.timeout = Seconds(240);
  return RunProgram(
      {"python3", std::string(::getenv("COFFER_SOURCE")) + "/tests/support/egress_services.py",
       CofferPath(), which},
      options);
}

// The case, what the program inside printed, the notes, what the server counted.
TEST(EgressServices, GitAndSshToAnSshServer) {
  for (const char* const needed : {"/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/git"}) {
    if (!Exists(needed)) {
      GTEST_SKIP() << "this host has no " << needed;
    }
  }
  const Strings expected = {
      "clone | the repository's file | as noted | 1",
      "push | the repository's file pushed | as noted | 2",
      "session | inside 42 3000000 9 | as noted | 1",
      "another host | no | as noted | 0",
      "another port | no | as noted | 0",
      "with TLS only | no | as noted | 0",
      "the server has ['More', 'First']",
  };
  const RunResult run = RunServices("ssh");
  EXPECT_EQ(Lines(run.out), expected) << run.out << run.err;
}

TEST(EgressServices, RedisCli) {
  if (!Exists("/usr/bin/redis-server") || !Exists("/usr/bin/redis-cli")) {
    GTEST_SKIP() << "this host has no redis-server";
  }
  const Strings expected = {
      "allowed | 1 | as noted | 1",       "another host | no | as noted | 0",
      "another port | no | as noted | 0", "with TLS only | no | as noted | 0",
      "allowed again | 2 | as noted | 1",
  };
  const RunResult run = RunServices("redis");
  EXPECT_EQ(Lines(run.out), expected) << run.out << run.err;
}

}  // namespace
}  // namespace coffer::test
