// SPDX-License-Identifier: Apache-2.0
#include "call/run/level.h"

#include <errno.h>
#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "base/sys.h"
#include "isolation/host_support.h"

namespace coffer::call {
namespace {

using policy::Layer;
using policy::Level;

// What the process level can never have.
const policy::LayerSet kContainerOnly = {
    Layer::kUserns, Layer::kMountns,  Layer::kPidns,       Layer::kNetns,       Layer::kIpcns,
    Layer::kUtsns,  Layer::kCgroupns, Layer::kPrivateRoot, Layer::kPrivateProc, Layer::kDiskQuota};

// Errors that a host which forbids namespaces gives; anything else is not a reason to try a weaker level.
bool MayBeForbidden(const Error& error) {
  const bool about_setup = error.code == "isolation.userns" ||
                           error.code.starts_with("isolation.setup") ||
                           error.code == "isolation.clone" || error.code == "isolation.userns.map";
  return about_setup &&
         (error.sys_errno == EPERM || error.sys_errno == EACCES || error.sys_errno == ENOSYS ||
          error.sys_errno == ENOSPC || error.sys_errno == EUSERS);
}

Error Forbidden(const isolation::HostSupport& host) {
  return HostFault("isolation.userns", "no container boundary on this host: " + host.cause,
                   host.fix);
}

// Why this floor does not let a call fall to the process level; nothing if it does.
std::optional<Error> AboveProcess(const policy::LayerSet& floor,
                                  const isolation::HostSupport& host) {
  Error error = Forbidden(host);
  error.kind = ErrorKind::kRefused;
  error.code = "isolation.floor";
  if (floor.empty()) {
    error.message += "; the process level is weaker, and no floor says that it is enough";
    error.hint += fmt::format(
        "{}to run with less, say so: --level process, or --floor seccomp,landlock with auto",
        error.hint.empty() ? "" : "; ");
    return error;
  }
  for (const Layer layer : floor.list()) {
    if (kContainerOnly.Has(layer)) {
      error.message += fmt::format("; the floor demands {}, which the process level cannot give",
                                   policy::LayerName(layer));
      return error;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Launched> LaunchAtLevel(const RunRequest& request, const Prepared& prepared,
                               LaunchOptions options, Begun* begun) {
  const Level wanted = request.envelope.level;
  if (wanted == Level::kProcess) {
    options.level = Level::kProcess;
    return Launch(request, prepared, options, nullptr);
  }
  options.level = Level::kContainer;
  Result<Launched> container = Launch(request, prepared, options, begun);
  if (container.ok() || !MayBeForbidden(container.error())) {
    return container;
  }
  const isolation::HostSupport host = isolation::ProbeHost();
  if (host.containers) {
    return container;  // namespaces do work: the error stands as it is
  }
  if (wanted == Level::kContainer) {
    return Forbidden(host);
  }
  if (std::optional<Error> above = AboveProcess(request.envelope.floor, host)) {
    return std::move(*above);
  }
  // Never silent, not even with --quiet: the caller gets less than the default.
  (void)sys::WriteAll(STDERR_FILENO,
                      fmt::format("coffer: note: running at level process: {}\n  hint: {}\n",
                                  host.cause, host.fix));
  options.level = Level::kProcess;
  return Launch(request, prepared, options, nullptr);
}

}  // namespace coffer::call
