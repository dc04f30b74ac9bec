// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/policy/manifest/manifest_text.h"

namespace coffer::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(ManifestRules, BroadHostPaths) {
  for (const char* path :
       {"/", "/etc", "/home", "/root", "/var", "/data", "/mnt", "/usr", "/srv", "/tmp", "/opt",
        "/home/anna", "/home/anna/.ssh", "/run/docker.sock", "/var/lib/docker/x", "/etc/shadow"}) {
    const auto objection = ObjectToHostPath(path);
    ASSERT_TRUE(objection) << path;
    EXPECT_FALSE(objection->final) << path;
    EXPECT_THAT(objection->hint, HasSubstr("dangerously_host"));
  }
  for (const char* path : {"", "srv/x", "./x", "../x", "~", "~/x", "/srv/../etc", "/srv/./x",
                           "/srv//x", "/srv/x/", "/srv/*", "*", "/srv/x?", "/srv/[a]", "/proc",
                           "/proc/1/root", "/sys", "/dev/sda", "/srv/a\nb"}) {
    const auto objection = ObjectToHostPath(path);
    ASSERT_TRUE(objection) << path;
    EXPECT_TRUE(objection->final) << path;
  }
  for (const char* path : {"/srv/invoices", "/etc/myapp", "/home/anna/project", "/data/one",
                           "/var/www", "/processes"}) {
    EXPECT_FALSE(ObjectToHostPath(path)) << path;
  }
}

TEST(ManifestRules, MountPoints) {
  for (const char* path : {"/", "/etc", "/etc/x", "/usr/share", "/proc/x", "/workspace",
                           "/workspace/a", "/tmp", "/in", "data", "/a/../b"}) {
    EXPECT_TRUE(ObjectToMountPoint(path)) << path;
  }
  for (const char* path : {"/data", "/srv/x", "/inside", "/out", "/home/anna"}) {
    EXPECT_FALSE(ObjectToMountPoint(path)) << path;
  }
}

TEST(ManifestRules, BroadHosts) {
  for (const char* host : {"*.com", "**.org", "*.co.uk", "**.github.io", "*.amazonaws.com",
                           "*.gov.br", "**.vercel.app", "*.nip.io", "intranet", "10.0.0.5",
                           "172.16.3.4", "192.168.1.1", "100.64.0.1", "8.8.8.8"}) {
    const auto objection = ObjectToHost(host);
    ASSERT_TRUE(objection) << host;
    EXPECT_FALSE(objection->final) << host;
    EXPECT_THAT(objection->hint, HasSubstr("dangerously_host"));
  }
  for (const char* host : {"*",
                           "**",
                           "*.*",
                           "",
                           "https://a.example.com",
                           "a.example.com:443",
                           "a.example.com/x",
                           "A.example.com",
                           "a.example.com.",
                           "-a.example.com",
                           "a..example.com",
                           "a_b.example.com",
                           "*.*.example.com",
                           "a.*.com",
                           "*example.com",
                           "127.0.0.1",
                           "127.1.2.3",
                           "0.0.0.0",
                           "169.254.169.254",
                           "224.0.0.1",
                           "255.255.255.255",
                           "::1",
                           "fd00:ec2::254",
                           "[::1]",
                           "localhost",
                           "a.localhost",
                           "1.2.3.4.5",
                           "0x7f.1",
                           "010.0.0.1",
                           "256.1.1.1",
                           "m\xc3\xbcnchen.example",
                           "a b.example.com"}) {
    const auto objection = ObjectToHost(host);
    ASSERT_TRUE(objection) << host;
    EXPECT_TRUE(objection->final) << host;
  }
  for (const char* host : {"api.example.com", "*.example.com", "**.example.com",
                           "xn--mnchen-3ya.example", "a-1.b.example.co.uk", "*.mine.github.io"}) {
    EXPECT_FALSE(ObjectToHost(host)) << host;
  }
}

