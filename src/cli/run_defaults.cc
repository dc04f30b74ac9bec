// SPDX-License-Identifier: Apache-2.0
//
// The names of the flags, and what --project sets for a build or a test run instead of a script's small limits.
#include <algorithm>

#include "cli/run_flags.h"

namespace coffer::cli {
namespace {

// Minutes, not seconds: dependencies are compiled, suites are run.
policy::Limits ProjectLimits() {
  policy::Limits limits;
  limits.cpu = std::chrono::minutes(60);
  limits.wall = std::chrono::minutes(30);
  limits.memory = 2ULL << 30;
  limits.processes = 512;
  limits.open_files = 4096;
  limits.disk = 4ULL << 30;
  limits.inodes = 1 << 20;
  limits.io = 64ULL << 30;
  limits.output = 16ULL << 20;
  limits.tmp = 1ULL << 30;
  return limits;
}

}  // namespace

const std::vector<std::string_view>& RunFlagNames() {
  static const std::vector<std::string_view> names = {
      "--ro",           "--rw",         "--in",          "--out",         "--project",
      "--keep-planted", "--cache",      "--profile",     "--runtime",     "--env",
      "--cwd",          "--uid",        "--tty",         "--cpu",         "--wall",
      "--memory",       "--processes",  "--open-files",  "--disk",        "--tmp",
      "--io",           "--output",     "--fail-on-cut", "--session",     "--level",
      "--floor",        "--seccomp",    "--receipt",     "--state",       "--trace",
      "--quiet",        "--publish",    "--reason",      "--no-exec",     "--ro-overlay",
      "--allow",        "--help",       "--resolve",     "--upstream-ca", "--tools",
      "--tools-dir",    "--tool-calls", "--hold",        "--hold-time",   "--upstream-proxy",
      "--never-send"};
  return names;
}

void UseProjectDefaults(const std::vector<std::string_view>& given, call::RunRequest& request) {
  const auto said = [&](std::string_view flag) {
    return std::find(given.begin(), given.end(), flag) != given.end();
  };
  policy::Envelope& envelope = request.envelope;
  policy::Limits& limits = envelope.limits;
  const policy::Limits before = limits;
  limits = ProjectLimits();
  const auto keep = [&](std::string_view flag, auto policy::Limits::* cap) {
    if (said(flag)) {
      limits.*cap = before.*cap;
    }
  };
  keep("--cpu", &policy::Limits::cpu);
  keep("--wall", &policy::Limits::wall);
  keep("--memory", &policy::Limits::memory);
  keep("--processes", &policy::Limits::processes);
  keep("--open-files", &policy::Limits::open_files);
  keep("--disk", &policy::Limits::disk);
  keep("--io", &policy::Limits::io);
  keep("--output", &policy::Limits::output);
  keep("--tmp", &policy::Limits::tmp);
  if (envelope.runtimes.empty()) {
    envelope.runtimes = {"host-usr"};
  }
  if (!said("--cwd")) {
    envelope.cwd.clear();  // known when the project is (run_paths.h)
  }
}

}  // namespace coffer::cli
