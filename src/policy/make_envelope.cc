// SPDX-License-Identifier: Apache-2.0
#include "policy/make_envelope.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "policy/path_param.h"

namespace coffer::policy {

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
  envelope.cwd = manifest.run.cwd;
  envelope.exports = manifest.exports;
  envelope.env = std::move(env);
  for (const FileMount& mount : manifest.mounts) {
    if (mount.mode == MountMode::kStaged) {
      return Refused("policy.surface", fmt::format("the mount at {} is staged", mount.at),
                     "this version has no staged writes: use mode = \"read\" or \"write\"");
    }
    envelope.mounts.push_back({mount.host, mount.at,
                               mount.mode == MountMode::kWrite ? Access::kWrite : Access::kRead,
                               mount.dangerous});
  }
  if (manifest.workspace != Workspace::kFresh) {
    envelope.workspace = places.session_workspace;  // without a session it is fresh all the same
    envelope.workspace_access =
        manifest.workspace == Workspace::kSessionWrite ? Access::kWrite : Access::kRead;
  }
  if (envelope.workspace.empty()) {
    envelope.workspace_access = Access::kWrite;
  }
  return envelope;
}

Result<RenderedCall> RenderCall(const Manifest& manifest, const Json& args) {
  if (!args.is_object()) {
    return Refused("policy.args", "the arguments are not an object");
  }
  Json resolved = args;
  TRY(ResolvePaths(manifest.run.paths, resolved));
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
  TRY_ASSIGN(RenderedCall rendered, RenderCall(manifest, args));
  ToolCall call;
  call.command = std::move(rendered.command);
  call.stdin_text = std::move(rendered.stdin_text);
  TRY_ASSIGN(call.envelope, MakeEnvelope(manifest, std::move(rendered.env), places));
  return call;
}

}  // namespace coffer::policy
