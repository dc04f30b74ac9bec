// SPDX-License-Identifier: Apache-2.0
//
// The exit statuses of coffer and cofferd. They are a public contract: scripts and agents go by them (README.md).
//
// A command that ran has its own status, or 128 and the number of the signal that ended it. These
// are what Cofferdam says itself; 126 and 127 are those of a shell.
#pragma once

#include "base/error.h"

namespace coffer {

inline constexpr int kExitRefused = 120;  // wrong or not allowed; nothing ran
inline constexpr int kExitLimit = 122;    // a limit was breached
inline constexpr int kExitFailed = 125;   // Cofferdam or the host failed
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;
inline constexpr int kExitSignalled = 128;  // and the signal's number

constexpr int ExitOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kRefused:
      return kExitRefused;
    case ErrorKind::kNotFound:
      return kExitNotFound;
    case ErrorKind::kNotExecutable:
      return kExitNotExecutable;
    case ErrorKind::kHost:
    case ErrorKind::kInternal:
      break;
  }
  return kExitFailed;
}

}  // namespace coffer
