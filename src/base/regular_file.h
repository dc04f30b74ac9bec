// SPDX-License-Identifier: Apache-2.0
//
// Files that a caller names, opened only if they are regular files.
//
// A name on the command line, in a configuration or in a state directory can lead to anything.
// Opening a fifo waits for its other end, or releases a writer whose bytes are then lost; opening a
// device can act on it; /dev/zero never ends; files such as /proc/kmsg say that they are regular,
// and wait. So a name is first opened with O_PATH, which touches nothing. Then fstat says what it
// is. Only then the same file, not the name again, is opened through /proc/self/fd.
//
// Links are followed unless O_NOFOLLOW is given: the caller chose the name. Files of the kernel
// itself (proc, cgroups) are read with sys::ReadFile, by names that are ours.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::sys {

// Opens `path` if it is a regular file on a file system that keeps files. `flags` as for openat,
// without O_CREAT. Refused with the kind of thing it is otherwise; nothing was opened then. Never
// waits for another process.
Result<UniqueFd> OpenRegularAt(int dir, const std::string& path, int flags);
Result<UniqueFd> OpenRegular(const std::string& path, int flags);

// The same for a descriptor that was opened with O_PATH: what it stands for is opened, no name is
// looked up again. `path` is for messages.
Result<UniqueFd> ReopenRegular(int path_fd, const std::string& path, int flags);

// The whole of such a file. One that is larger than `limit` is refused before anything is read.
Result<std::string> ReadRegularAt(int dir, const std::string& path, size_t limit);
Result<std::string> ReadRegular(const std::string& path, size_t limit);

// What a mode is, for messages: "a fifo", "a directory".
std::string KindOfFile(unsigned mode);

}  // namespace coffer::sys
