// SPDX-License-Identifier: Apache-2.0
#include "watch/incident.h"

#include <gtest/gtest.h>

namespace coffer::watch {
namespace {

TEST(Incident, KindsByName) {
  EXPECT_EQ(FindIncident("unshare"), "namespace");
  EXPECT_EQ(FindIncident("clone"), "namespace");
  EXPECT_EQ(FindIncident("mount"), "mount");
  EXPECT_EQ(FindIncident("mknodat"), "mount");
  EXPECT_EQ(FindIncident("ptrace"), "process");
  EXPECT_EQ(FindIncident("bpf"), "kernel");
  EXPECT_EQ(FindIncident("clock_adjtime"), "kernel");
  EXPECT_EQ(FindIncident("keyctl"), "keyring");
}

TEST(Incident, OrdinaryDenialsAreNone) {
  for (const char* name : {"chown", "socket", "sync", "", " ", "mount umount2", "ount", "moun", "x",
                           "set", "ptrace ", "unshare(CLONE_NEWUSER)"}) {
    EXPECT_EQ(FindIncident(name), std::nullopt) << name;
  }
}

TEST(Incident, Sentences) {
  EXPECT_EQ(DescribeIncidents({}), std::vector<std::string>{});
  EXPECT_EQ(DescribeIncidents({{"bpf", 1}, {"chown", 3}, {"pivot_root", 2}}),
            (std::vector<std::string>{"kernel: bpf was tried once and denied",
                                      "namespace: pivot_root was tried 2 times and denied"}));
}

}  // namespace
}  // namespace coffer::watch
