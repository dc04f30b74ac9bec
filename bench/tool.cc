// SPDX-License-Identifier: Apache-2.0
#include "tool.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "crun_bundle.h"

namespace coffer::bench {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Join(std::vector<std::string> head, const std::vector<std::string>& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string VersionOf(const std::string& program, const char* flag) {
  const Captured said = RunCaptured({{program, flag}});
  return FirstLine(said.out.empty() ? said.err : said.out);
}

// The links at the top of a merged-/usr system; on others the directories themselves are bound.
struct TopLink {
  std::string at, target;  // "/lib", "usr/lib"; target is empty for a real directory
};
std::vector<TopLink> TopLinks() {
  std::vector<TopLink> links;
  for (const char* name : {"/bin", "/lib", "/lib64", "/sbin"}) {
    if (fs::is_symlink(name)) {
      links.push_back({name, fs::read_symlink(name).string()});
    } else if (fs::is_directory(name)) {
      links.push_back({name, ""});
    }
  }
  return links;
}

Tool Prefixed(ToolInfo info, std::vector<std::string> prefix) {
  return {std::move(info), [prefix = std::move(prefix)](const Payload& payload, int) {
            return Command{Join(prefix, payload.argv), -1};
          }};
}

Tool Bubblewrap(const std::string& program) {
  std::vector<std::string> argv = {
      program,         "--unshare-all", "--cap-drop", "ALL",  "--die-with-parent",
      "--new-session", "--clearenv",    "--setenv",   "PATH", "/usr/bin:/bin",
      "--ro-bind",     "/usr",          "/usr"};
  for (const TopLink& link : TopLinks()) {
    argv = link.target.empty() ? Join(argv, {"--ro-bind", link.at, link.at})
                               : Join(argv, {"--symlink", link.target, link.at});
  }
  argv = Join(argv, {"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--"});
  return Prefixed(
      {kBubblewrap, VersionOf(program, "--version"),
       "all namespaces, no capabilities, read-only /usr; no cgroup, no seccomp, no Landlock"},
      argv);
}

Tool Nsjail(const std::string& program) {
  std::vector<std::string> argv = {program, "-Mo", "--really_quiet", "-R", "/usr", "-T", "/tmp"};
  for (const TopLink& link : TopLinks()) {
    argv = link.target.empty() ? Join(argv, {"-R", link.at})
                               : Join(argv, {"-s", link.target + ":" + link.at});
  }
  argv.emplace_back("--");
  return Prefixed(
      {"nsjail", FirstLine(VersionOf(program, "--version")),
       "all namespaces, no capabilities, rlimits, read-only /usr; no cgroup, no seccomp"},
      argv);
}

Tool Minijail(const std::string& program) {
  return Prefixed({"minijail", VersionOf(program, "--version"),
                   "mount, pid, net, ipc, uts, cgroup namespaces, no capabilities; no user "
                   "namespace, no cgroup limits"},
                  {program, "-p", "-v", "-e", "-l", "-N", "--uts", "-r", "-n", "-c", "0", "--"});
}

// The kernel's own share (bench/floor.cc). It makes cgroups where only root may.
Tool Floor(const std::string& program) {
  return Prefixed(
      {"floor", "",
       "not a tool: coffer's layers asked of the kernel and nothing else; no checks, no watching, "
       "no receipt"},
      {program});
}
Tool FloorBeside(const std::string& program) {
  return Prefixed({"floor, beside", "", "the same, the network made by another process meanwhile"},
                  {program, "--beside"});
}

// Adds it if it runs /bin/true.
void AddIfItRuns(Toolbox& box, Tool tool, const Payload& payload) {
  const Captured tried = RunCaptured(tool.make(payload, 0));
  if (tried.exit_code == 0) {
    box.tools.push_back(std::move(tool));
  } else {
    box.left_out.push_back(
        fmt::format("{}: exit code {}: {}", tool.info.name, tried.exit_code, FirstLine(tried.err)));
  }
}

}  // namespace

std::vector<Payload> MeasuredPayloads() {
  return {{"true", "/bin/true", {"/usr/bin/true"}},
          {"python", "python3 -c pass", {"/usr/bin/python3", "-c", "pass"}}};
}

Payload SleepingPayload() { return {"sleep", "/bin/sleep", {"/usr/bin/sleep", "20"}}; }

Toolbox FindTools(const std::string& coffer, const std::string& floor, const std::string& scratch,
                  const std::vector<Payload>& payloads) {
  Toolbox box;
  box.tools.push_back(Prefixed({kPlain, "", "posix_spawn and wait, no confinement"}, {}));
  if (!coffer.empty()) {
    Tool tool = Prefixed({kCoffer, VersionOf(coffer, "--version"), "every layer, see below"},
                         {coffer, "run", "--quiet", "--"});
    const Captured tried = RunCaptured(tool.make(payloads.front(), 0));
    if (tried.exit_code != 0) {
      Fail(fmt::format("coffer cannot run {} (exit code {}):\n{}", payloads.front().title,
                       tried.exit_code, tried.err));
    }
    box.tools.push_back(std::move(tool));
  }
  if (fs::exists(floor)) {
    const std::string program = fs::canonical(floor).string();
    AddIfItRuns(box, Floor(program), payloads.front());
    AddIfItRuns(box, FloorBeside(program), payloads.front());
  }
  if (const std::string program = FindOnPath("bwrap"); !program.empty()) {
    AddIfItRuns(box, Bubblewrap(program), payloads.front());
  } else {
    box.left_out.emplace_back("bubblewrap: not installed");
  }
  if (const std::string program = FindOnPath("crun"); !program.empty()) {
    const CrunSetup setup = SetUpCrun(program, scratch, payloads);
    if (setup.why_not.empty()) {
      box.tools.push_back(
          {{"crun", VersionOf(program, "--version"),
            setup.cgroups
                ? "all namespaces, no capabilities, memory and process cgroups; no seccomp"
                : "all namespaces but cgroup, no capabilities; no cgroup, no seccomp"},
           [program, scratch, setup](const Payload& payload, int slot) {
             return CrunCommand(program, scratch, setup, payload, slot);
           }});
    } else {
      box.left_out.push_back("crun: " + FirstLine(setup.why_not));
    }
  } else {
    box.left_out.emplace_back("crun: not installed");
  }
  if (const std::string program = FindOnPath("nsjail"); !program.empty()) {
    AddIfItRuns(box, Nsjail(program), payloads.front());
  }
  if (const std::string program = FindOnPath("minijail0"); !program.empty()) {
    AddIfItRuns(box, Minijail(program), payloads.front());
  }
  return box;
}

}  // namespace coffer::bench
