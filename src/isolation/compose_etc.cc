// SPDX-License-Identifier: Apache-2.0
#include "isolation/compose_etc.h"

#include <sys/stat.h>

#include <algorithm>

#include "isolation/etc.h"
#include "isolation/runtime/real_path.h"
#include "isolation/runtime/runtime.h"

namespace coffer::isolation {
namespace {

// The loader searches /lib, /usr/lib and their multiarch directory by itself.
bool NeedsLoaderCache(const RuntimeSet& runtime) {
  return std::any_of(runtime.files.begin(), runtime.files.end(), [](const RuntimeFile& file) {
    const std::string_view path = file.inside;
    const bool library = path.find(".so") != std::string_view::npos;
    const bool usual =
        path.starts_with("/usr/lib/") || path.starts_with("/lib/") || path.starts_with("/lib64/");
    return library && (!usual || std::count(path.begin(), path.end(), '/') > 4);
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
  if (HasInterpreter(runtime) || NeedsLoaderCache(runtime)) {
    files.push_back({"/etc/ld.so.cache", MakeLoaderCache(runtime), 0444});
  }
  return files;
}

void AddPublicFiles(RuntimeSet& runtime) {
  const bool whole_usr = std::any_of(
      runtime.files.begin(), runtime.files.end(),
      [](const RuntimeFile& file) { return file.directory && IsAtOrBelow(kLocale, file.inside); });
  const bool interpreter = HasInterpreter(runtime);
  if (runtime.files.size() > kManyFiles && !whole_usr) {
    AddPublic(runtime, kLocale);
  }
  if (interpreter) {
    AddPublic(runtime, kCaBundle);
  }
}

}  // namespace coffer::isolation
