// SPDX-License-Identifier: Apache-2.0
//
// The files of a session, on the host's side: made, read, written and removed without ever
// following a link that a call may have left there.
//
// Everything below the workspace is hostile. Paths are opened beneath it (openat2, no links, no magic links, no other
// mount), and only regular files are touched. What is written is bounded by the session's quota.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/session_space.h"
#include "gateway/service.h"

namespace coffer::daemon {

// The code of a refusal because something else has the name.
inline constexpr const char* kFileConflict = "file.conflict";

class Workspace {
 public:
  // `name` is the store's; nothing of it comes from a request.
  Workspace(const std::string& sessions, const std::string& name) : path_(sessions + "/" + name) {}

  const std::string& path() const { return path_; }
  Status Make() const;
  // With everything in it. Nothing outside is touched.
  Status Remove() const;

  bool Exists() const;
  // A page of its files, in the order of the directories: `skip` come before it. `more`: others
  // come after it. Memory is that of one page and of one directory at each level. What lies deeper
  // than a path of a request can name is left out.
  struct Listing {
    std::vector<gateway::FileView> files;
    bool more = false;
  };
  // Only paths that begin with `wanted`.
  Result<Listing> List(const std::string& wanted, size_t skip, size_t limit) const;
  Result<UniqueFd> OpenToRead(const std::string& path, gateway::FileView* view) const;
  // A new file beside the final name, and the way to put it there.
  struct Writing {
    UniqueFd directory;
    UniqueFd file;
    std::string temporary;
    std::string name;
  };
  Result<Writing> OpenToWrite(const std::string& path) const;
  Status Commit(const Writing& writing) const;
  void Discard(const Writing& writing) const;
  Status RemoveFile(const std::string& path) const;
  // Bytes on the disk and number of files, counted without keeping a name longer than its directory is read.
  Result<SessionSpace::Room> Used() const;
  // The same where the workspace has a file system of its own, which knows: what it holds of what it can hold.
  struct Volume {
    SessionSpace::Room most;
    SessionSpace::Room used;
  };
  Result<Volume> LookAtVolume() const;

 private:
  std::string path_;
};

}  // namespace coffer::daemon
