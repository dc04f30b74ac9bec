// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/libraries.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <array>

#include "base/path_words.h"
#include "base/sys.h"

namespace coffer::isolation {

#if defined(__aarch64__)
const std::string_view kTriplet = "aarch64-linux-gnu";
#elif defined(__x86_64__)
const std::string_view kTriplet = "x86_64-linux-gnu";
#else
#error "unknown machine"
#endif

namespace {

constexpr int kMaxDepth = 64;  // of libraries that need libraries
constexpr size_t kMaxLibraries = 2048;

// "$ORIGIN/../lib" with $ORIGIN replaced; empty if the entry is not to be used.
std::string Expand(std::string_view entry, const std::string& origin) {
  std::string path;
  for (const std::string_view token : {"$ORIGIN", "${ORIGIN}"}) {
    if (entry.starts_with(token)) {
      path = origin;
      entry.remove_prefix(token.size());
      break;
    }
  }
  path += entry;
  // Relative, or with $LIB or $PLATFORM, whose value only the loader knows.
  return path.starts_with('/') && path.find('$') == std::string::npos ? path : std::string();
}

bool IsPartOfLibc(const std::string& soname) {
  return soname == "libc.so.6" || soname == "libm.so.6" || soname == "libpthread.so.0" ||
         soname == "libdl.so.2" || soname == "librt.so.1" || soname == "libresolv.so.2" ||
         soname == "libutil.so.1";
}

}  // namespace

struct LibraryFinder::Search {
  const ElfInfo& object;
  std::string origin;
  const Search* loader = nullptr;  // the object that needs this one
};

LibraryFinder::LibraryFinder(RealPaths& paths, std::string cache_file)
    : paths_(paths), cache_file_(std::move(cache_file)) {}

std::optional<LibraryFinder::Located> LibraryFinder::Locate(std::string name) {
  Result<RealPaths::OpenedFile> file = paths_.Open(name);
  if (!file.ok()) {
    return std::nullopt;
  }
  return Located{std::move(name), std::move(file).value()};
}

std::optional<LibraryFinder::Located> LibraryFinder::FindInPath(std::string_view search_path,
                                                                const std::string& origin,
                                                                const std::string& soname) {
  while (!search_path.empty()) {
    const size_t colon = search_path.find(':');
    std::string directory = Expand(search_path.substr(0, colon), origin);
    search_path.remove_prefix(colon == std::string_view::npos ? search_path.size() : colon + 1);
    if (!directory.empty()) {
      if (auto located = Locate(std::move(directory) + "/" + soname)) {
        return located;
      }
    }
  }
  return std::nullopt;
}

std::optional<LibraryFinder::Located> LibraryFinder::FindByDefault(const std::string& soname) {
  if (!loader_directory_.empty() && IsPartOfLibc(soname)) {
    if (auto located = Locate(loader_directory_ + "/" + soname)) {
      return located;
    }
  }
  if (!cache_open_) {
    cache_open_ = true;
    cache_.Open(cache_file_);
  }
  if (const std::string_view cached = cache_.Find(soname); !cached.empty()) {
    if (auto located = Locate(std::string(cached))) {
      return located;
    }
  }
  const std::string triplet(kTriplet);
  for (const std::string& directory :
       {"/lib/" + triplet, "/usr/lib/" + triplet, std::string("/lib64"), std::string("/usr/lib64"),
        std::string("/lib"), std::string("/usr/lib")}) {
    if (auto located = Locate(directory + "/" + soname)) {
      return located;
    }
  }
  return std::nullopt;
}

std::optional<LibraryFinder::Located> LibraryFinder::Find(const std::string& soname,
                                                          const Search& search) {
  if (soname.find('/') != std::string::npos) {
    return soname.starts_with('/') ? Locate(soname) : std::nullopt;
  }
  if (search.object.runpath.empty()) {
    for (const Search* object = &search; object != nullptr; object = object->loader) {
      if (object->object.runpath.empty() && !object->object.rpath.empty()) {
        if (auto located = FindInPath(object->object.rpath, object->origin, soname)) {
          return located;
        }
      }
    }
  } else if (auto located = FindInPath(search.object.runpath, search.origin, soname)) {
    return located;
  }
  return names_.contains(soname) ? std::nullopt : FindByDefault(soname);
}

Status LibraryFinder::Close(const ElfInfo& object, const std::string& origin, Missing missing) {
  return Visit(Search{object, origin}, missing, 0);
}

Status LibraryFinder::CloseName(const std::string& soname) {
  if (names_.contains(soname)) {
    return {};
  }
  auto located = FindByDefault(soname);
  if (!located) {
    return {};
  }
  names_.insert(soname);
  const ElfInfo no_requester;
  return Add(std::move(*located), Search{no_requester, "/"}, Missing::kSkip, 0);
}

Status LibraryFinder::Visit(const Search& search, Missing missing, int depth) {
  if (depth > kMaxDepth || found_.size() > kMaxLibraries) {
    return Error{
        ErrorKind::kNotExecutable, "runtime.library.depth", "needs too many libraries", {}, 0};
  }
  for (const std::string& soname : search.object.needed) {
    auto located = Find(soname, search);
    if (!located) {
      if (missing == Missing::kFail && !names_.contains(soname)) {
        return Error{ErrorKind::kNotExecutable, "runtime.library.missing",
                     "needs the library " + InQuotes(soname) + ", which is not installed",
                     "install the package that has it; if it is there, run ldconfig", 0};
      }
      continue;
    }
    names_.insert(soname);
    Status added = Add(std::move(*located), search, missing, depth);
    if (!added.ok() && missing == Missing::kFail) {
      return added;
    }
  }
  return {};
}

Status LibraryFinder::Add(Located located, const Search& search, Missing missing, int depth) {
  // The loader opens the name as it is; inside, the links of its directories exist, so this is the same file.
  RealPaths::Place& place = located.file.place;
  std::string inside = place.Inside();
  if (!files_.insert(inside).second) {
    return {};
  }
  if ((located.file.status.st_mode & (S_ISUID | S_ISGID)) != 0) {
    return Error{ErrorKind::kNotExecutable,
                 "runtime.library.setuid",
                 "needs " + PathInWords(located.name) + ", which is setuid or setgid",
                 {},
                 0};
  }
  Result<ElfInfo> info = ReadElf(located.file.fd.get(), ElfDetail::kLibrary);
  if (!info.ok()) {
    info.error().message =
        "needs " + PathInWords(located.name) + ", which is " + info.error().message;
    return std::move(info.error());
  }
  located.file.fd.Reset();
  found_.push_back(
      {std::move(inside), std::move(place.real), place.via_link(), missing == Missing::kSkip});
  return Visit(Search{*info, std::string(DirName(located.name)), &search}, missing, depth + 1);
}

}  // namespace coffer::isolation
