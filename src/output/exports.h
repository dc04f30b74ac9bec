// SPDX-License-Identifier: Apache-2.0
//
// The files that a call exports, copied out of its workspace after its processes have ended.
//
// Everything in a workspace is hostile, and that of a session may be written by another call at the
// same moment. No name is trusted for longer than one system call: each part is opened beneath its
// directory (openat2: no links, no magic links, no other mount) with O_PATH, which acts on nothing;
// fstat says whether it is a regular file that belongs to the owner of the workspace, so that a
// hard link to a file of another user is none; then that same file, not its name again, is opened.
// What is told (path, size, hash) is of the bytes that were copied. A file counts with its length,
// so a hole is as large as data. Number, bytes, depth and the names that are looked at are bounded,
// whatever the workspace holds.
//
// What cannot be exported is left out and counted by reason; it never fails the call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace coffer::output {

struct ExportBody {
  std::string path;  // policy::IsExportPath
  std::string sha256;
  std::string bytes;
};

// Files that are not exported for one reason.
struct NotExported {
  std::string why;
  uint64_t count = 0;
  std::string path;  // of the first; printable ASCII
};

struct Exports {
  std::vector<ExportBody> files;
  std::vector<NotExported> left_out;
};

// `workspace` is a descriptor of the directory; O_PATH will do. Each of `patterns` is a policy::IsExportPattern.
Exports CollectExports(int workspace, const std::vector<std::string>& patterns);

}  // namespace coffer::output
