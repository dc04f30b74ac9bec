// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/compound_recipes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "isolation/host_path.h"
#include "isolation/package_etc.h"
#include "isolation/runtime/recipes.h"

namespace coffer::isolation {
namespace {

#if defined(__x86_64__)
constexpr const char* kLibraries = "/usr/lib/x86_64-linux-gnu";
#elif defined(__aarch64__)
constexpr const char* kLibraries = "/usr/lib/aarch64-linux-gnu";
#endif

void AddPrograms(SetBuilder& set, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (const std::string path = FindSystemProgram(name); !path.empty()) {
      set.AddOptionalProgram(path);
    }
  }
}

// A tree of programs: itself, and the libraries of what lies in it.
bool AddProgramTree(SetBuilder& set, const std::string& directory) {
  if (!set.AddTree(directory, SetBuilder::Exec::kYes)) {
    return false;
  }
  set.Watch(directory);
  const Result<UniqueFd> fd = sys::Open(directory, O_RDONLY | O_DIRECTORY);
  const Result<std::vector<sys::DirEntry>> entries =
      fd.ok() ? sys::ListDir(fd->get()) : Result<std::vector<sys::DirEntry>>(fd.error());
  if (entries.ok()) {
    for (const sys::DirEntry& entry : *entries) {
      if (entry.type == DT_REG) {
        set.AddOptionalProgram(directory + "/" + entry.name);
      }
    }
  }
  return true;
}

// A link does not count, neither as the file nor on the way to it.
bool IsFileOfJava(const std::string& path) {
  const Result<UniqueFd> file = sys::OpenNoLinks(AT_FDCWD, path, O_PATH);
  struct stat info{};
  return file.ok() && ::fstat(file->get(), &info) == 0 && S_ISREG(info.st_mode);
}

bool IsSystems(const std::string& directory) {
  SystemPaths system;
  const Result<HostPath> path = ExamineHostPath(directory, BindReason::kRuntime, system);
  return path.ok() && path->path_class == PathClass::kSystem;
}

// A payload that may write to `app/bin` can put any file there and call it java. So `app` counts as a Java home only by
// files that lie outside of the bin, and what comes in of a home that is not the system's are the directories that
// every Java has.
bool AddJavaHome(SetBuilder& set, const std::string& home) {
  const bool has_jre = IsFileOfJava(home + "/jre/lib/rt.jar");  // Java 8
  if (!has_jre && !IsFileOfJava(home + "/lib/modules") && !IsFileOfJava(home + "/lib/rt.jar")) {
    return false;
  }
  if (IsSystems(home)) {
    return set.AddTree(home, SetBuilder::Exec::kYes);
  }
  if (!IsFileOfJava(home + "/release") || !set.AddFile(home + "/release")) {
    return false;
  }
  for (const char* const part : {"/bin", "/lib", "/conf"}) {
    set.AddTree(home + part, SetBuilder::Exec::kYes);
  }
  return !has_jre || set.AddTree(home + "/jre", SetBuilder::Exec::kYes);
}

}  // namespace

Status AddNothing(SetBuilder& /*set*/, const Program& /*program*/) { return {}; }

Status AddGit(SetBuilder& set, const Program& program) {
  if (!AddProgramTree(set, "/usr/lib/git-core")) {
    AddProgramTree(set, "/usr/libexec/git-core");
  }
  set.AddTree("/usr/share/git-core");
  TRY(FindRecipe("base")->add(set, program));  // hooks, and the commands that are scripts
  AddPrograms(set, {"perl", "less"});
  return {};
}

Status AddGcc(SetBuilder& set, const Program& program) {
  AddPrograms(set, {"cc", "gcc", "g++", "c++", "cpp", "as", "ld", "ld.bfd", "ld.gold", "ar",
                    "ranlib", "nm", "strip", "objcopy", "objdump", "make"});
  for (const char* const tree : {"/usr/lib/gcc", "/usr/libexec/gcc", "/usr/include", kLibraries}) {
    if (set.AddTree(tree, SetBuilder::Exec::kYes)) {
      set.Watch(tree);
    }
  }
  return FindRecipe("base")->add(set, program);  // make runs sh
}

Status AddJava(SetBuilder& set, const Program& program) {
  // /usr/lib/jvm/java-17-openjdk-arm64/bin/java: its home is two directories up.
  const std::string home(DirName(DirName(program.place.real)));
  if (home == "/usr" || !AddJavaHome(set, home)) {
    return Error{ErrorKind::kHost, "runtime.java.home",
                 program.place.real + " has no Java home around it",
                 "the directory above its bin is one if it holds the files release, and "
                 "lib/modules or lib/rt.jar",
                 0};
  }
  set.Watch(home);
  set.AddModules(home + "/lib", 1);
  AddPrograms(set, {"java", "javac", "jar", "jshell", "keytool"});
  for (const std::string& path : FindPackageEtc()) {
    if (path.starts_with("/etc/java-") || path == "/etc/ssl/certs") {
      set.AddTree(path);
    }
  }
  return {};
}

Status AddNpm(SetBuilder& set, const Program& program) {
  for (const char* const tree : {"/usr/share/nodejs", "/usr/lib/nodejs", "/usr/share/npm",
                                 "/usr/lib/node_modules", "/usr/local/lib/node_modules"}) {
    set.AddTree(tree);
  }
  AddPrograms(set, {"npm", "npx"});
  TRY(FindRecipe("node")->add(set, program));
  return FindRecipe("base")->add(set, program);
}

Status AddPandoc(SetBuilder& set, const Program& /*program*/) {
  set.AddTree("/usr/share/pandoc");
  return {};
}

}  // namespace coffer::isolation
