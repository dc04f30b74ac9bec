// SPDX-License-Identifier: Apache-2.0
//
// A project quota around a writable directory: the kernel itself refuses what goes beyond the caps of the call.
//
// It can be had as root, on ext4 (features quota and project, mounted with prjquota) and xfs
// (mounted with prjquota), for a directory that is empty when the call begins. Everything that is
// made below belongs to the directory's project. Files that were there before would not, and the
// kernel renames nothing from one project into another. A directory that is in a project already is
// its administrator's business.
//
// The project's number follows from the directory's inode, so two directories do not share one, and what a killed
// supervisor left behind is known again by the next call with the same directory, which takes it away. A lock on the
// directory tells the two cases apart: a living supervisor holds it.
#pragma once

#include <cstdint>
#include <optional>

#include "base/unique_fd.h"
#include "policy/envelope.h"

namespace coffer::limits {

class ProjectQuota {
 public:
  // Nothing where it cannot be had.
  static std::optional<ProjectQuota> Take(int dir, const policy::Limits& caps);
  // Takes everything below the directory out of the project again.
  ~ProjectQuota();
  ProjectQuota(ProjectQuota&&) noexcept = default;
  ProjectQuota& operator=(ProjectQuota&& other) noexcept;

  // True if there is hardly room for one more block, or none for one more file.
  bool Full() const;

 private:
  ProjectQuota(UniqueFd dir, uint32_t project);
  UniqueFd dir_;
  uint32_t project_;
};

}  // namespace coffer::limits
