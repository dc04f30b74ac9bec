// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/recipes.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <array>

#include "base/sys.h"
#include "base/trust_files.h"
#include "isolation/package_etc.h"
#include "isolation/runtime/busybox.h"
#include "isolation/runtime/compound_recipes.h"
#include "isolation/runtime/shell_tools.h"

namespace coffer::isolation {

namespace {

std::vector<std::string> SortedNames(const std::string& directory) {
  std::vector<std::string> names;
  const Result<UniqueFd> fd = sys::Open(directory, O_RDONLY | O_DIRECTORY);
  if (!fd.ok()) {
    return names;
  }
  const Result<std::vector<sys::DirEntry>> entries = sys::ListDir(fd->get());
  if (entries.ok()) {
    for (const sys::DirEntry& entry : *entries) {
      names.push_back(entry.name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool IsVersion(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::string Prefix(const Program& program) {
  return std::string(DirName(DirName(program.place.real)));  // /usr of /usr/bin/python3.11
}

// "python3.11", from the file's name or, if that is only "python3", from the library beside it.
std::string PythonName(const Program& program, const std::string& prefix) {
  const std::string_view file = BaseName(program.place.real);
  const std::string_view stem = "python";
  if (file.starts_with(stem) && file.find('.') != std::string_view::npos) {
    std::string name(file);
    while (name.size() > stem.size() && !IsVersion(name.substr(stem.size()))) {
      name.pop_back();  // the "d" of a debug build
    }
    return name;
  }
  std::string found;
  for (const std::string& name : SortedNames(prefix + "/lib")) {
    struct stat status{};
    if (name.starts_with("python3.") && Stat(prefix + "/lib/" + name + "/os.py", status)) {
      found = found.size() > name.size() ? found : name;  // python3.9 < python3.11
    }
  }
  return found;
}

// Tests of the interpreter itself, and nis, whose Kerberos libraries would be a quarter of all mounts.
const std::vector<std::string_view>& UnusedPythonModules() {
  static const std::vector<std::string_view> modules = {"nis",
                                                        "_testbuffer",
                                                        "_testcapi",
                                                        "_testclinic",
                                                        "_testimportmultiple",
                                                        "_testinternalcapi",
                                                        "_testmultiphase",
                                                        "_ctypes_test",
                                                        "_xxtestfuzz",
                                                        "_xxsubinterpreters",
                                                        "xxlimited",
                                                        "xxsubtype",
                                                        "ossaudiodev"};
  return modules;
}

void AddPythonPackages(SetBuilder& set, const std::string& directory) {
  // Bindings to the system's services and package manager: useless inside, and their libraries are many.
  static const std::vector<std::string_view> kSystem = {"apt",
                                                        "apt_pkg",
                                                        "apt_inst",
                                                        "_dbus_bindings",
                                                        "_dbus_glib_bindings",
                                                        "dbus",
                                                        "gi",
                                                        "perf",
                                                        "systemd",
                                                        "cups",
                                                        "brlapi",
                                                        "cairo",
                                                        "selinux",
                                                        "pip",
                                                        "setuptools"};
  set.Watch(directory);
  if (!SortedNames(directory).empty() && set.AddTree(directory)) {
    set.AddModules(directory, 3, kSystem);
  }
}

// A virtual environment is a link to the real program, with its packages and pyvenv.cfg beside the link.
void AddVirtualEnvironment(SetBuilder& set, const RealPaths::Place& link) {
  const std::string root(DirName(link.directory));
  if (!set.AddFile(root + "/pyvenv.cfg")) {
    return;
  }
  for (const std::string& name : SortedNames(root + "/lib")) {
    if (name.starts_with("python3.")) {
      AddPythonPackages(set, root + "/lib/" + name + "/site-packages");
    }
  }
}

// Configuration and data that Debian's packages keep outside of the library, in /etc or linked to there.
void AddPythonConfiguration(SetBuilder& set) {
  set.AddOptional("/etc/ssl/openssl.cnf");
  set.AddName("/usr/lib/ssl/openssl.cnf");
  // Providers that it may name: one that cannot be loaded fails every use of OpenSSL.
  set.AddTree("/usr/lib/" + std::string(kTriplet) + "/ossl-modules");
  set.AddOptional(kTrustFiles.front());
  set.AddName("/usr/lib/ssl/cert.pem");
  if (set.AddTree("/usr/share/matplotlib")) {  // it cannot be imported without
    set.AddOptional("/etc/matplotlibrc");
  }
  if (set.AddTree("/usr/share/tcltk")) {  // of tkinter
    set.AddOptional("/etc/tcltk");
  }
}

Status AddPython(SetBuilder& set, const Program& program) {
  const std::string prefix = Prefix(program);
  const std::string python = PythonName(program, prefix);
  // The name of the file alone does not make its surroundings a Python: they have its standard library.
  const auto has_standard_library = [&](const char* lib) {
    struct stat status{};
    return Stat(prefix + lib + python + "/os.py", status) && S_ISREG(status.st_mode);
  };
  const bool has_library =
      !python.empty() && (has_standard_library("/lib/") || has_standard_library("/lib64/"));
  for (const char* const lib : {"/lib/", "/lib64/"}) {
    const std::string library = prefix + lib + python;
    if (has_library && set.AddTree(library)) {
      set.Watch(library);
      set.Watch(library + "/lib-dynload");
      set.AddModules(library + "/lib-dynload", 0, UnusedPythonModules());
    }
  }
  if (!has_library) {
    return Error{ErrorKind::kHost, "runtime.python3.library",
                 program.place.real + " has no standard library in " + prefix + "/lib",
                 "apt install python3", 0};
  }
  if (prefix == "/usr") {
    set.AddOptional("/etc/" + python);  // Debian's sitecustomize.py is a link to there
    AddPythonPackages(set, "/usr/lib/python3/dist-packages");
    AddPythonPackages(set, "/usr/local/lib/" + python + "/dist-packages");
    AddPythonConfiguration(set);
  } else {
    set.Watch(prefix + "/lib/" + python + "/site-packages");
    set.AddModules(prefix + "/lib/" + python + "/site-packages", 3);
  }
  set.AddName(prefix + "/bin/python3");
  set.AddName(prefix + "/bin/python");
  set.AddTree("/usr/share/zoneinfo");
  set.AddTree("/usr/lib/terminfo");
  set.AddLibrary("libgcc_s.so.1");  // libc loads it when a thread ends early
  return {};
}

Status AddNode(SetBuilder& set, const Program& program) {
  set.AddName(std::string(program.place.directory) + "/nodejs");
  set.AddName(std::string(program.place.directory) + "/node");
  const auto& needed = program.elf.needed;
  if (std::any_of(needed.begin(), needed.end(),
                  [](const std::string& name) { return name.starts_with("libnode."); })) {
    set.AddTree("/usr/share/nodejs");  // Debian's node reads parts of itself from there
  }
  set.AddLibrary("libgcc_s.so.1");
  return {};
}

Status AddPerl(SetBuilder& set, const Program& program) {
  const std::string prefix = Prefix(program);
  const std::string triplet(kTriplet);
  // Debian's places, then those of others, below the program's own prefix. Architecture-dependent ones have modules.
  for (const std::string& place :
       {"/lib/" + triplet + "/perl", "/lib/" + triplet + "/perl-base", "/lib/" + triplet + "/perl5",
        std::string("/lib64/perl5"), std::string("/lib/perl5")}) {
    if (set.AddTree(prefix + place)) {
      set.Watch(prefix + place);
      set.AddModules(prefix + place, 8);
    }
  }
  set.AddTree(prefix + "/share/perl");
  set.AddTree(prefix + "/share/perl5");
  set.AddLibrary("libgcc_s.so.1");
  return {};
}

Status AddShell(SetBuilder& set, const Program& /*program*/) {
  for (const char* const directory : {"/usr/bin", "/bin"}) {
    struct stat status{};
    if (!Stat(directory, status)) {
      continue;
    }
    set.Watch(directory);
    for (const std::string_view tool : ShellTools()) {
      set.AddOptionalProgram(std::string(directory) + "/" + std::string(tool));
    }
    const Result<RealPaths::Place> bin = set.paths().Find("/bin");
    if (bin.ok() && bin->real == directory) {
      break;  // merged: /bin is the same directory
    }
  }
  set.Watch("/etc/alternatives");
  set.AddTree("/usr/share/zoneinfo");
  set.AddTree("/usr/lib/terminfo");
  set.AddLibrary("libgcc_s.so.1");
  return {};
}

Status AddBusybox(SetBuilder& set, const Program& program) {
  for (const std::string& applet : BusyboxApplets(program.place.real)) {
    if (applet != BaseName(program.place.real)) {
      set.AddLink(program.place.directory + "/" + applet,
                  std::string(BaseName(program.place.real)));
    }
  }
  return {};
}

Status AddHostUsr(SetBuilder& set, const Program& /*program*/) {
  for (const char* const tree : {"/usr", "/bin", "/sbin", "/lib", "/lib64"}) {
    const Result<RealPaths::Place> place = set.paths().Find(tree);
    if (place.ok() && !place->is_link()) {
      set.AddTree(tree, SetBuilder::Exec::kYes);
    }
  }
  for (const std::string& path : FindPackageEtc()) {
    set.AddOptional(path);  // /usr/bin/awk leads through alternatives
  }
  set.AddLink("/etc/os-release", "../usr/lib/os-release");
  return {};
}

constexpr std::array kRecipes = {
    Recipe{"python3", "python3", "python3", "Python with its standard library", AddPython,
           AddVirtualEnvironment},
    Recipe{"node", "node", "nodejs", "Node.js", AddNode},
    Recipe{"base", "sh", "dash", "sh, coreutils, grep, sed, awk, find, tar, gzip, diff", AddShell},
    Recipe{"bash", "bash", "bash", "bash and everyday tools", AddShell},
    Recipe{"sh", "sh", "dash", "the same as base", AddShell},
    Recipe{"git", "git", "git", "git with its own commands, and base", AddGit},
    Recipe{"gcc", "gcc", "gcc", "C and C++ compilers with headers, make, and base", AddGcc},
    Recipe{"java", "java", "default-jre-headless", "Java with its home", AddJava},
    Recipe{"npm", "node", "npm", "npm and npx with Node.js, and base", AddNpm},
    Recipe{"jq", "jq", "jq", "jq", AddNothing},
    Recipe{"pandoc", "pandoc", "pandoc", "pandoc with its data", AddPandoc},
    Recipe{"perl", "perl", "perl", "Perl with its standard library", AddPerl},
    Recipe{"busybox", "busybox", "busybox-static", "busybox and its applets", AddBusybox},
    Recipe{"host-usr", "", "", "all of the host's /usr: wide, compilers included", AddHostUsr},
};

const Recipe* RecipeForName(std::string_view name) {
  const auto versioned = [&](std::string_view stem) {
    return name.starts_with(stem) &&
           (name.size() == stem.size() || IsVersion(name.substr(stem.size())));
  };
  if (versioned("python3") || name == "python") {
    return FindRecipe("python3");
  }
  if (name == "node" || name == "nodejs") {
    return FindRecipe("node");
  }
  if (versioned("perl")) {
    return FindRecipe("perl");
  }
  for (const std::string_view same : {"bash", "busybox", "git", "java", "pandoc"}) {
    if (name == same) {
      return FindRecipe(name);
    }
  }
  if (name == "npm" || name == "npx" || name == "npm-cli.js" || name == "npx-cli.js") {
    return FindRecipe("npm");
  }
  return name == "sh" || name == "dash" ? FindRecipe("sh") : nullptr;
}

}  // namespace

std::span<const Recipe> Recipes() { return kRecipes; }

const Recipe* FindRecipe(std::string_view name) {
  const auto found = std::find_if(kRecipes.begin(), kRecipes.end(),
                                  [&](const Recipe& recipe) { return recipe.name == name; });
  return found == kRecipes.end() ? nullptr : &*found;
}

std::string FindRuntimeWith(std::string_view command) {
  const auto tools = ShellTools();
  if (std::find(tools.begin(), tools.end(), command) != tools.end()) {
    return "base";
  }
  for (const std::string_view compiler : {"gcc", "g++", "cc", "c++", "make", "ld", "as", "ar"}) {
    if (command == compiler) {
      return "gcc";
    }
  }
  for (const std::string_view tool : {"javac", "jar", "jshell", "keytool"}) {
    if (command == tool) {
      return "java";
    }
  }
  if (const Recipe* const recipe = RecipeForName(command); recipe != nullptr) {
    return std::string(recipe->name);
  }
  return command == "jq" ? "jq" : "";
}

const Recipe* FindRecipeFor(const RealPaths::Place& place) {
  const Recipe* const by_file = RecipeForName(BaseName(place.real));
  return by_file != nullptr ? by_file : RecipeForName(place.name);
}

}  // namespace coffer::isolation
