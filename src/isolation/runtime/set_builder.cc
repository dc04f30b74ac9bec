// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/set_builder.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>

#include "base/path_words.h"
#include "base/sys.h"
#include "isolation/runtime/own_tree.h"

namespace coffer::isolation {

namespace {

bool IsSharedObject(std::string_view name) {
  return name.ends_with(".so") || name.find(".so.") != std::string_view::npos;
}

bool IsBookkeeping(std::string_view name) {
  return name == "__pycache__" || name == "tests" || name == "test" ||
         name.ends_with(".dist-info") || name.ends_with(".egg-info");
}

// "apt" in the list skips apt, apt_pkg.cpython-311.so and apt-stubs, not aptly.
bool IsSkipped(std::string_view name, const std::vector<std::string_view>& skip) {
  return std::any_of(skip.begin(), skip.end(), [&](std::string_view prefix) {
    return name.starts_with(prefix) &&
           (name.size() == prefix.size() ||
            std::string_view("._-").find(name[prefix.size()]) != std::string_view::npos);
  });
}

}  // namespace

void SetBuilder::AddOwnTree(const RealPaths::Place& place) {
  if (std::string tree = OwnTree(place); !tree.empty()) {
    own_trees_.push_back(std::move(tree));
  }
}

Status SetBuilder::AddProgram(const Program& program) {
  if (program.named_by_caller) {
    AddOwnTree(program.place);
  }
  const std::string& real = program.place.real;
  if (program.place.is_link()) {
    links_.emplace_back(program.place.Inside(), RelativeTarget(program.place.Inside(), real));
  }
  if (!program.is_script) {
    const std::string& interpreter = program.elf.interpreter;
    if (!interpreter.empty() &&
        std::find(interpreters_.begin(), interpreters_.end(), interpreter) == interpreters_.end()) {
      Result<RealPaths::Place> place = paths_.Find(interpreter);
      if (!place.ok()) {
        return Error{ErrorKind::kNotExecutable,
                     "runtime.command.interpreter",
                     PathInWords(real) + " needs the loader " + PathInWords(interpreter) +
                         ", which is not installed",
                     {},
                     0};
      }
      files_.push_back({place->real, place->Inside(), true, false, BindReason::kLoader,
                        /*named_by_caller=*/false, place->via_link()});
      interpreters_.push_back(interpreter);
      libraries_.Provide(std::string(BaseName(interpreter)));
      libraries_.SetLoaderDirectory(std::string(DirName(place->real)));
    }
    Status closed = libraries_.Close(program.elf, std::string(DirName(real)), Missing::kFail);
    if (!closed.ok()) {
      closed.error().message = PathInWords(real) + " " + closed.error().message;
      return closed;
    }
    if (program.elf.unwinds) {
      AddLibrary("libgcc_s.so.1");
    }
  }
  files_.push_back(
      {real, real, true, false, program.is_script ? BindReason::kScript : BindReason::kProgram,
       program.named_by_caller && !program.place.via_link(), program.place.via_link()});
  return {};
}

bool SetBuilder::AddOptionalProgram(const std::string& path) {
  const Result<Program> program = OpenProgram(paths_, path);
  return program.ok() && AddProgram(*program).ok();
}

bool SetBuilder::AddTree(const std::string& path, Exec exec) {
  Result<RealPaths::Place> place = paths_.Find(path);
  struct stat status{};
  if (!place.ok() || !Stat(place->real, status) || !S_ISDIR(status.st_mode)) {
    return false;
  }
  files_.push_back({place->real, place->Inside(), exec == Exec::kYes, true, BindReason::kRuntime,
                    /*named_by_caller=*/false, place->via_link()});
  return true;
}

bool SetBuilder::AddFile(const std::string& path) {
  Result<RealPaths::Place> place = paths_.Find(path);
  struct stat status{};
  if (!place.ok() || !Stat(place->real, status) || !S_ISREG(status.st_mode)) {
    return false;
  }
  files_.push_back({place->real, place->Inside(), false, false, BindReason::kRuntime,
                    /*named_by_caller=*/false, place->via_link()});
  return true;
}

void SetBuilder::AddOptional(const std::string& path) {
  const Result<RealPaths::Place> place = paths_.Find(path);
  struct stat status{};
  if (!place.ok() || !Stat(place->real, status) ||
      !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) {
    return;
  }
  files_.push_back({place->real, place->Inside(), false, S_ISDIR(status.st_mode),
                    BindReason::kRuntime, /*named_by_caller=*/false, place->via_link()});
  files_.back().optional = true;
}

void SetBuilder::AddName(const std::string& path) {
  const Result<RealPaths::Place> place = paths_.Find(path);
  if (place.ok() && place->is_link() &&
      std::any_of(files_.begin(), files_.end(),
                  [&](const RuntimeFile& file) { return file.inside == place->real; })) {
    links_.emplace_back(place->Inside(), RelativeTarget(place->Inside(), place->real));
  }
}

void SetBuilder::AddLibrary(const std::string& soname) {
  // Absent or damaged, the host's own programs do without it as well.
  [[maybe_unused]] const Status added = libraries_.CloseName(soname);
}

void SetBuilder::AddModules(const std::string& directory, int depth,
                            const std::vector<std::string_view>& skip) {
  const Result<UniqueFd> fd = sys::Open(directory, O_RDONLY | O_DIRECTORY);
  if (!fd.ok()) {
    return;
  }
  const Result<std::vector<sys::DirEntry>> entries = sys::ListDir(fd->get());
  if (!entries.ok()) {
    return;
  }
  for (const sys::DirEntry& entry : *entries) {
    if (IsSkipped(entry.name, skip)) {
      continue;
    }
    if (entry.type == DT_DIR) {
      if (depth > 0 && !IsBookkeeping(entry.name)) {
        AddModules(directory + "/" + entry.name, depth - 1);
      }
      continue;
    }
    if (!IsSharedObject(entry.name)) {
      continue;
    }
    const Result<RealPaths::OpenedFile> file = paths_.Open(directory + "/" + entry.name);
    if (!file.ok()) {
      continue;
    }
    const Result<ElfInfo> info = ReadElf(file->fd.get(), ElfDetail::kLibrary);
    if (info.ok()) {
      [[maybe_unused]] const Status closed = libraries_.Close(*info, directory, Missing::kSkip);
    }
  }
}

Status SetBuilder::CheckBudget() const {
  if (!paths_.exhausted()) {
    return {};
  }
  return Refused("policy.runtime.size",
                 "the files of the command name more files than any program needs",
                 "its libraries and search paths look made up; use --runtime host-usr, or --ro");
}

RuntimeSet SetBuilder::Finish(Links links) {
  RuntimeSet set;
  set.files = std::move(files_);
  for (const Library& library : libraries_.found()) {
    set.files.push_back({library.real, library.name, false, false, BindReason::kLibrary,
                         /*named_by_caller=*/false, library.via_link, library.optional});
  }
  set.links = std::move(links_);
  set.own_trees = std::move(own_trees_);
  for (const std::string top : {"/bin", "/sbin", "/lib", "/lib64"}) {
    // Scripts and programs have these names built in. On a host with merged /usr they are links.
    const std::string merged = "/usr" + top + "/";
    if (std::any_of(set.files.begin(), set.files.end(), [&](const RuntimeFile& file) {
          return file.inside.starts_with(merged) || (file.directory && file.inside == "/usr");
        })) {
      paths_.Follow(top);
    }
  }
  for (const auto& [name, target] : paths_.followed()) {
    set.links.emplace_back(name, RelativeTarget(name, target));
  }
  return links == Links::kAll ? set : Merge(std::move(set), {});
}

}  // namespace coffer::isolation
