// SPDX-License-Identifier: Apache-2.0
#include "isolation/compose_etc.h"

#include <sys/stat.h>

#include <algorithm>

#include "isolation/etc.h"
#include "isolation/runtime/real_path.h"
#include "isolation/runtime/runtime.h"

namespace coffer::isolation {
namespace {

constexpr std::string_view kLoaderCache = "/etc/ld.so.cache";

// The loader searches /lib, /usr/lib and their multiarch directory by itself.
bool NeedsLoaderCache(const RuntimeSet& runtime) {
  return std::any_of(runtime.files.begin(), runtime.files.end(), [](const RuntimeFile& file) {
    const std::string_view path = file.inside;
    const bool library = path.find(".so") != std::string_view::npos && path != kLoaderCache;
    const bool usual =
        path.starts_with("/usr/lib/") || path.starts_with("/lib/") || path.starts_with("/lib64/");
    return library && (!usual || std::count(path.begin(), path.end(), '/') > 4);
  });
}

bool Shows(const RuntimeSet& runtime, std::string_view path) {
  return std::any_of(runtime.files.begin(), runtime.files.end(), [&](const RuntimeFile& file) {
    return file.inside == path || (file.directory && IsAtOrBelow(path, file.inside));
  });
}

bool HasInterpreter(const RuntimeSet& runtime) {
  return std::any_of(runtime.files.begin(), runtime.files.end(),
                     [](const RuntimeFile& file) { return file.directory; });
}

constexpr const char* kCaBundle = "/etc/ssl/certs/ca-certificates.crt";
constexpr const char* kLocale = "/usr/lib/locale/C.utf8";
constexpr size_t kManyFiles = 8;  // more than one program with its libraries

void AddPublic(RuntimeSet& runtime, const std::string& path) {
  RealPaths paths;
  const Result<RealPaths::Place> place = paths.Find(path);
  struct stat info{};
  if (!place.ok() || !Stat(place->real, info)) {
    return;
  }
  RuntimeFile file{place->real, path, false, S_ISDIR(info.st_mode)};
  file.optional = true;
  runtime.files.push_back(std::move(file));
}

}  // namespace

std::vector<PrivateFile> RuntimeEtc(const RuntimeSet& runtime) {
  std::vector<PrivateFile> files;
  if (HasInterpreter(runtime)) {
    files.push_back(SyntheticLocaltime());
  }
  if ((HasInterpreter(runtime) || NeedsLoaderCache(runtime)) && !Shows(runtime, kLoaderCache)) {
    files.push_back({std::string(kLoaderCache), MakeLoaderCache(runtime), 0444});
  }
  return files;
}

void AddPublicFiles(RuntimeSet& runtime) {
  const bool interpreter = HasInterpreter(runtime);
  if (runtime.files.size() > kManyFiles && !Shows(runtime, kLocale)) {
    AddPublic(runtime, kLocale);
  }
  if (interpreter && !Shows(runtime, kCaBundle)) {
    AddPublic(runtime, kCaBundle);
  }
  if (NeedsLoaderCache(runtime)) {
    // The host's cache does not list the caller's own libraries: one is made that has both.
    std::erase_if(runtime.files,
                  [](const RuntimeFile& file) { return file.inside == kLoaderCache; });
  }
}

}  // namespace coffer::isolation
