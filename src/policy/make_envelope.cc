// SPDX-License-Identifier: Apache-2.0
#include "policy/make_envelope.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "policy/egress_line.h"
#include "policy/path_param.h"

namespace coffer::policy {
namespace {

constexpr std::string_view kWorkspace = "/workspace";

bool UsesProject(const Manifest& manifest, const CallPlaces& places) {
  return manifest.workspace != Workspace::kFresh && !places.project.empty();
}

}  // namespace

std::string WorkspacePath(const std::string& path, const CallPlaces& places) {
  const bool there = path == kWorkspace || path.starts_with(std::string(kWorkspace) + "/");
  return places.project.empty() || !there ? path : places.project + path.substr(kWorkspace.size());
}

Result<Envelope> MakeEnvelope(const Manifest& manifest,
                              std::vector<std::pair<std::string, std::string>> env,
                              const CallPlaces& places) {
  Envelope envelope;
  envelope.level = manifest.isolation.level;
  envelope.floor = manifest.isolation.floor;
  envelope.syscalls = manifest.isolation.syscalls;
  envelope.limits = manifest.limits;
  envelope.runtimes = {manifest.run.runtime};
  envelope.optional_runtimes = manifest.run.also;
  envelope.exec = manifest.exec;
  envelope.overlay = manifest.overlay;
  envelope.cwd = manifest.run.cwd;
  envelope.exports = manifest.exports;
  envelope.env = std::move(env);
  for (const NetworkRule& rule : manifest.network) {
    envelope.network.push_back(EgressLine(rule));
  }
  envelope.connections = manifest.network.empty() ? 0 : manifest.connections;
  for (const FileMount& mount : manifest.mounts) {
    if (mount.mode == MountMode::kStaged) {
      return Refused("policy.surface", fmt::format("the mount at {} is staged", mount.at),
                     "this version has no staged writes: use mode = \"read\" or \"write\"");
    }
    envelope.mounts.push_back({mount.host, mount.at,
                               mount.mode == MountMode::kWrite ? Access::kWrite : Access::kRead,
                               mount.dangerous});
  }
  const Access access =
      manifest.workspace == Workspace::kSessionWrite ? Access::kWrite : Access::kRead;
  if (UsesProject(manifest, places)) {
    envelope.mounts.push_back({places.project, places.project, access});
    envelope.cwd = WorkspacePath(manifest.run.cwd, places);
  } else if (manifest.workspace != Workspace::kFresh) {
    envelope.workspace = places.session_workspace;  // without a session it is fresh all the same
    envelope.workspace_access = access;
  }
  if (envelope.workspace.empty()) {
    envelope.workspace_access = Access::kWrite;
  }
  return envelope;
}

Result<RenderedCall> RenderCall(const Manifest& manifest, const Json& args,
                                const CallPlaces& places) {
  if (!args.is_object()) {
    return Refused("policy.args", "the arguments are not an object");
  }
  Json resolved = args;
  std::vector<PathParameter> paths = manifest.run.paths;
  for (PathParameter& path : paths) {
    path.mount = UsesProject(manifest, places) ? WorkspacePath(path.mount, places) : path.mount;
  }
  TRY(ResolvePaths(paths, resolved));
  RenderedCall call;
  TRY_ASSIGN(call.command, RenderArgv(manifest.run.argv, resolved));
  TRY_ASSIGN(call.env, RenderEnv(manifest.run.env, resolved));
  if (manifest.run.stdin_word) {
    TRY_ASSIGN(call.stdin_text, RenderStdin(*manifest.run.stdin_word, resolved));
  }
  return call;
}

Result<ToolCall> MakeToolCall(const Manifest& manifest, const Json& args,
                              const CallPlaces& places) {
  TRY_ASSIGN(RenderedCall rendered, RenderCall(manifest, args, places));
  ToolCall call;
  call.command = std::move(rendered.command);
  call.stdin_text = std::move(rendered.stdin_text);
  TRY_ASSIGN(call.envelope, MakeEnvelope(manifest, std::move(rendered.env), places));
  return call;
}

}  // namespace coffer::policy
