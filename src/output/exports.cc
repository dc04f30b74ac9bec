// SPDX-License-Identifier: Apache-2.0
#include "output/exports.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/hash.h"
#include "base/regular_file.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "policy/export_pattern.h"

namespace coffer::output {
namespace {

using raw::Arg;
using raw::Syscall;

// Names in directories that patterns with stars go through. A workspace may hold millions.
constexpr size_t kMostNames = 20'000;
constexpr uint64_t kBeneath =
    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;

constexpr const char* kNotRegular = "it is not a regular file";
constexpr const char* kUnreadable = "it cannot be opened";
constexpr const char* kChanged = "it changed while it was read";
constexpr const char* kTooManyNames = "there are too many names beside it";

bool SameFile(const struct stat& a, const struct stat& b) {
  const auto same = [](const timespec& x, const timespec& y) {
    return x.tv_sec == y.tv_sec && x.tv_nsec == y.tv_nsec;
  };
  return a.st_size == b.st_size && same(a.st_mtim, b.st_mtim) && same(a.st_ctim, b.st_ctim);
}

// All of a file that has `size` bytes; nothing if it has fewer or more by now.
bool ReadExactly(int file, size_t size, std::string& bytes) {
  bytes.resize(size + 1);  // one more, to see that it ends there
  size_t at = 0;
  while (at < bytes.size()) {
    const long got =
        Syscall(SYS_read, file, Arg(bytes.data() + at), static_cast<long>(bytes.size() - at));
    if (got == -EINTR) {
      continue;
    }
    if (got <= 0) {
      break;
    }
    at += static_cast<size_t>(got);
  }
  bytes.resize(std::min(at, size));
  return at == size;
}

class Collection {
 public:
  explicit Collection(const std::vector<std::string>& patterns) : patterns_(patterns) {}

  Exports Run(int workspace) {
    struct stat info{};
    const Result<UniqueFd> root = OpenDirectory(workspace, ".");
    if (!root.ok() || ::fstat(root->get(), &info) != 0) {
      LeaveOut(kUnreadable, "/workspace");
      return std::move(exports_);
    }
    owner_ = info.st_uid;
    for (const std::string& pattern : patterns_) {
      Expand(root->get(), policy::PartsOf(pattern), 0, "");
    }
    return std::move(exports_);
  }

 private:
  static Result<UniqueFd> OpenDirectory(int dir, const std::string& name) {
    const long fd = sys::OpenAt2(dir, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK, kBeneath);
    if (fd < 0) {
      return sys::ErrnoError("output.export", "cannot open a directory", fd);
    }
    return UniqueFd(static_cast<int>(fd));
  }

  void LeaveOut(std::string_view why, const std::string& path) {
    for (NotExported& known : exports_.left_out) {
      if (known.why == why) {
        ++known.count;
        return;
      }
    }
    exports_.left_out.push_back({std::string(why), 1, Printable(path)});
  }

  // The names in a directory in order, as many as may still be looked at.
  std::vector<sys::DirEntry> NamesIn(int dir, const std::string& prefix) {
    struct LinuxDirent {
      uint64_t inode;
      int64_t offset;
      uint16_t length;
      unsigned char type;
      char name[1];
    };
    std::vector<sys::DirEntry> names;
    (void)Syscall(SYS_lseek, dir, 0, SEEK_SET);  // an earlier pattern may have read it
    alignas(LinuxDirent) std::array<char, 8192> buffer;
    for (;;) {
      const long got = Syscall(SYS_getdents64, dir, Arg(buffer.data()), buffer.size());
      if (got <= 0) {
        if (got < 0) {
          LeaveOut(kUnreadable, prefix);
        }
        break;
      }
      for (long at = 0; at < got;) {
        const auto* entry = reinterpret_cast<const LinuxDirent*>(buffer.data() + at);
        const std::string_view name = static_cast<const char*>(entry->name);
        at += entry->length;
        if (name == "." || name == "..") {
          continue;
        }
        if (names_left_ == 0) {
          LeaveOut(kTooManyNames, prefix + std::string(name));
          std::sort(names.begin(), names.end(), ByName);
          return names;
        }
        --names_left_;
        names.push_back({std::string(name), entry->type});
      }
    }
    std::sort(names.begin(), names.end(), ByName);
    return names;
  }

  static bool ByName(const sys::DirEntry& a, const sys::DirEntry& b) { return a.name < b.name; }

