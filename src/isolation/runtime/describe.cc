// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/describe.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "isolation/runtime/cached_recipe.h"
#include "isolation/runtime/recipes.h"

namespace coffer::isolation {

namespace {

constexpr int kMaxReportDepth = 64;

struct Sum {
  uint64_t files = 0;
  uint64_t bytes = 0;
};

void AddTree(int parent, const std::string& name, int depth, Sum& sum) {
  const Result<UniqueFd> fd = sys::OpenAt(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd.ok() || depth > kMaxReportDepth) {
    return;
  }
  const Result<std::vector<sys::DirEntry>> entries = sys::ListDir(fd->get());
  if (!entries.ok()) {
    return;
  }
  for (const sys::DirEntry& entry : *entries) {
    if (entry.type == DT_DIR) {
      AddTree(fd->get(), entry.name, depth + 1, sum);
      continue;
    }
    struct stat status{};
    if (entry.type == DT_REG &&
        raw::Syscall(SYS_newfstatat, fd->get(), raw::Arg(entry.name.c_str()), raw::Arg(&status),
                     AT_SYMLINK_NOFOLLOW) == 0) {
      ++sum.files;
      sum.bytes += static_cast<uint64_t>(status.st_size);
    }
  }
}

Sum Measure(const RuntimeSet& set) {
  Sum sum;
  for (const RuntimeFile& file : set.files) {
    struct stat status{};
    if (file.directory) {
      AddTree(AT_FDCWD, file.host, 0, sum);
    } else if (Stat(file.host, status)) {
      ++sum.files;
      sum.bytes += static_cast<uint64_t>(status.st_size);
    }
  }
  return sum;
}

}  // namespace

std::vector<RuntimeReport> DescribeRuntimes(const ResolveOptions& options) {
  std::vector<RuntimeReport> reports;
  for (const Recipe& recipe : Recipes()) {
    RuntimeReport report;
    report.name = recipe.name;
    report.summary = recipe.summary;
    report.package = recipe.package;
    const Result<RuntimeSet> set = ResolveRuntimes({report.name}, options);
    report.found = set.ok();
    if (!recipe.program.empty()) {
      RealPaths paths;
      const Result<RealPaths::Place> place = paths.Find(FindSystemProgram(recipe.program));
      report.program = place.ok() && place->real != "/" ? place->real : std::string();
    }
    if (set.ok()) {
      report.entries = set->files.size();
      if (!recipe.program.empty()) {
        const Sum sum = Measure(*set);
        report.files = sum.files;
        report.bytes = sum.bytes;
      }
    } else {
      report.problem = set.error().message;
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace coffer::isolation
