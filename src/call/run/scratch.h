// SPDX-License-Identifier: Apache-2.0
//
// The scratch directory of a process-level call: workspace/, tmp/ and in/ on the host's own file system, removed with
// everything in it when the call ends. The name carries our pid, so a later start removes what a crash left.
//
// Copies of inputs lie in it, whatever modes the originals have, so no other user may enter it: it
// is 0700 from the moment it exists. As root the boundary has a uid of its own; then the directory
// stays root's and opens for that uid's group alone, which no other process has. Its parts are held
// open from the moment they exist, and used by descriptor: another process of the same user may
// write to TMPDIR.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "isolation/compose_process.h"

namespace coffer::call {

class Scratch {
 public:
  Scratch() = default;
  static Result<Scratch> Make(const std::vector<isolation::Input>& inputs);
  Scratch(Scratch&& other) noexcept = default;
  Scratch& operator=(Scratch&& other) noexcept;
  ~Scratch();

  // Empty if there is none.
  const std::string& path() const { return path_.value; }
  int fd() const { return root_.get(); }
  // Valid while this lives.
  isolation::ScratchPlace place() const {
    return {path(), workspace_.get(), tmp_.get(), in_.get()};
  }
  // Lets the boundary's uid in, and gives it the writable parts (as root).
  Status GiveTo(uint32_t uid) const;
  Status Remove();

 private:
  void Discard() noexcept;  // Remove, where a failure cannot be reported

  // A moved string may keep its value; this one does not.
  struct Path {
    std::string value;
    Path() = default;
    Path(Path&& other) noexcept : value(std::exchange(other.value, {})) {}
    Path& operator=(Path&& other) noexcept {
      value = std::exchange(other.value, {});
      return *this;
    }
  };

  Path path_;
  UniqueFd root_;
  UniqueFd workspace_;
  UniqueFd tmp_;
  UniqueFd in_;
};

// Removes scratch directories whose supervisor is gone. The number removed.
size_t SweepScratch();

}  // namespace coffer::call