  // A directory below `dir`, and what `next` does with it. No link is one.
  void Enter(int dir, const std::string& name, const std::vector<std::string>& parts, size_t next,
             const std::string& prefix) {
    const std::string inner = prefix + name;
    if (!policy::IsExportPath(inner + "/x")) {
      LeaveOut(BadName(), inner);
      return;
    }
    const Result<UniqueFd> opened = OpenDirectory(dir, name);
    if (opened.ok()) {
      Expand(opened->get(), parts, next, inner + "/");
    } else if (opened.error().sys_errno != ENOENT && opened.error().sys_errno != ENOTDIR) {
      LeaveOut(opened.error().sys_errno == ELOOP ? kNotRegular : kUnreadable, inner);
    }
  }

  // Depth is bounded: each step adds a part to the path, and IsExportPath bounds those.
  void Expand(int dir, const std::vector<std::string>& parts,
              size_t at,  // NOLINT(misc-no-recursion)
              const std::string& prefix) {
    const std::string& part = parts[at];
    const bool last = at + 1 == parts.size();
    const bool below = part == "**";
    if (!below && part.find('*') == std::string::npos) {
      if (last) {
        Take(dir, part, prefix);
      } else {
        Enter(dir, part, parts, at + 1, prefix);
      }
      return;
    }
    for (const sys::DirEntry& entry : NamesIn(dir, prefix)) {
      if (!below && !policy::MatchesPart(part, entry.name)) {
        continue;
      }
      if (entry.type == DT_DIR && (below || !last)) {
        Enter(dir, entry.name, parts, below ? at : at + 1, prefix);
      } else if (last && entry.type != DT_DIR) {
        Take(dir, entry.name, prefix);
      }
    }
  }

  static std::string BadName() {
    return fmt::format(
        "its path is not UTF-8 without control characters, of at most {} bytes and {} parts",
        policy::kLongestExportPath, policy::kDeepestExport);
  }

  void Take(int dir, const std::string& name, const std::string& prefix) {
    const std::string path = prefix + name;
    if (taken_.contains(path)) {
      return;  // another pattern named it
    }
    const long found = sys::OpenAt2(dir, name, O_PATH | O_NOFOLLOW, kBeneath);
    if (found == -ENOENT) {
      return;  // a tool may well not make everything that it may export
    }
    if (found < 0) {
      LeaveOut(found == -ELOOP ? kNotRegular : kUnreadable, path);
      return;
    }
    const UniqueFd place(static_cast<int>(found));
    struct stat info{};
    if (::fstat(place.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      LeaveOut(kNotRegular, path);
    } else if (info.st_uid != owner_) {
      LeaveOut("it belongs to another user", path);
    } else if (!policy::IsExportPath(path)) {
      LeaveOut(BadName(), path);
    } else if (exports_.files.size() == policy::kMostExports) {
      LeaveOut(fmt::format("more than {} files", policy::kMostExports), path);
    } else if (static_cast<uint64_t>(info.st_size) > policy::kMostExportBytes - bytes_) {
      LeaveOut(fmt::format("more than {} MiB together", policy::kMostExportBytes >> 20), path);
    } else {
      Read(place.get(), info, path);
    }
  }

  void Read(int place, const struct stat& info, const std::string& path) {
    const Result<UniqueFd> file = sys::ReopenRegular(place, path, O_RDONLY | O_NONBLOCK);
    if (!file.ok()) {
      LeaveOut(kUnreadable, path);
      return;
    }
    ExportBody body;
    body.path = path;
    struct stat after{};
    if (!ReadExactly(file->get(), static_cast<size_t>(info.st_size), body.bytes) ||
        ::fstat(file->get(), &after) != 0 || !SameFile(info, after)) {
      LeaveOut(kChanged, path);
      return;
    }
    body.sha256 = HashOf(body.bytes);
    bytes_ += body.bytes.size();
    taken_.insert(path);
    exports_.files.push_back(std::move(body));
  }

  const std::vector<std::string>& patterns_;
  Exports exports_;
  std::set<std::string> taken_;
  uid_t owner_ = 0;
  size_t names_left_ = kMostNames;
  size_t bytes_ = 0;
};

}  // namespace

Exports CollectExports(int workspace, const std::vector<std::string>& patterns) {
  return Collection(patterns).Run(workspace);
}

}  // namespace coffer::output
