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
  EXPECT_EQ(DescribeLeaks(0), "");
  EXPECT_EQ(DescribeLeaks(1),
            "leak: a request that held a value which must never leave was stopped");
  EXPECT_EQ(DescribeLeaks(3),
            "leak: 3 requests that held a value which must never leave were stopped");
}

TEST(Incident, MetadataServicesAndLinkLocalAddresses) {
  for (const char* const host : {"169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
                                 "2002:a9fe:a9fe::1", "169.254.170.2", "100.100.100.200",
                                 "fd00:ec2::254", "metadata.google.internal", "instance-data"}) {
    EXPECT_EQ(FindDestination(host, ""), "metadata") << host;
  }
  for (const char* const host : {"169.254.1.1", "fe80::1", "::ffff:169.254.0.9"}) {
    EXPECT_EQ(FindDestination(host, ""), "link_local") << host;
  }
  EXPECT_EQ(FindDestination("hooks.example.com", "169.254.169.254"), "metadata");
  EXPECT_EQ(FindDestination("hooks.example.com", "fe80::1"), "link_local");
}

TEST(Incident, NamesThatLeadInside) {
  for (const char* const address :
       {"127.0.0.1", "::1", "10.1.2.3", "192.168.0.1", "fd00::1", "100.64.0.1", "::ffff:10.0.0.1",
        "0.0.0.0", "64:ff9b::a00:1", "93.184.216.34"}) {  // the last can only be this host's own
    EXPECT_EQ(FindDestination("hooks.example.com", address), "internal") << address;
  }
}

TEST(Incident, OrdinaryDestinationsAreNone) {
  for (const char* const host :
       {"evil.example.com", "93.184.216.34", "10.1.2.3", "127.0.0.1", "::1", "fd00::1",
        "2606:2800::1", "metadata.example.com", "others", ""}) {
    EXPECT_EQ(FindDestination(host, ""), std::nullopt) << host;
  }
  for (const char* const address : {"224.0.0.1", "192.0.2.1", "2001::1", "64:ff9b::5db8:d822"}) {
    EXPECT_EQ(FindDestination("hooks.example.com", address), std::nullopt) << address;
  }
}

TEST(Incident, RulesOfDestinationsGoThereAndBack) {
  for (const char* const kind : {"metadata", "link_local", "internal"}) {
    EXPECT_EQ(DestinationOfRule(RuleOfDestination(kind)), kind);
  }
  for (const char* const rule :
       {"egress", "egress.", "egress.ended", "metadata", "seccomp.default", "egress.metadata.x"}) {
    EXPECT_EQ(DestinationOfRule(rule), std::nullopt) << rule;
  }
}

TEST(Incident, ASentenceForEachKindOfDestination) {
  EXPECT_EQ(DescribeDestinations({}), std::vector<std::string>{});
  const std::vector<RefusedDestination> refused = {{"internal", "a.test:443", 1},
                                                   {"metadata", "169.254.169.254:80", 2},
                                                   {"metadata", "169.254.169.254:80", 1},
                                                   {"metadata", "metadata.goog", 3},
                                                   {"link_local", "[fe80::1]:80", 4}};
  EXPECT_EQ(DescribeDestinations(refused),
            (std::vector<std::string>{
                "metadata: 169.254.169.254:80 and 1 other were tried 6 times and refused",
                "link_local: [fe80::1]:80 was tried 4 times and refused",
                "internal: a.test:443 was tried once and refused"}));
}

}  // namespace
}  // namespace coffer::watch
