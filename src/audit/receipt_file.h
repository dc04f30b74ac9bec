// SPDX-License-Identifier: Apache-2.0
//
// The place a receipt goes to, checked before the call runs: a call whose receipt cannot be written
// does not run.
//
// There are three kinds of place, told apart by the name alone or with O_PATH, so that finding out
// opens nothing:
//   - A name that is free, an empty file, or an older receipt. A file that holds anything else is
//     refused: a mistyped name must not cost the caller that file. It is written whole or not at all: a temporary file
//     beside it, then rename. The temporary file exists only while it is written, after the
//     boundary is gone, so that a payload which may write to that directory cannot put its own in
//     its place. The directory is held open from the beginning.
//   - A descriptor of the caller: "-" and /dev/stderr, /dev/stdout, /dev/fd/N. It is written
//     directly. A reader that does not read is waited for with a bound, and a signal ends the wait
//     (base/patient_write.h).
//   - /dev/null, /dev/full and /dev/tty, which no other program has to read.
// Everything else is refused: fifos, sockets, other devices, directories, and links, also on the way
// to the file, because the maker of a link chooses what is overwritten. The CLI resolves the links
// that a caller may mean before (cli/run_paths.h).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::audit {

class ReceiptFile {
 public:
  // Refused (policy.receipt) if nothing can be written there; nothing is left behind.
  static Result<ReceiptFile> Open(const std::string& path);
  // Whether `path` stands for a descriptor, and for no place in a directory.
  static bool NamesDescriptor(std::string_view path);

  // May be called once. What a terminal would obey is escaped in `json`. After a failure an older
  // receipt of that name is as it was.
  Status Write(std::string_view json) const;

 private:
  ReceiptFile() = default;
  Status Replace(std::string_view text) const;

  std::string path_;    // as given, for messages
  UniqueFd direct_;     // a descriptor or a device; otherwise:
  UniqueFd directory_;  // where the file is
  std::string name_;    // and its name there
};

}  // namespace coffer::audit
