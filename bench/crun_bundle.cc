// SPDX-License-Identifier: Apache-2.0
#include "crun_bundle.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace coffer::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kUnifiedMount = "/sys/fs/cgroup/unified";

std::string BundleId(const Payload& payload, int slot) {
  return fmt::format("coffer-bench-{}-{}", payload.key, slot);
}

Json IdMap() {
  if (::geteuid() == 0) {
    return {{{"containerID", 0}, {"hostID", 100000}, {"size", 65536}}};
  }
  return Json::array({{{"containerID", 0}, {"hostID", ::geteuid()}, {"size", 1}}});
}

Json Mount(const char* at, const char* type, const char* source, std::vector<std::string> options) {
  return {{"destination", at}, {"type", type}, {"source", source}, {"options", std::move(options)}};
}

Json Spec(const Payload& payload, int slot, bool cgroups) {
  Json none = Json::array();
  Json spec;
  spec["ociVersion"] = "1.0.0";
  spec["process"] = {{"terminal", false},
                     {"user", {{"uid", 0}, {"gid", 0}}},
                     {"args", payload.argv},
                     {"env", {"PATH=/usr/bin:/bin"}},
                     {"cwd", "/"},
                     {"capabilities",
                      {{"bounding", none},
                       {"effective", none},
                       {"inheritable", none},
                       {"permitted", none},
                       {"ambient", none}}},
                     {"noNewPrivileges", true}};
  spec["root"] = {{"path", "rootfs"}, {"readonly", true}};
  spec["hostname"] = "bench";
  spec["mounts"] = {Mount("/usr", "bind", "/usr", {"rbind", "ro", "nosuid", "nodev"}),
                    Mount("/proc", "proc", "proc", {"nosuid", "nodev", "noexec"}),
                    Mount("/dev", "tmpfs", "tmpfs", {"nosuid", "mode=755", "size=65536k"}),
                    Mount("/tmp", "tmpfs", "tmpfs", {"nosuid", "nodev", "size=65536k"})};
  Json namespaces = Json::array();
  for (const char* type : {"pid", "network", "ipc", "uts", "mount", "user"}) {
    namespaces.push_back({{"type", type}});
  }
  if (cgroups) {
    namespaces.push_back({{"type", "cgroup"}});
  }
  spec["linux"] = {{"uidMappings", IdMap()}, {"gidMappings", IdMap()}, {"namespaces", namespaces}};
  if (cgroups) {
    spec["linux"]["cgroupsPath"] = "/" + BundleId(payload, slot);
    spec["linux"]["resources"] = {{"memory", {{"limit", 256 << 20}}}, {"pids", {{"limit", 32}}}};
  }
  return spec;
}

void WriteBundles(const std::string& scratch, const std::vector<Payload>& payloads, bool cgroups) {
  for (const Payload& payload : payloads) {
    for (int slot = 0; slot < kMaxWorkers; ++slot) {
      const fs::path bundle = fs::path(scratch) / BundleId(payload, slot);
      for (const char* dir : {"usr", "proc", "dev", "tmp"}) {
        fs::create_directories(bundle / "rootfs" / dir);
      }
      for (const char* link : {"bin", "lib", "lib64", "sbin"}) {
        const fs::path at = bundle / "rootfs" / link;
        if (fs::is_symlink(fs::path("/") / link) && !fs::is_symlink(at)) {
          fs::create_symlink(fs::read_symlink(fs::path("/") / link), at);
        }
      }
      std::ofstream(bundle / "config.json") << Spec(payload, slot, cgroups).dump();
    }
  }
}

// A mount namespace like ours in which the cgroup v2 mount beside cgroup v1 does not exist, or -1.
int ViewWithoutUnified() {
  if (::geteuid() != 0 || !fs::exists(fs::path(kUnifiedMount) / "cgroup.controllers")) {
    return -1;
  }
  int ready[2];
  int done[2];
  if (::pipe2(ready, O_CLOEXEC) != 0 || ::pipe2(done, O_CLOEXEC) != 0) {
    Fail("cannot make a pipe");
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(done[1]);
    const bool ok = ::unshare(CLONE_NEWNS) == 0 &&
                    ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                    ::umount2(kUnifiedMount, MNT_DETACH) == 0;
    char byte = ok ? 1 : 0;
    (void)!::write(ready[1], &byte, 1);
    (void)!::read(done[0], &byte, 1);
    ::_exit(0);
  }
  ::close(ready[1]);
  char byte = 0;
  int view = -1;
  if (::read(ready[0], &byte, 1) == 1 && byte == 1) {
    view = ::open(fmt::format("/proc/{}/ns/mnt", child).c_str(), O_RDONLY | O_CLOEXEC);
  }
  ::close(ready[0]);
  ::close(done[0]);
  ::close(done[1]);
  ::waitpid(child, nullptr, 0);
  return view;
}

}  // namespace

Command CrunCommand(const std::string& crun, const std::string& scratch, const CrunSetup& setup,
                    const Payload& payload, int slot) {
  const std::string id = BundleId(payload, slot);
  return {{crun, "--root", scratch + "/state",
           std::string("--cgroup-manager=") + (setup.cgroups ? "cgroupfs" : "disabled"), "run",
           "--bundle", scratch + "/" + id, id},
          setup.mount_view};
}

CrunSetup SetUpCrun(const std::string& crun, const std::string& scratch,
                    const std::vector<Payload>& payloads) {
  std::vector<CrunSetup> candidates;
  if (::geteuid() == 0) {
    candidates.push_back({true, -1, ""});
    if (const int view = ViewWithoutUnified(); view >= 0) {
      candidates.push_back({true, view, ""});
    }
  }
  candidates.push_back({false, -1, ""});
  std::string why;
  for (const CrunSetup& setup : candidates) {
    WriteBundles(scratch, payloads, setup.cgroups);
    const Captured tried = RunCaptured(CrunCommand(crun, scratch, setup, payloads.front(), 0));
    if (tried.exit_code == 0) {
      return setup;
    }
    why = tried.err;
  }
  return {false, -1, why.empty() ? "it exited with an error and no message" : why};
}

}  // namespace coffer::bench
