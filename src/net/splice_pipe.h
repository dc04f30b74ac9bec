// SPDX-License-Identifier: Apache-2.0
//
// Bytes of one socket for another that stay in the kernel: a pipe takes them from the first and
// gives them to the second.
//
// A pipe serves one direction of one connection and is never given to another: what a failure
// leaves in it goes with it.
#pragma once

#include <memory>

#include "base/sys.h"
#include "net/asio.h"

namespace coffer::net {

// How many pipes a party may still have. Outlives them.
struct PipeAllowance {
  size_t left;
};

class SplicePipe {
 public:
  // Null if the allowance is used up, the process can have no more descriptors or only small pipes,
  // or the host does not allow it.
  static std::unique_ptr<SplicePipe> Make(PipeAllowance& allowance);
  SplicePipe(const SplicePipe&) = delete;
  SplicePipe& operator=(const SplicePipe&) = delete;
  ~SplicePipe() { ++allowance_.left; }

  // Waits for bytes and takes some into the pipe, which must be empty. How many; 0 if no more of
  // this socket comes through a pipe: at its end, after an error, or at a mark of urgent data
  // (MSG_OOB). A read of the socket tells which.
  Task<size_t> FillFrom(Socket& socket);
  // Waits for room and writes some of what is in the pipe, which must not be empty. How many bytes, 0 after an error.
  Task<size_t> EmptySomeInto(Socket& socket);
  size_t inside() const { return inside_; }

 private:
  SplicePipe(PipeAllowance& allowance, sys::Pipe pipe)
      : allowance_(allowance), pipe_(std::move(pipe)) {}

  PipeAllowance& allowance_;
  const sys::Pipe pipe_;
  size_t inside_ = 0;
};

}  // namespace coffer::net
