// SPDX-License-Identifier: Apache-2.0
#include "policy/envelope.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

namespace coffer::policy {
namespace {

TEST(Envelope, NamesRoundTrip) {
  for (const Level level : {Level::kProcess, Level::kContainer, Level::kAuto}) {
    EXPECT_EQ(FindLevel(LevelName(level)), level);
  }
  EXPECT_FALSE(FindLevel(""));
  EXPECT_FALSE(FindLevel("none"));
  EXPECT_EQ(SyscallProfileName(SyscallProfile::kStrict), "strict");
  EXPECT_EQ(SyscallProfileName(SyscallProfile::kImported), "imported");
}

TEST(Envelope, DefaultsDeny) {
  const Envelope envelope;
  EXPECT_TRUE(envelope.mounts.empty());
  EXPECT_TRUE(envelope.env.empty());
  EXPECT_NE(envelope.uid, 0U);
  EXPECT_FALSE(envelope.tty);
  EXPECT_EQ(envelope.syscalls, SyscallProfile::kDefault);
  EXPECT_NE(CanonicalForm(envelope).find("\"network\":\"none\""), std::string::npos);
}

TEST(Envelope, TheIdIsStableAndSensitiveToEveryField) {
  const std::pair<const char*, std::function<void(Envelope&)>> changes[] = {
      {"level", [](Envelope& e) { e.level = Level::kContainer; }},
      {"floor", [](Envelope& e) { e.floor.Add(Layer::kSeccomp); }},
      {"cpu", [](Envelope& e) { e.limits.cpu += Nanos(1); }},
      {"wall", [](Envelope& e) { e.limits.wall += Nanos(1); }},
      {"memory", [](Envelope& e) { ++e.limits.memory; }},
      {"processes", [](Envelope& e) { ++e.limits.processes; }},
      {"open_files", [](Envelope& e) { ++e.limits.open_files; }},
      {"disk", [](Envelope& e) { ++e.limits.disk; }},
      {"inodes", [](Envelope& e) { ++e.limits.inodes; }},
      {"io", [](Envelope& e) { ++e.limits.io; }},
      {"output", [](Envelope& e) { ++e.limits.output; }},
      {"tmp", [](Envelope& e) { ++e.limits.tmp; }},
      {"mount", [](Envelope& e) { e.mounts.push_back({"/a", "/b", Access::kRead}); }},
      {"mount host", [](Envelope& e) { e.mounts.push_back({"/x", "/b", Access::kRead}); }},
      {"mount at", [](Envelope& e) { e.mounts.push_back({"/a", "/x", Access::kRead}); }},
      {"mount access", [](Envelope& e) { e.mounts.push_back({"/a", "/b", Access::kWrite}); }},
      {"input", [](Envelope& e) { e.inputs.emplace_back("/a"); }},
      {"two inputs", [](Envelope& e) { e.inputs = {"/a", "/b"}; }},
      {"one input with both names", [](Envelope& e) { e.inputs = {"/a\",\"/b"}; }},
      {"runtime", [](Envelope& e) { e.runtimes.emplace_back("sh"); }},
      {"env name", [](Envelope& e) { e.env.emplace_back("A", "1"); }},
      {"env value", [](Envelope& e) { e.env.emplace_back("A", "2"); }},
      {"cwd", [](Envelope& e) { e.cwd = "/tmp"; }},
      {"uid", [](Envelope& e) { e.uid = 1001; }},
      {"syscalls", [](Envelope& e) { e.syscalls = SyscallProfile::kStrict; }},
      {"seccomp", [](Envelope& e) { e.imported_seccomp = "{}"; }},
      {"seccomp text", [](Envelope& e) { e.imported_seccomp = "{ }"; }},
      {"tty", [](Envelope& e) { e.tty = true; }},
  };
  std::map<std::string, const char*> seen = {{EnvelopeId(Envelope()), "the default"}};
  for (const auto& [name, change] : changes) {
    Envelope envelope;
    change(envelope);
    const std::string id = EnvelopeId(envelope);
    EXPECT_TRUE(id.starts_with("sha256:") && id.size() == 71) << id;
    EXPECT_EQ(id, EnvelopeId(envelope));
    const auto [place, fresh] = seen.emplace(id, name);
    EXPECT_TRUE(fresh) << name << " has the id of " << place->second;
  }
}

TEST(Envelope, SecretsAreNotInTheCanonicalForm) {
  Envelope envelope;
  envelope.env.emplace_back("TOKEN", "hunter2-hunter2");
  const std::string form = CanonicalForm(envelope);
  EXPECT_NE(form.find("TOKEN"), std::string::npos);
  EXPECT_EQ(form.find("hunter2"), std::string::npos);
  EXPECT_EQ(form.find('\n'), std::string::npos);
}

TEST(OverBroad, WholeTreesAndSecretsAreRefused) {
  for (const char* path : {"/",
                           "/bin",
                           "/boot",
                           "/data",
                           "/dev",
                           "/etc",
                           "/home",
                           "/lib",
                           "/lib64",
                           "/media",
                           "/mnt",
                           "/opt",
                           "/proc",
                           "/root",
                           "/run",
                           "/sbin",
                           "/srv",
                           "/sys",
                           "/tmp",
                           "/usr",
                           "/var",
                           "/var/lib",
                           "/var/log",
                           "/var/run",
                           "/var/tmp",
                           "/Users",
                           "/var/cache",
                           "/home/alice",
                           "/proc/self",
                           "/proc/1/root",
                           "/sys/kernel",
                           "/dev/sda",
                           "/dev/shm",
                           "/run/docker.sock",
                           "/var/run/docker.sock",
                           "/run/user/1000",
                           "/boot/grub",
                           "/var/lib/docker",
                           "/var/lib/docker/x",
                           "/var/lib/containerd/x",
                           "/var/lib/kubelet/pods",
                           "/var/lib/coffer/state",
                           "/etc/shadow",
                           "/etc/sudoers",
                           "/etc/sudoers.d/x",
                           "/etc/ssh/key",
                           "/home/alice/.ssh",
                           "/home/alice/.ssh/id_ed25519",
                           "/home/alice/.aws/credentials",
                           "/root/.gnupg",
                           "/srv/x/.kube/config",
                           "/srv/.docker",
                           "/srv/.netrc",
                           "/srv/.pgpass",
                           "/srv/a/.npmrc",
                           "/srv/.git-credentials",
                           "/srv/.azure/x"}) {
    const auto reason = OverBroadReason(path);
    ASSERT_TRUE(reason) << path;
    EXPECT_NE(reason->find(path), std::string::npos) << *reason;
  }
}

TEST(OverBroad, WhatACallWorksOnIsNot) {
  for (const char* path : {"/home/alice/project", "/srv/data", "/data/set1", "/tmp/x", "/var/tmp/x",
                           "/opt/tool", "/usr/share/dict", "/mnt/disk/a", "/etc/hostname", "/homes",
                           "/procx", "/devices/x", "/runs", "/var/lib/dockerx", "/srv/ssh",
                           "/srv/.sshx", "/srv/x.ssh", "/etc/sshx", "/home/alice/.config/app"}) {
    EXPECT_FALSE(OverBroadReason(path)) << path << ": " << OverBroadReason(path).value_or("");
  }
}

// node_modules of a large project are a hundred thousand small files.
TEST(Envelope, InodesGrowWithTheDisk) {
  EXPECT_EQ(InodesFor(1 << 20, 4096), 4096U) << "the least";
  EXPECT_GT(InodesFor(1ULL << 30, 4096), 100000U);
  EXPECT_EQ(InodesFor(1ULL << 50, 4096), 1000000U) << "kernel memory, so there is a most";
}

}  // namespace
}  // namespace coffer::policy
