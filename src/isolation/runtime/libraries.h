// SPDX-License-Identifier: Apache-2.0
//
// Finds shared libraries the way ld.so does, for programs that are not running yet.
//
// Order: DT_RPATH of the object and of what loaded it (unless the object has DT_RUNPATH), DT_RUNPATH of the object, the
// loader's cache, the default directories. LD_LIBRARY_PATH and LD_PRELOAD of the caller play no part. Relative entries
// of a search path are ignored: inside, the working directory is writable. Only baseline libraries are taken: variants
// in glibc-hwcaps directories are not part of the set, so the loader inside falls back to the baseline as well.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "isolation/runtime/elf.h"
#include "isolation/runtime/loader_cache.h"
#include "isolation/runtime/real_path.h"

namespace coffer::isolation {

struct Library {
  std::string name;       // where the loader looks: "/lib/aarch64-linux-gnu/libz.so.1"
  std::string real;       // the file there: "/usr/lib/aarch64-linux-gnu/libz.so.1.2.13"
  bool via_link = false;  // as in RuntimeFile
  bool optional = false;  // only needed by something that can do without it
};

// "aarch64-linux-gnu": Debian's name for the machine this was compiled for.
extern const std::string_view kTriplet;

enum class Missing : uint8_t { kFail, kSkip };

// Remembers what it has seen: a library that twenty modules need is read once. Not thread-safe.
class LibraryFinder {
 public:
  explicit LibraryFinder(RealPaths& paths, std::string cache_file = "/etc/ld.so.cache");

  // Adds to found() every library that `object` needs, directly or through others.
  // `origin` is the directory of the object as the loader will see it. With kFail a missing library is an error that
  // names it; with kSkip it is left out, as an optional module that cannot be loaded on the host either.
  Status Close(const ElfInfo& object, const std::string& origin, Missing missing);

  // One library by its name, through the cache and the default directories, with what it needs; none is no error.
  Status CloseName(const std::string& soname);

  // `soname` is provided by the interpreter and not looked for.
  void Provide(const std::string& soname) { names_.insert(soname); }

  // The directory of the loader's own libc: its libraries are taken from there and from nowhere else, because a loader
  // works with its own libc only.
  void SetLoaderDirectory(std::string directory) { loader_directory_ = std::move(directory); }

  const std::vector<Library>& found() const { return found_; }

 private:
  struct Search;
  struct Located {
    std::string name;  // as the loader opens it
    RealPaths::OpenedFile file;
  };
  std::optional<Located> Locate(std::string name);
  std::optional<Located> Find(const std::string& soname, const Search& search);
  std::optional<Located> FindInPath(std::string_view search_path, const std::string& origin,
                                    const std::string& soname);
  std::optional<Located> FindByDefault(const std::string& soname);
  Status Visit(const Search& search, Missing missing, int depth);
  Status Add(Located located, const Search& search, Missing missing, int depth);

  RealPaths& paths_;
  std::string cache_file_;
  LoaderCache cache_;
  bool cache_open_ = false;
  std::string loader_directory_;
  std::unordered_set<std::string> names_;  // of DT_NEEDED, wherever they were found
  std::unordered_set<std::string> files_;  // full names, as in Library
  std::vector<Library> found_;
};

}  // namespace coffer::isolation
