// SPDX-License-Identifier: Apache-2.0
//
// The scratch directory of a process-level call: workspace/, tmp/ and in/ on the host's own file system, removed with
// everything in it when the call ends. The name carries our pid, so a later start removes what a crash left.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/compose.h"

namespace coffer::call {

class Scratch {
 public:
  Scratch() = default;
  static Result<Scratch> Make(const std::vector<isolation::Input>& inputs);
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Scratch& operator=(Scratch&& other) noexcept;
  ~Scratch();

  const std::string& path() const { return path_; }
  // Gives the writable parts to the boundary's uid (as root).
  Status GiveTo(uint32_t uid) const;
  Status Remove();

 private:
  void Discard() noexcept;  // Remove, where nobody can hear of a failure

  std::string path_;
};

// Removes scratch directories whose supervisor is gone. The number removed.
size_t SweepScratch();

}  // namespace coffer::call
