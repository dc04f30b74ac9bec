// SPDX-License-Identifier: Apache-2.0
#include "isolation/setup_error.h"

#include <errno.h>
#include <fmt/format.h>

#include "base/path_words.h"
#include "base/sys.h"

namespace coffer::isolation {

Error ExplainClone(long answer) {
  Error error =
      sys::ErrnoError("isolation.clone", "cannot create the boundary's namespaces", answer);
  if (answer == -EPERM || answer == -ENOSPC || answer == -EUSERS || answer == -EINVAL) {
    error.code = "isolation.userns";
    error.hint =
        "`coffer doctor` says what forbids user namespaces on this host and how to allow them";
  } else if (answer == -EAGAIN || answer == -ENOMEM) {
    error.hint = "the host has no processes or memory to spare";
  }
  return error;
}

Error PlaceMoved(const std::string& path) {
  return Refused("policy.path.moved",
                 fmt::format("{} was moved or replaced while the boundary was being built, so what "
                             "has to be mounted there would lie elsewhere",
                             PathInWords(path)),
                 "another program renames or removes files there: try again when it is done");
}

Error ExplainSetup(const ChildReport& report, const BoundaryPlan& plan) {
  const uint32_t stage = report.stage.load(std::memory_order_acquire);
  const int number = report.error;
  if (stage == 0 && number == 0 && plan.clone_into_cgroup >= 0) {
    // Seen on Linux 6.1: children born in another cgroup die at once if ours was ever killed as a whole.
    return HostFault("isolation.init", "the kernel killed the boundary's init at birth",
                     "if coffer's own cgroup was ever killed as a whole (cgroup.kill), some "
                     "kernels do that: start "
                     "coffer from another session or service");
  }
  if (stage >= kStageCount || number <= 0 || number > 4095) {
    return HostFault(
        "isolation.init", "the boundary's init died during setup",
        "the host may be out of memory; the limits may be too small to start anything");
  }
  std::string what =
      fmt::format("cannot set up the boundary ({})", StageName(static_cast<Stage>(stage)));
  const bool about_a_bind = stage == static_cast<uint32_t>(Stage::kAttach) ||
                            stage == static_cast<uint32_t>(Stage::kSources);
  const std::vector<BindMount>& binds = plan.call_root.binds;
  ErrorKind kind = ErrorKind::kHost;
  std::string hint;
  if (about_a_bind && report.item < binds.size()) {
    const BindMount& bind = binds[report.item];
    if (stage == static_cast<uint32_t>(Stage::kAttach) && bind.place_ino != 0 && number == ESTALE) {
      return PlaceMoved(bind.at);
    }
    what += ": " + (bind.covers ? bind.at : bind.host);
    const bool overlay =
        stage == static_cast<uint32_t>(Stage::kAttach) && !bind.overlay_upper.empty();
    if (overlay && number != ENOENT) {
      kind = ErrorKind::kRefused;
      hint =
          "it cannot be shown through an overlay: another file system is mounted below it, it is "
          "an "
          "overlay of overlays itself, its file system cannot be a layer, or the kernel is older "
          "than "
          "5.11; leave out --ro-overlay (in a manifest: files.overlay)";
    } else if (number == ESTALE || number == ELOOP || number == ENOENT || number == ENOTDIR) {
      kind = ErrorKind::kRefused;
      hint = "the path changed while the boundary was being built; try again";
    } else if (number == EINVAL) {
      kind = ErrorKind::kRefused;
      hint = "another file system is mounted below it; name that part on its own";
    }
  }
  Error error = sys::ErrnoError(fmt::format("isolation.setup.{}", stage), what, -number, kind);
  error.hint = std::move(hint);
  return error;
}

}  // namespace coffer::isolation
