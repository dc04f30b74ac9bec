// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/compound_recipes.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/sys.h"
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
  if (home == "/usr" || !set.AddTree(home, SetBuilder::Exec::kYes)) {
    return Error{ErrorKind::kHost, "runtime.java.home",
                 program.place.real + " has no Java home around it",
                 "its home is the directory above its bin", 0};
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