TEST(ManifestRules, WhichHostCoversWhich) {
  EXPECT_TRUE(HostCovers("a.example.com", "a.example.com"));
  EXPECT_FALSE(HostCovers("a.example.com", "b.example.com"));
  EXPECT_TRUE(HostCovers("*.example.com", "a.example.com"));
  EXPECT_TRUE(HostCovers("*.example.com", "b.a.example.com"));
  EXPECT_FALSE(HostCovers("*.example.com", "example.com"));
  EXPECT_TRUE(HostCovers("**.example.com", "example.com"));
  EXPECT_FALSE(HostCovers("*.example.com", "badexample.com"));
  EXPECT_FALSE(HostCovers("**.example.com", "badexample.com"));
  EXPECT_FALSE(HostCovers("*.example.com", "example.com.evil.org"));
  EXPECT_TRUE(HostCovers("*.example.com", "*.a.example.com"));
  EXPECT_TRUE(HostCovers("*.example.com", "*.example.com"));
  EXPECT_FALSE(HostCovers("*.example.com", "**.example.com"));
  EXPECT_FALSE(HostCovers("a.example.com", "*.example.com"));
}

std::vector<std::string> MistakesWith(std::string_view text) {
  std::vector<std::string> lines;
  for (const Mistake& mistake : ParseManifest(SmallestText() + std::string(text), "f").mistakes) {
    lines.push_back(FormatMistake("f", mistake));
  }
  return lines;
}

TEST(ManifestRules, ADangerousGrantNeedsItsKeyAndAReason) {
  EXPECT_THAT(MistakesWith("[[files.mount]]\nhost = \"/etc\"\nat = \"/data\"\n"),
              ElementsAre(StartsWith("f:8:8: files.mount.host: /etc is too broad")));
  EXPECT_THAT(MistakesWith("[[files.mount]]\ndangerously_host = \"/etc\"\nat = \"/data\"\n"),
              ElementsAre(StartsWith(
                  "f:8:20: files.mount.dangerously_host: dangerously_host needs a reason")));
  EXPECT_THAT(
      MistakesWith(
          "[[files.mount]]\ndangerously_host = \"/etc\"\nreason = \"short\"\nat = \"/data\"\n"),
      ElementsAre(StartsWith("f:9:10: files.mount.reason: dangerously_host needs a reason")));
  EXPECT_THAT(MistakesWith("[[files.mount]]\ndangerously_host = \"/srv/x\"\nreason = \"no reason "
                           "at all\"\nat = \"/data\"\n"),
              ElementsAre(StartsWith(
                  "f:8:20: files.mount.dangerously_host: nothing is dangerous about /srv/x")));
  EXPECT_THAT(
      MistakesWith("[[files.mount]]\ndangerously_host = \"/proc\"\nreason = \"we need the "
                   "processes\"\nat = \"/data\"\n"),
      ElementsAre(StartsWith("f:8:20: files.mount.dangerously_host: /proc is the kernel's")));
  EXPECT_THAT(MistakesWith("[[files.mount]]\nhost = \"/srv/x\"\nreason = \"a reason for "
                           "nothing\"\nat = \"/data\"\n"),
              ElementsAre(StartsWith("f:9:10: files.mount.reason: nothing dangerous")));
  EXPECT_THAT(MistakesWith("[[files.mount]]\nhost = \"/srv/x\"\ndangerously_host = "
                           "\"/etc\"\nreason = \"both of them\"\nat = \"/data\"\n"),
              ElementsAre(StartsWith("f:9:20: files.mount.dangerously_host: beside host")));

  const Manifest m = MustParse(SmallestText() +
                               "[[files.mount]]\ndangerously_host = \"/etc\"\nreason = \"audits "
                               "the whole configuration\"\nat = \"/data\"\n");
  ASSERT_THAT(m.dangers, SizeIs(1));
  EXPECT_EQ(m.dangers[0].key, "files.mount.dangerously_host");
  EXPECT_EQ(m.dangers[0].value, "/etc");
  EXPECT_EQ(m.dangers[0].reason, "audits the whole configuration");
  EXPECT_EQ(m.dangers[0].position, (Position{8, 1}));
  EXPECT_TRUE(m.mounts[0].dangerous);
  EXPECT_EQ(m.mounts[0].host, "/etc");
}

