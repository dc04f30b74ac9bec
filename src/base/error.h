// SPDX-License-Identifier: Apache-2.0
//
// An Error says what went wrong, whose fault it is, and what to do about it.
//
// `kind` decides the exit code of the CLI, `code` is a stable dotted name that tests and receipts rely on,
// `message` is one line for a person, `hint` is the smallest thing that would help. `sys_errno` is 0 unless a
// system call failed; it is read in base/sys.cc and nowhere else.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace coffer {

enum class ErrorKind {
  kRefused,        // the request is wrong or not allowed: exit 120
  kHost,           // the host cannot do what is asked: exit 125
  kInternal,       // Cofferdam failed: exit 125
  kNotFound,       // the command does not exist: exit 127
  kNotExecutable,  // the command exists and cannot be run: exit 126
};

// Everything here is out of line and cold: the compiler then moves what only failing calls run away
// from what every call runs, and a call touches fewer pages of the program.
struct Error {
  Error() = default;
  [[gnu::cold]] Error(ErrorKind kind_, std::string_view code_, std::string message_,
                      std::string hint_ = {}, int sys_errno_ = 0);
  [[gnu::cold]] Error(const Error& other);
  [[gnu::cold]] Error(Error&& other) noexcept;
  [[gnu::cold]] Error& operator=(const Error& other);
  [[gnu::cold]] Error& operator=(Error&& other) noexcept;
  [[gnu::cold]] ~Error();

  ErrorKind kind = ErrorKind::kInternal;
  std::string code;     // "isolation.mount.move"
  std::string message;  // "cannot mount /srv/x: No such file or directory"
  std::string hint;     // "create it, or leave out --ro"; may be empty
  int sys_errno = 0;
};

[[gnu::cold]] Error Refused(std::string_view code, std::string message, std::string hint = {});
[[gnu::cold]] Error HostFault(std::string_view code, std::string message, std::string hint = {});
[[gnu::cold]] Error Internal(std::string_view code, std::string message);

}  // namespace coffer
