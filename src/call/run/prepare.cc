// SPDX-License-Identifier: Apache-2.0
#include "call/run/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/hash.h"
#include "base/path_words.h"
#include "base/sys.h"
#include "base/text.h"
#include "call/run/cache_dirs.h"
#include "call/run/call_variables.h"
#include "call/run/daemon_program.h"
#include "call/run/launch_tools.h"
#include "call/run/network_hint.h"
#include "call/run/program_places.h"
#include "call/run/project_around.h"
#include "call/run/project_path.h"
#include "call/run/read_inputs.h"
#include "call/run/run_config.h"
#include "call/run/usual_directories.h"
#include "call/run/usual_toolchains.h"
#include "call/run/working_directory.h"
#include "isolation/compose_etc.h"
#include "isolation/etc.h"
#include "isolation/fifo_search.h"
#include "isolation/mount_place.h"
#include "isolation/protected_paths.h"
#include "isolation/runtime/mounted_command.h"
#include "isolation/runtime/program.h"
#include "isolation/runtime/real_path.h"
#include "isolation/runtime/runtime.h"
#include "limits/least.h"

namespace coffer::call {
namespace {

Status MakeOutDir(const std::string& given) {
  if (given.empty()) {
    return {};
  }
  TRY_ASSIGN(const std::string path, isolation::CleanPath(given));
  const size_t slash = path.rfind('/');
  const auto refused = [&](const Error& error) {
    return Refused(
        "policy.path",
        fmt::format("cannot create {}: {}", PathInWords(path), sys::ErrnoText(error.sys_errno)),
        path.find(':') == std::string::npos
            ? "create the directory for --out first: mkdir -p " + path
            : "--out takes a directory without a colon and shows it at /out; --rw DIR:AT shows one "
              "elsewhere");
  };
  const Result<UniqueFd> parent =
      sys::OpenNoLinks(AT_FDCWD, slash == 0 ? "/" : path.substr(0, slash), O_PATH | O_DIRECTORY);
  if (!parent.ok()) {
    return refused(parent.error());
  }
  const Status made = sys::MakeDirAt(parent->get(), path.substr(slash + 1), 0755);
  if (!made.ok() && made.error().sys_errno != EEXIST) {
    return refused(made.error());
  }
  return {};
}

// A session's own directory, in place of a fresh /workspace.
Status OpenWorkspace(const policy::Envelope& envelope, Prepared& prepared) {
  if (envelope.workspace.empty()) {
    return {};
  }
  isolation::OpenedMount opened;
  TRY_ASSIGN(opened.path,
             isolation::OpenHostPath(envelope.workspace, envelope.workspace_access,
                                     isolation::Breadth::kAny, isolation::BindReason::kWorkspace));
  opened.at = "/workspace";
  opened.access = envelope.workspace_access;
  opened.workspace = true;
  TRY_ASSIGN(opened.fifos, isolation::FindFifos(opened.path));
  prepared.mounts.push_back(std::move(opened));
  return {};
}

// Directories that no mount may show, because Cofferdam trusts their contents. Manifests, the configuration and
// toolchains may be read.
std::vector<std::string> ProtectedPaths(const RunRequest& request, const RunConfig& config,
                                        policy::Access access) {
  std::vector<std::string> places;
  if (access == policy::Access::kWrite) {
    places = UsualToolDirs();
    places.insert(places.end(), request.tool_dirs.begin(), request.tool_dirs.end());
    if (std::string usual = UsualConfigDir(); usual.starts_with('/')) {
      places.push_back(std::move(usual));
    }
    places.insert(places.end(), config.toolchains.begin(), config.toolchains.end());
    for (const std::string& usual : UsualToolchainPlaces()) {
      if (Result<std::string> clean = isolation::CleanPath(usual); clean.ok()) {
        places.push_back(std::move(clean).value());
      }
    }
    if (!config.directory.empty()) {
      places.push_back(config.directory);
    }
  }
  for (const std::string& given : {request.state, UsualStateDir(), isolation::DefaultCacheDir()}) {
    if (Result<std::string> clean = isolation::CleanPath(given); clean.ok()) {
      places.push_back(std::move(clean).value());
    }
  }
  return places;
}

// A mount that the call may write must not show what runs outside of a boundary, now or when the next call needs it.
Status CheckShowsNoProgram(const isolation::HostPath& path) {
  TRY_ASSIGN(const std::vector<std::string> programs, OwnPrograms());
  return isolation::CheckShowsNone(path, policy::Access::kWrite, programs);
}

// A project may hold them, as the checkout of Cofferdam does. There they are read-only, like what else the host runs.
Result<std::vector<std::string>> ReadOnlyInProject(const RunRequest& request) {
  std::vector<std::string> paths = request.project_read_only;
  TRY_ASSIGN(const std::vector<std::string> programs, OwnPrograms());
  for (const std::string& program : programs) {
    const std::string path = isolation::Normalize(program);
    if (path != request.project && isolation::IsAtOrBelow(path, request.project)) {
      paths.push_back(path.substr(request.project.size() + 1));
    }
  }
  return paths;
}

Status OpenMounts(const RunRequest& request, const RunConfig& config, Prepared& prepared) {
  TRY(MakeOutDir(request.out_dir));
  bool unprotected = false;  // the project can be written
  for (const policy::Mount& mount : request.envelope.mounts) {
    isolation::OpenedMount opened;
    TRY_ASSIGN(opened.path,
               isolation::OpenHostPath(mount.host, mount.access, isolation::BreadthOf(mount)));
    TRY(isolation::CheckShowsNone(opened.path, mount.access,
                                  ProtectedPaths(request, config, mount.access)));
    if (mount.at.empty()) {
      opened.at = opened.path.path;
    } else {
      if (mount.at.front() != '/') {
        return Refused("policy.mount.target",
                       fmt::format("the mount target {} is not absolute", PathInWords(mount.at)),
                       "write it as /data");
      }
      TRY_ASSIGN(opened.at, isolation::CleanPath(mount.at));
    }
    opened.access = mount.access;
    if (mount.access == policy::Access::kWrite && !opened.path.directory) {
      return Refused("policy.path.kind",
                     fmt::format("{} is not a directory", PathInWords(opened.path.path)),
                     !request.project.empty() && mount.host == request.project
                         ? "--project takes a directory: --project . is the current one"
                         : "--rw and --out take directories; --ro and --in take files");
    }
    if (opened.path.directory) {
      TRY_ASSIGN(opened.fifos, isolation::FindFifos(opened.path));
    }
    const bool writes = mount.access == policy::Access::kWrite;
    const bool shows_project = writes && !request.project.empty() && mount.host == request.project;
    // At its own place; elsewhere it is a mount like others.
    const bool project = shows_project && opened.at == opened.path.path;
    unprotected = unprotected || shows_project;
    if (writes && !project) {
      TRY(CheckShowsNoProgram(opened.path));
    }
    prepared.mounts.push_back(std::move(opened));
    if (project) {
      TRY_ASSIGN(const std::vector<std::string> read_only, ReadOnlyInProject(request));
      TRY_ASSIGN(prepared.project,
                 Project::Open(request.keep_planted ? PlantedRule::kKeep : PlantedRule::kSetAside,
                               read_only, prepared.mounts));
    }
  }
  if (unprotected && !prepared.project) {
    return Internal("policy.project", "the project is not mounted at its own place");
  }
  for (const isolation::OpenedMount& mount : prepared.mounts) {
    if (mount.project && !mount.within) {
      // A project may bring its git directory, which no word of the caller named.
      TRY(isolation::CheckShowsNone(mount.path, mount.access,
                                    ProtectedPaths(request, config, mount.access)));
    }
  }
  if (prepared.project) {
    TRY(PutAroundProjects(request.envelope, prepared.mounts));
  }
  TRY(OpenWorkspace(request.envelope, prepared));
  TRY(isolation::CheckTargets(prepared.mounts, prepared.runtime.set));
  return isolation::FindPlaces(prepared.mounts);
}

// What a project holds read-only is read-only at its own place. A second mount of the same directory would be another way
// to it.
Status CheckProjectHolds(const Prepared& prepared) {
  for (const isolation::OpenedMount& mount : prepared.mounts) {
    if (mount.access != policy::Access::kWrite || mount.within || mount.project) {
      continue;
    }
    for (const isolation::OpenedMount& held : prepared.mounts) {
      if (held.within && held.access == policy::Access::kRead &&
          isolation::Reaches(mount.path, held.path)) {
        return Refused(
            "policy.project.overlap",
            fmt::format("{} would show {} in a second place, where nothing protects it",
                        PathInWords(Printable(mount.path.path)),
                        PathInWords(Printable(held.path.path))),
            "the project is writable where it is; name a directory beside it, or one in it that "
            "holds nothing the host runs later");
      }
    }
  }
  return {};
}

// No place that the call may write holds the receipt, whatever brought the place in.
Status CheckReceipt(const RunRequest& request, const Prepared& prepared) {
  for (const isolation::OpenedMount& mount : prepared.mounts) {
    if (mount.access == policy::Access::kWrite && !mount.within) {
      TRY(isolation::CheckReceiptOutside(mount.path, request.receipt_path));
    }
  }
  return {};
}

// The command's path if it lies in the project, which shows it at its own place; otherwise "".
std::string CommandInProject(const RunRequest& request) {
  const std::string& name = request.command.front();
  const Result<std::string> path = isolation::Absolute(name);
  if (request.project.empty() || !path.ok() ||
      (!request.script && name.find('/') == std::string::npos)) {
    return {};
  }
  std::string clean = isolation::Normalize(*path);
  return isolation::IsAtOrBelow(clean, request.project) ? clean : "";
}

// A script or program of the project is run where it is: what it needs beside itself is there too.
Result<isolation::Command> ResolveInProject(const RunRequest& request, const std::string& path,
                                            const isolation::ResolveOptions& options) {
  isolation::Command resolved;
  if (request.script) {
    Result<isolation::Command> found =
        isolation::ResolveScript(path, request.envelope.runtimes, options);
    if (!found.ok()) {
      Error error = std::move(found.error());
      if (error.sys_errno == ENOENT && error.hint.empty()) {
        error.hint = kCommandHint;
      }
      return error;
    }
    resolved = std::move(found).value();
  }
  if (resolved.program.empty()) {
    TRY_ASSIGN(resolved.runtime, isolation::ResolveRuntimes(request.envelope.runtimes, options));
    resolved.runtimes = request.envelope.runtimes;
    TRY(isolation::UseMounted(path, path, options, resolved));
  }
  resolved.argv.push_back(path);
  resolved.argv.insert(resolved.argv.end(), request.command.begin() + 1, request.command.end());
  return resolved;
}

// What runs, what it needs, and what goes before the script's own arguments.
Result<isolation::Command> ResolveProgram(const RunRequest& request,
                                          const isolation::RuntimeGrounds& grounds,
                                          const isolation::ResolveOptions& options,
                                          Prepared& prepared) {
  const std::vector<std::string>& command = request.command;
  if (const std::string path = CommandInProject(request); !path.empty()) {
    return ResolveInProject(request, path, options);
  }
  isolation::Command resolved;
  if (request.script) {
    TRY_ASSIGN(isolation::Input script, ReadScript(command.front(), grounds));
    TRY_ASSIGN(resolved,
               isolation::ResolveScript(command.front(), request.envelope.runtimes, options));
    prepared.code_hash = HashOf(script.content);
    prepared.script_reaches = HostInScript(script.content);
    if (!resolved.program.empty()) {
      resolved.argv.push_back("/in/" + script.name);
      resolved.argv.insert(resolved.argv.end(), command.begin() + 1, command.end());
      prepared.inputs.push_back(std::move(script));
    }
  }
  if (resolved.program.empty()) {
    std::vector<std::string> argv = command;
    if (request.script) {
      TRY_ASSIGN(argv.front(), isolation::CleanPath(argv.front()));  // an ELF program: run as it is
    }
    TRY_ASSIGN(resolved, isolation::ResolveCommand(argv, request.envelope.runtimes, options));
  }
  return resolved;
}

// Resolves the program and opens its files. An answer of the cache that is out of date is not used.
Status OpenProgramFiles(const RunRequest& request, const RunConfig& config, Prepared& prepared) {
  isolation::RuntimeGrounds grounds{
      request.reads_config ? config.toolchains : std::vector<std::string>(),
      ProtectedPaths(request, config, policy::Access::kRead)};
  for (const bool use_cache : {true, false}) {
    const size_t inputs = prepared.inputs.size();
    isolation::ResolveOptions options;
    options.use_cache = use_cache;
    options.runtimes_only = request.runtimes_only;
    options.own_programs = request.reads_config;
    options.optional_runtimes = request.envelope.optional_runtimes;
    if (!request.runtimes_only) {
      options.mounts = MountedPlaces(request.envelope);
    }
    TRY_ASSIGN(isolation::Command resolved, ResolveProgram(request, grounds, options, prepared));
    if (request.reads_config && HoldsMoreThanUsr(resolved.runtime)) {
      AddUsualToolchains(grounds.toolchains);
    }
    std::vector<std::string> path_first = AddProjectPath(request, grounds, options, resolved);
    path_first.insert(path_first.begin(), {resolved.interpreter, resolved.program});
    isolation::AddPublicFiles(resolved.runtime);
    if (request.envelope.tty) {
      isolation::AddTerminfo(resolved.runtime);
    }
    if (request.tools_server != nullptr) {
      TRY(AddToolsProgram(resolved.runtime));
      path_first.emplace_back(kToolsProgram);
    }
    Result<isolation::OpenedRuntime> opened =
        isolation::OpenRuntime(std::move(resolved.runtime), grounds);
    if (!opened.ok() && use_cache && opened.error().code == isolation::kStaleRuntime) {
      prepared.inputs.resize(inputs);
      continue;
    }
    TRY_ASSIGN(prepared.runtime, std::move(opened));
    prepared.call.program = std::move(resolved.program);
    prepared.call.argv = std::move(resolved.argv);
    prepared.runtimes = std::move(resolved.runtimes);
    prepared.path_first = std::move(path_first);
    return {};
  }
  return Internal("runtime.stale", "a runtime changed while it was being looked up");
}

std::vector<std::string> BuildEnvironment(
    const policy::Envelope& envelope,
    const std::vector<std::pair<std::string, std::string>>& caches) {
  std::vector<std::pair<std::string, std::string>> variables = {
      {"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"},
      {"HOME", "/workspace"},
      {"USER", envelope.uid == 0 ? "root" : isolation::kUserName},
      {"LOGNAME", envelope.uid == 0 ? "root" : isolation::kUserName},
      {"LANG", "C.UTF-8"},
      {"TMPDIR", "/tmp"},
  };
  if (envelope.tty) {
    variables.emplace_back("TERM", "xterm-256color");
  }
  variables.insert(variables.end(), caches.begin(), caches.end());
  for (const auto& [name, value] : envelope.env) {
    const auto same = std::find_if(variables.begin(), variables.end(),
                                   [&](const auto& v) { return v.first == name; });
    if (same != variables.end()) {
      same->second = value;
    } else {
      variables.emplace_back(name, value);
    }
  }
  std::vector<std::string> env;
  env.reserve(variables.size());
  for (const auto& [name, value] : variables) {
    env.push_back(name + "=" + value);
  }
  return env;
}

bool Writes(const policy::Envelope& envelope) {
  return std::any_of(
      envelope.mounts.begin(), envelope.mounts.end(),
      [](const policy::Mount& mount) { return mount.access == policy::Access::kWrite; });
}

}  // namespace

Result<Prepared> Prepare(const RunRequest& request) {
  Prepared prepared;
  TRY(ReadInputs(request.envelope.inputs, prepared.inputs));
  RunConfig config;
  if (request.reads_config || Writes(request.envelope)) {
    TRY_ASSIGN(config, ReadRunConfig());
    if (request.script || !request.envelope.mounts.empty()) {
      AddUsualToolchains(config.toolchains);
    }
  }
  TRY(OpenProgramFiles(request, config, prepared));
  TRY(OpenMounts(request, config, prepared));
  TRY_ASSIGN(OpenedCaches caches, OpenCaches(request.project, request.caches));
  for (const isolation::OpenedMount& cache : caches.mounts) {
    if (prepared.project) {
      prepared.project->AddCache(cache.path);
    }
  }
  std::move(caches.mounts.begin(), caches.mounts.end(), std::back_inserter(prepared.mounts));
  TRY(CheckProjectHolds(prepared));
  TRY(CheckReceipt(request, prepared));
  prepared.notes = std::move(caches.notes);
  prepared.call.env = BuildEnvironment(request.envelope, caches.env);
  if (prepared.project && prepared.project->HoldsGit()) {
    // Go takes any `.git` for a repository, asks git about it, and does not build when git knows of none. Go 1.18 and later.
    SetVariable("GOFLAGS", "-buildvcs=false", prepared.call.env);
  }
  for (auto place = prepared.path_first.rbegin(); place != prepared.path_first.rend(); ++place) {
    AddToPath(*place, request.envelope, prepared.call.env);
  }
  TRY(CheckWorkingDirectory(request.envelope.cwd, prepared.mounts, prepared.runtime));
  prepared.call.cwd = request.envelope.cwd;
  prepared.call.tty = request.envelope.tty;
  TRY(limits::CheckLeast(request.envelope.limits, isolation::CallBytes(prepared.call)));
  return prepared;
}

}  // namespace coffer::call