TEST(ManifestRules, DangerousNetwork) {
  EXPECT_THAT(
      MistakesWith("[[network.allow]]\nhost = \"*.com\"\npaths = [\"/**\"]\n"),
      ElementsAre(StartsWith("f:8:8: network.allow.host: *.com covers a whole top-level domain")));
  EXPECT_THAT(MistakesWith("[[network.allow]]\nhost = \"*\"\npaths = [\"/**\"]\n"),
              ElementsAre(HasSubstr("dangerously_allow_any_host = true")));
  EXPECT_THAT(MistakesWith("[[network.allow]]\ndangerously_host = \"169.254.169.254\"\nreason = "
                           "\"instance identity\"\npaths = [\"/**\"]\n"),
              ElementsAre(HasSubstr("metadata service")));
  EXPECT_THAT(
      MistakesWith("[[network.allow]]\ndangerously_allow_any_host = true\npaths = [\"/**\"]\n"),
      ElementsAre(StartsWith("f:8:30: network.allow.dangerously_allow_any_host: "
                             "dangerously_allow_any_host needs a reason")));
  EXPECT_THAT(MistakesWith("[[network.allow]]\ndangerously_allow_any_host = false\nreason = \"none "
                           "of them at all\"\npaths = [\"/**\"]\n"),
              ElementsAre(HasSubstr("false grants nothing")));
  EXPECT_THAT(MistakesWith("[[network.allow]]\nhost = \"a.example.com\"\ndangerously_port_range = "
                           "\"9-1\"\nreason = \"many services there\"\npaths = [\"/**\"]\n"),
              ElementsAre(HasSubstr("\"9-1\" is not a range")));
  const Manifest m =
      MustParse(SmallestText() +
                "[[network.allow]]\ndangerously_allow_any_host = true\ndangerously_port_range = "
                "\"8000-8080\"\n"
                "reason = \"a crawler, which visits everything\"\npaths = [\"/**\"]\n"
                "[[network.allow]]\ndangerously_host = \"10.0.0.5\"\nreason = \"the old billing "
                "host\"\npaths = [\"/**\"]\n");
  EXPECT_THAT(m.dangers, SizeIs(3));
  EXPECT_TRUE(m.network[0].any_host);
  EXPECT_EQ(m.network[0].ports[0], (PortRange{8000, 8080}));
  EXPECT_TRUE(m.network[1].dangerous);
}

TEST(ManifestRules, DangerousRuntime) {
  const Manifest m = MustParse(
      "[tool]\nname = \"x\"\nversion = \"1\"\n[run]\ndangerously_runtime = \"host-usr\"\nreason = "
      "\"needs the compilers\"\nargv = [\"cc\"]\n");
  EXPECT_EQ(m.run.runtime, "host-usr");
  ASSERT_THAT(m.dangers, SizeIs(1));
  EXPECT_EQ(m.dangers[0].key, "run.dangerously_runtime");
}

TEST(ManifestRules, VariablesThatAreCode) {
  for (const char* name :
       {"LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "PYTHONSTARTUP", "NODE_OPTIONS",
        "BASH_ENV", "ENV", "IFS", "PERL5OPT", "GLIBC_TUNABLES"}) {
    EXPECT_TRUE(IsCodeVariable(name)) << name;
  }
  for (const char* name : {"LANG", "CUSTOMER", "MOOD", "TZ"}) {
    EXPECT_FALSE(IsCodeVariable(name)) << name;
  }
}

}  // namespace
}  // namespace coffer::policy
