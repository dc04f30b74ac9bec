// SPDX-License-Identifier: Apache-2.0
//
// Files that decide what others may do (manifests, the configuration) are opened only if the operator alone can
// change them.
//
// The operator is the user who started the daemon, and root. No part of the path may be a link.
// Every directory on the way, and the file, belongs to the operator and cannot be written by a
// group or by others; in a directory with the sticky bit, such as /tmp, other users cannot replace
// what is the operator's. As root the daemon's gateway has a uid of its own, so what it could have
// written is refused. Started by an ordinary user the roles share that user's uid: there Landlock
// keeps the gateway from writing (daemon/role.h).
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::call {

// Opens the regular file `path`, which is absolute, for reading. kRefused with the code
// policy.operator, the part of the path that is wrong and what to do; the errno is in the error if
// there is no such file.
Result<UniqueFd> OpenOperatorFile(const std::string& path, uid_t operator_uid);
// The same for a directory.
Result<UniqueFd> OpenOperatorDirectory(const std::string& path, uid_t operator_uid);

// The text of such a file, of at most `limit` bytes.
Result<std::string> ReadOperatorFile(const std::string& path, uid_t operator_uid, size_t limit);

}  // namespace coffer::call
