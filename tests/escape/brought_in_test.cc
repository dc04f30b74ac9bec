// SPDX-License-Identifier: Apache-2.0
//
// What a command brings in with it: loader, libraries, packages, scripts. Each of these tests is an earlier payload that
// could write into a project, and a caller who later runs something of that project without any flag. The secret lies
// outside the project; nothing of it may be shown.
#include "tests/escape/brought_in.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/exit_codes.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

TEST_P(BroughtIn, TheCallersOwnProgramRunsWithItsOwnLibrary) {
  ExpectHonest();
  EXPECT_TRUE(PrintsWhatItIsShown()) << "NO-CONTROL";
  const RunResult result = RunTool();
  bool program = false;
  bool library = false;
  for (const Json& entry : result.receipt["files"]["bound"]) {
    program = program ||
              (entry["path"] == tool_ && entry["class"] == "caller" && entry["why"] == "program");
    library = library || (entry["why"] == "library" && entry["class"] == "caller");
  }
  EXPECT_TRUE(program && library) << result.receipt["files"].dump();
  EXPECT_TRUE(Contains(result.receipt["blast_radius"].get<std::string>(), tool_));
}

TEST_P(BroughtIn, AnElfWithTwoInterpretersIsRefused) {
  std::string bytes = ReadFile(tool_).value_or("");
  ASSERT_FALSE(bytes.empty());
  // The kernel takes the first; the last names the secret.
  bool patched = false;
  for (size_t i = HeaderCount(bytes); i-- > 0 && !patched;) {
    if (ProgramHeader(bytes, i).p_type == PT_NOTE) {
      const Elf64_Phdr second = InterpreterEntry(bytes, SecretFile());
      PutProgramHeader(bytes, i, second);
      patched = true;
    }
  }
  ASSERT_TRUE(patched) << "the fixture has no header to spare";
  EXPECT_TRUE(PrintsWhatItIsShown()) << "NO-CONTROL";
  dir_.Write("proj/bin/tool", bytes, 0755);
  EXPECT_TRUE(Contains(RunProgram({tool_}).out, "own library")) << "NO-CONTROL: the kernel runs it";
  ExpectRefused(RunTool(), "policy.runtime.elf.ambiguous", kExitNotExecutable);
}

TEST_P(BroughtIn, AnInterpreterOutsideTheProjectIsRefused) {
  EXPECT_TRUE(PrintsWhatItIsShown()) << "NO-CONTROL";
  const std::string original = ReadFile(tool_).value_or("");
  const std::string socket_path = dir_ / "home/socket";
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path.c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  // A file, a directory, a socket, and something of the project that is no program at all.
  dir_.Write("proj/.env", token_);
  fs::create_symlink(SecretFile(), project_ / "lib/ld.so");
  const std::map<std::string, std::string> refusals = {
      {SecretFile(), "policy.runtime.foreign"},
      {SecretDirectory(), "policy.path.kind"},
      {socket_path, "policy.path.kind"},
      {project_ / ".env", "policy.runtime.library"},
      {project_ / "lib/ld.so", "policy.runtime.link"},
      {"/etc/hostname", "policy.runtime.foreign"},
      {"/dev/null", "policy.path.kind"},
  };
  for (const auto& [named, error_class] : refusals) {
    dir_.Write("proj/bin/tool", WithInterpreter(original, named), 0755);
    SCOPED_TRACE(named);
    ExpectRefused(RunTool(), error_class);
  }
  ::close(listener);
}

TEST_P(BroughtIn, AFifoThatAProgramNamesIsNotOpened) {
  ASSERT_EQ(::mkfifo((project_ / "lib/pipe.so").c_str(), 0600), 0);
  fs::remove(project_ / "lib/libown.so");
  fs::rename(project_ / "lib/pipe.so", project_ / "lib/libown.so");
  Background writer(
      {"sh", "-c",
       "echo waiting; echo data > '" + (project_ / "lib/libown.so").string() + "'; echo released"});
  ASSERT_TRUE(writer.WaitForOutput("waiting"));
  ExpectRefused(RunTool(), "policy.runtime.library.missing", kExitNotExecutable);
  EXPECT_FALSE(Contains(writer.out(), "released"));
  const int reader =
      ::open((project_ / "lib/libown.so").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(writer.WaitForOutput("released")) << "NO-CONTROL: an ordinary reader releases it";
  ::close(reader);
}

// A terminal's device: its other end is told when it was opened, and closed again.
TEST_P(BroughtIn, ADeviceThatAProgramNamesIsNotOpened) {
  const int other_end = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_TRUE(other_end >= 0 && ::grantpt(other_end) == 0 && ::unlockpt(other_end) == 0);
  const std::string device = ::ptsname(other_end);
  const auto was_opened = [&] {
    pollfd state{other_end, POLLIN, 0};
    return ::poll(&state, 1, 0) > 0 && (state.revents & POLLHUP) != 0;
  };
  const std::string original = ReadFile(tool_).value_or("");
  dir_.Write("proj/bin/tool", WithInterpreter(original, device), 0755);
  ExpectRefused(RunTool(), "policy.path.kind");
  EXPECT_FALSE(was_opened()) << "OPEN: as an interpreter";
  dir_.Write("proj/bin/tool", original, 0755);
  ReplaceByLink(project_ / "lib/libown.so", device);
  ExpectRefused(RunTool(), "policy.runtime.library.missing", kExitNotExecutable);
  EXPECT_FALSE(was_opened()) << "OPEN: as a library";
  const int opened = ::open(device.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(opened, 0) << "NO-CONTROL";
  ::close(opened);
  EXPECT_TRUE(was_opened()) << "NO-CONTROL: an ordinary reader opens it";
  ::close(other_end);
}

TEST_P(BroughtIn, ALibraryThatBecameALinkIsRefused) {
  ExpectHonest();  // and a cache may have its answer now
  EXPECT_TRUE(PrintsWhatItIsShown()) << "NO-CONTROL";
  ReplaceByLink(project_ / "lib/libown.so", SecretFile());
  ExpectRefused(RunTool(), "policy.runtime.elf.magic", kExitNotExecutable);
  fs::remove(project_ / "lib/libown.so");
  // The same file outside the project, by a link: an ELF file, and still not the project's own.
  fs::copy_file(project_ / "lib/libown.so.away", home_ / "secrets/other.so");
  fs::create_symlink(home_ / "secrets/other.so", project_ / "lib/libown.so");
  ExpectRefused(RunTool(), "policy.runtime.link");
}

TEST_P(BroughtIn, AProgramThatBecameALinkIsRefused) {
  ExpectHonest();
  dir_.Write("home/secrets/deploy", "#!/bin/sh\necho " + token_ + "\n", 0755);
  ReplaceByLink(tool_, home_ / "secrets/deploy");
  EXPECT_TRUE(Contains(RunProgram({tool_}).out, token_)) << "NO-CONTROL";
  ExpectRefused(Run({tool_}), "policy.runtime.link");
  // A directory on the way.
  fs::remove(tool_);
  fs::rename(project_ / "bin", project_ / "bin.away");
  dir_.Write("home/secrets/tool", "#!/bin/sh\necho " + token_ + "\n", 0755);
  fs::create_symlink(home_ / "secrets", project_ / "bin");
  ExpectRefused(Run({tool_}), "policy.runtime.link");
}

TEST_P(BroughtIn, AScriptThatBecameALinkIsRefused) {
  const std::string script = dir_.Write("proj/report.py", "print('honest')\n");
  const auto run = [&] {
    Strings argv = {CofferPath(), "run", "--level", level(), script};
    return RunProgram(argv, options_);
  };
  EXPECT_TRUE(Contains(run().out, "honest")) << run().Describe();
  dir_.Write("home/secrets/key.py", "print('" + token_ + "')\n");
  ReplaceByLink(script, home_ / "secrets/key.py");
  EXPECT_TRUE(Contains(RunProgram({"python3", script}).out, token_)) << "NO-CONTROL";
  const RunResult result = run();
  ExpectRefused(result, "policy.runtime.link");
}

TEST_P(BroughtIn, AFirstLineNamesOnlyTheSystemOrItsOwnTree) {
  dir_.Write("home/secrets/interpreter", "#!/bin/sh\necho " + token_ + "\n", 0755);
  const std::string foreign =
      dir_.Write("proj/foreign", "#!" + (home_ / "secrets/interpreter").string() + "\n", 0755);
  EXPECT_TRUE(Contains(RunProgram({foreign}).out, token_)) << "NO-CONTROL";
  ExpectRefused(Run({foreign}), "policy.runtime.foreign");
  // Its own tree, and the system.
  const std::string own = dir_.Write("proj/bin/own", "#!" + tool_ + "\n", 0755);
  const RunResult result = Run({own});
  EXPECT_TRUE(Contains(result.out, "own library")) << result.Describe();
  const std::string system = dir_.Write("proj/bin/system", "#!/bin/sh\necho fine\n", 0755);
  EXPECT_EQ(Run({system}).out, "fine\n");
  dir_.MakeDir("home/bin");
  // A name that is found on the PATH of the caller must be a program, not another script.
  dir_.Write("home/bin/wrapper", "#!/bin/sh\necho " + token_ + "\n", 0755);
  const std::string by_path = dir_.Write("proj/bin/by-path", "#!/usr/bin/env wrapper\n", 0755);
  options_.environment = {{"HOME=" + home_.string(), "PATH=/usr/bin:" + (home_ / "bin").string()}};
  ExpectRefused(Run({by_path}), "policy.runtime.foreign");
}

// The project is mounted, so its scripts run where they are. What runs them lies outside: by the first line, by a link in
// the project that the first line names, and by the caller's PATH.
TEST_P(BroughtIn, AMountedScriptNamesOnlyTheSystemOrAToolchain) {
  const Strings mounted = container() || !IsRoot() ? Strings{"--ro", project_.string()} : Strings{};
  const fs::path versions = home_ / ".pyenv/versions/1/bin";
  fs::create_directories(versions);
  fs::create_directories(project_ / "env/bin");
  for (const fs::path& place : {home_ / "secrets", versions}) {
    fs::copy_file("/bin/cat", place / "interpreter");
    const fs::path link = project_ / "env/bin/interpreter";
    fs::remove(link);
    fs::create_symlink(place / "interpreter", link);
    for (const fs::path& named : {place / "interpreter", link}) {
      const std::string script =
          dir_.Write("proj/bin/named", "#!" + named.string() + "\n" + token_ + "\n", 0755);
      EXPECT_TRUE(Contains(RunProgram({script}).out, token_)) << "NO-CONTROL " << named;
      const RunResult result = Run({script}, mounted);
      if (place == versions) {
        EXPECT_TRUE(Contains(result.out, token_)) << named << result.Describe();
      } else {
        ExpectRefused(result, named == link ? "policy.runtime.link" : "policy.runtime.foreign");
      }
    }
  }
}

// After env the first line may hold a path. Put behind a directory of PATH it would lead to any program of the caller, and to
// all that comes with it.
TEST_P(BroughtIn, APathForEnvIsNotLookedUpOnPath) {
  // As root the process level takes no mounts: there the script comes in alone.
  const Strings mounted = container() || !IsRoot() ? Strings{"--ro", project_.string()} : Strings{};
  const fs::path other = home_ / "other/venv";
  fs::create_directories(other / "bin");
  fs::create_symlink("/usr/bin/python3", other / "bin/python3");
  const std::string python =
      RunProgram({"/usr/bin/python3", "-c",
                  "import sys; print('python%d.%d' % sys.version_info[:2], end='')"})
          .out;
  fs::create_directories(other / "lib" / python / "site-packages");
  dir_.Write("home/other/venv/pyvenv.cfg", "home = /usr/bin\n");
  dir_.Write("home/other/venv/lib/" + python + "/site-packages/mine.py", "secret = 1\n");
  const auto shows_it = [&](const std::string& line) {
    const std::string script = dir_.Write("proj/bin/named", line + "\nprint('ran')\n", 0755);
    const RunResult result = Run({script}, mounted);
    bool shown = false;
    for (const Json& entry : result.receipt["files"]["bound"]) {
      shown = shown || Contains(entry["path"].get<std::string>(), other.string());
    }
    return shown;
  };
  // The control: the caller's PATH names it.
  options_.environment = {
      {"HOME=" + home_.string(), "PATH=" + (other / "bin").string() + ":/usr/bin:/bin"}};
  EXPECT_TRUE(shows_it("#!/usr/bin/env python3")) << "NO-CONTROL";
  options_.environment = {{"HOME=" + home_.string(), "PATH=/usr/bin:/bin"}};
  const std::string path = "../../../../../../../.." + (other / "bin/python3").string();
  EXPECT_FALSE(shows_it("#!/usr/bin/env " + path));
  EXPECT_FALSE(shows_it("#!/usr/bin/env -S " + path + " -B"));
  // Nor behind the shims of a version manager.
  fs::create_directories(home_ / "manager/shims");
  fs::create_directories(home_ / "manager/versions/1/bin");
  dir_.Write("home/manager/version", "1\n");
  options_.environment = {
      {"HOME=" + home_.string(), "PATH=" + (home_ / "manager/shims").string() + ":/usr/bin"}};
  EXPECT_FALSE(shows_it("#!/usr/bin/env ../../../../other/venv/bin/python3"));
}

class VirtualEnvironment : public BroughtIn {
 protected:
  VirtualEnvironment() {
    packages_ = project_ / "venv/lib" / PythonName() / "site-packages";
    fs::create_directories(packages_);
    fs::create_directories(project_ / "venv/bin");
    fs::create_symlink("/usr/bin/python3", project_ / "venv/bin/python3");
    dir_.Write("proj/venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n");
    std::ofstream(packages_ / "mine.py") << "value = 'my own package'\n";
  }
  static std::string PythonName() {
    return RunProgram({"/usr/bin/python3", "-c",
                       "import sys; print('python%d.%d' % sys.version_info[:2], end='')"})
        .out;
  }
  RunResult RunPython() {
    return Run({(project_ / "venv/bin/python3").string(), "-c",
                "import os, sys\n"
                "try:\n  import mine; print(mine.value)\n"
                "except ImportError: print('no package')\n"
                "for d in ('" +
                    packages_.string() + "', '" + SecretDirectory() +
                    "'):\n"
                    "  try: print(d, 'holds', *os.listdir(d))\n"
                    "  except OSError as e: print(e)\n"
                    "try: print(open('" +
                    (packages_ / "key").string() +
                    "').read())\n"
                    "except OSError as e: print(e)\n"});
  }
  fs::path packages_;
};

TEST_P(VirtualEnvironment, ItsPackagesComeWithIt) {
  NothingIsAttacked("the honest project, which the attacks below turn against its caller");
  const RunResult result = RunPython();
  EXPECT_TRUE(Contains(result.out, "my own package")) << result.Describe();
  ExpectNothing(result);
}

TEST_P(VirtualEnvironment, PackagesThatBecameALinkAreRefused) {
  ASSERT_TRUE(Contains(RunPython().out, "my own package"));
  ReplaceByLink(packages_, home_ / "secrets");
  EXPECT_TRUE(Contains(RunProgram({"cat", (packages_ / "key").string()}).out, token_))
      << "NO-CONTROL";
  ExpectRefused(RunPython(), "policy.runtime.link");
  // The whole home directory, the root, a directory above on the way, and the configuration file itself.
  fs::remove(packages_);
  fs::create_symlink("/", packages_);
  ExpectRefused(RunPython(), "policy.runtime.link");
  fs::remove(packages_);
  fs::create_directory(packages_);
  fs::remove(project_ / "venv/pyvenv.cfg");
  fs::create_symlink(SecretFile(), project_ / "venv/pyvenv.cfg");
  ExpectRefused(RunPython(), "policy.runtime.link");
}

TEST_P(VirtualEnvironment, SocketsOfTheHostStayOutOfReachBesideThem) {
  const std::string path = packages_ / "agent.sock";
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(listener, 4), 0);
  const std::string code = "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('" + path +
                           "')\nprint('connected')\n";
  EXPECT_TRUE(Contains(RunProgram({"python3", "-c", code}).out, "connected")) << "NO-CONTROL";
  const RunResult result = Run({(project_ / "venv/bin/python3").string(), "-c", code});
  ExpectRan(result);
  EXPECT_FALSE(Contains(result.out, "connected")) << result.Describe();
  EXPECT_EQ(result.exit, 1) << "Python ends with an exception\n" << result.Describe();
  ::close(listener);
}

TEST_P(BroughtIn, APerlBesideALinkedLibraryIsRefused) {
  fs::copy_file("/usr/bin/perl", project_ / "bin/perl");
  fs::create_directories(project_ / "share/perl");
  const Strings command = {(project_ / "bin/perl").string(), "-e",
                           "opendir(D, $ARGV[0]); print \"holds \", join(' ', readdir(D)), \"\\n\"",
                           (project_ / "share/perl").string()};
  const RunResult honest = Run(command);
  EXPECT_EQ(honest.exit, 0) << honest.Describe();
  ReplaceByLink(project_ / "share/perl", home_ / "secrets");
  EXPECT_TRUE(Contains(RunProgram(command).out, "key")) << "NO-CONTROL";
  ExpectRefused(Run(command), "policy.runtime.link");
  const std::string script = dir_.Write("proj/script", "#!" + command[0] + "\nprint 1;\n", 0755);
  ExpectRefused(Run({script}), "policy.runtime.link");
}

// A payload could write `work/bin` and nothing else: the rest of `work` is not the program's own.
TEST_P(BroughtIn, ALinkInABinDoesNotSpeakForWhatIsBesideIt) {
  fs::create_directories(project_ / "work/bin/.x/bin");
  fs::create_directories(project_ / "work/bin/.x/share");
  dir_.Write("proj/work/key", token_);
  fs::copy_file("/usr/bin/perl", project_ / "work/bin/.x/bin/perl");
  fs::create_symlink(".x/bin/perl", project_ / "work/bin/tool");
  const Strings command = {(project_ / "work/bin/tool").string(), "-e", "print <>;",
                           (project_ / "work/key").string()};
  EXPECT_TRUE(Contains(RunProgram(command).out, token_)) << "NO-CONTROL";
  ExpectNothing(Run(command));
  for (const char* const target : {"../../..", "../..", "/", "/opt", "/usr"}) {
    fs::remove(project_ / "work/bin/.x/share/perl5");
    fs::create_directory_symlink(target, project_ / "work/bin/.x/share/perl5");
    SCOPED_TRACE(target);
    ExpectRefused(Run(command), "policy.runtime.link");
  }
}

// Where a file below /tmp is shown, whose own place inside is private.
std::string Moved(const std::string& path) { return "/run/command" + path; }

// A payload could write `app/bin` and nothing else. A file there that is called like a program of a known runtime speaks for
// nothing of what is beside it, whatever a recipe for such a program would bring in.
TEST_P(BroughtIn, ANameInABinBringsInNoDataBesideIt) {
  fs::create_directories(project_ / "app/bin");
  fs::create_directories(project_ / "app/conf");
  fs::create_directories(project_ / "app/lib/python3.11");
  const std::string secret = dir_.Write("proj/app/conf/.env", token_);
  const std::string package = dir_.Write("proj/app/lib/python3.11/key", token_);
  for (const char* const name :
       {"java", "python3", "python3.11", "python3.", "perl", "node", "nodejs", "git", "pandoc",
        "npm", "npx", "busybox", "bash", "sh", "dash"}) {
    SCOPED_TRACE(name);
    const std::string program = (project_ / "app/bin" / name).string();
    fs::copy_file("/bin/cat", program);
    for (const std::string& file : {secret, package}) {
      const auto script = [&](const std::string& named) {
        return dir_.Write("proj/app/bin/tool", "#!" + program + " " + named + "\n", 0755);
      };
      EXPECT_TRUE(Contains(RunProgram({script(file)}).out, token_)) << "NO-CONTROL";
      ExpectNothing(Run({script(file)}));
      ExpectNothing(Run({script(Moved(file))}));
    }
    // The caller names the program itself, and it the file.
    EXPECT_TRUE(Contains(RunProgram({program, secret}).out, token_)) << "NO-CONTROL";
    ExpectNothing(Run({program, secret, Moved(secret)}));
    // By the name of a link.
    fs::rename(program, project_ / "app/bin/.program");
    fs::create_symlink(".program", program);
    EXPECT_TRUE(Contains(RunProgram({program, secret}).out, token_)) << "NO-CONTROL";
    ExpectNothing(Run({program, secret, Moved(secret)}));
    fs::remove(program);
  }
  // What is not called like an interpreter runs, and finds the file no more than the others.
  const std::string program = (project_ / "app/bin/other").string();
  fs::copy_file("/bin/cat", program);
  const RunResult other = Run({program, secret, Moved(secret)});
  ExpectRan(other);
  ExpectNothing(other);
}

class JavaHome : public BroughtIn {
 protected:
  // What a home is known by, with cat for its program: it shows what can be read of the home.
  void MakeHome(const std::string& home) {
    for (const char* const part : {"bin", "lib", "conf"}) {
      dir_.MakeDir(home + "/" + part);
    }
    dir_.Write(home + "/release", "JAVA_VERSION=\"99\"\n");
    dir_.Write(home + "/lib/modules", "modules\n");
    dir_.Write(home + "/conf/net.properties", "java=mine\n");
    dir_.Write(home + "/.env", token_);
    fs::copy_file("/bin/cat", fs::path(dir_ / home) / "bin/java");
  }
};

TEST_P(JavaHome, OfAHomeTheDirectoriesOfJavaAreShown) {
  MakeHome("home/jdk");
  const std::string home = home_ / "jdk";
  const std::string config = home + "/conf/net.properties";
  const std::string secret = home + "/.env";
  const Strings command = {home + "/bin/java", config, Moved(config), secret, Moved(secret)};
  EXPECT_TRUE(Contains(RunProgram(command).out, token_)) << "NO-CONTROL";
  const RunResult result = Run(command);
  EXPECT_TRUE(Contains(result.out, "java=mine")) << result.Describe();
  ExpectNothing(result);
}

// Without one of these the directory is no home. A link does not make it one, nor is one followed out of it.
TEST_P(JavaHome, WhatALinkMakesAHomeIsNone) {
  MakeHome("proj/app");
  const std::string app = project_ / "app";
  const std::string config = app + "/conf/net.properties";
  const Strings command = {app + "/bin/java", config, Moved(config), app + "/.env",
                           Moved(app + "/.env")};
  for (const char* const mark : {"release", "lib/modules"}) {
    SCOPED_TRACE(mark);
    const std::string file = app + "/" + mark;
    EXPECT_TRUE(Contains(Run(command).out, "java=mine")) << "NO-CONTROL";
    ReplaceByLink(file, file + ".away");
    for (const bool link : {true, false}) {
      const RunResult result = Run(command);
      EXPECT_TRUE(Contains(result.err, "no Java home")) << link << result.Describe();
      EXPECT_EQ(result.out, "") << result.Describe();
      fs::remove(file);
    }
    fs::rename(file + ".away", file);
  }
  // One that lies in the bin and leads out of it.
  const std::string planted = app + "/bin/jdk";
  MakeHome("proj/app/bin/jdk");
  const Strings other = {planted + "/bin/java", planted + "/conf/key",
                         Moved(planted + "/conf/key")};
  dir_.Write("proj/app/secrets/key", token_);
  ReplaceByLink(planted + "/conf", app + "/secrets");
  EXPECT_TRUE(Contains(RunProgram(other).out, token_)) << "NO-CONTROL";
  ExpectRefused(Run(other), "policy.runtime.link");
}

// A real one in a directory of the caller's.
TEST_P(JavaHome, AnOwnJavaRuns) {
  NothingIsAttacked("the honest home, which the attacks above imitate");
  if (!container() || !fs::exists("/usr/bin/jlink")) {
    return;
  }
  const std::string home = home_ / "jdk";
  const RunResult made = RunProgram(
      {"/usr/bin/jlink", "--add-modules", "java.base", "--strip-debug", "--output", home});
  ASSERT_EQ(made.exit, 0) << made.Describe();
  const RunResult result = Run({home + "/bin/java", "-Xmx64m", "-version"});
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_TRUE(Contains(result.err, "Runtime Environment")) << result.Describe();
}

// The directories of the system are shown where a recipe names them, not where a link leads to them.
TEST_P(VirtualEnvironment, PackagesThatLeadIntoTheSystemAreRefused) {
  ASSERT_TRUE(Contains(RunPython().out, "my own package"));
  for (const char* const target : {"/usr", "/usr/share", "/usr/lib"}) {
    fs::remove_all(packages_);
    fs::create_directory_symlink(target, packages_);
    SCOPED_TRACE(target);
    EXPECT_FALSE(fs::is_empty(packages_)) << "NO-CONTROL";
    ExpectRefused(RunPython(), "policy.runtime.link");
  }
}

// A script, a program or a data file behind a link of the project is what the link's maker chose, also inside the project.
TEST_P(BroughtIn, LinksInsideAProjectLeadToNoScriptAndNoDataFile) {
  dir_.Write("proj/key.py", "print('" + token_ + "')\n", 0755);
  dir_.Write("proj/key.sh", "#!/bin/sh\necho " + token_ + "\n", 0755);
  fs::create_symlink("key.py", project_ / "report.py");
  fs::create_symlink("../key.sh", project_ / "bin/report");
  EXPECT_TRUE(Contains(RunProgram({(project_ / "bin/report").string()}).out, token_))
      << "NO-CONTROL";
  ExpectRefused(Run({(project_ / "bin/report").string()}), "policy.runtime.link");
  ExpectRefused(
      RunProgram({CofferPath(), "run", "--level", level(), project_ / "report.py"}, options_),
      "policy.runtime.link");
  // A program of the project by another name is fine.
  fs::copy_file("/usr/bin/echo", project_ / "bin/plain");
  fs::create_symlink("plain", project_ / "bin/alias");
  const RunResult alias = Run({(project_ / "bin/alias").string(), "fine"});
  EXPECT_EQ(alias.out, "fine\n") << alias.Describe();
}

TEST_P(BroughtIn, AHomeIsTooBroadAlsoWithoutItsVariable) {
  if (!IsRoot()) {
    GTEST_SKIP() << "only root's home is known to be in /etc/passwd here";
  }
  EXPECT_TRUE(fs::exists("/root")) << "NO-CONTROL";
  options_.environment = {{"PATH=/usr/bin:/bin"}};
  for (const char* const flag : {"--ro", "--rw"}) {
    const RunResult result = Run({"true"}, {flag, "/root"});
    EXPECT_EQ(result.exit, 120) << result.Describe();
  }
}

// Files of the kernel are not read to find out what they are: reading some of them takes from the host.
TEST_P(BroughtIn, AFileOfTheKernelIsNotReadAsALibrary) {
  for (const char* const named : {"/proc/kmsg", "/proc/self/mem", "/sys/kernel/notes"}) {
    fs::remove(project_ / "lib/libown.so");
    fs::create_symlink(named, project_ / "lib/libown.so");
    SCOPED_TRACE(named);
    EXPECT_TRUE(fs::is_symlink(project_ / "lib/libown.so")) << "NO-CONTROL";
    const RunResult result = RunTool();
    ExpectRefused(result, "policy.runtime.library.missing", kExitNotExecutable);
    EXPECT_TRUE(Contains(result.err, "libown.so")) << result.Describe();
  }
}

TEST_P(BroughtIn, ADeclaredToolchainMayBeNamedAndIsNeverWritable) {
  const fs::path toolchain = home_ / "toolchain";
  fs::create_directories(toolchain / "lib");
  fs::rename(project_ / "lib/libown.so", toolchain / "lib/libown.so");
  fs::create_symlink(toolchain / "lib/libown.so", project_ / "lib/libown.so");
  EXPECT_TRUE(Contains(RunProgram({tool_}).out, "own library"))
      << "NO-CONTROL: the loader takes it";
  ExpectRefused(RunTool(), "policy.runtime.link");
  fs::create_directories(home_ / ".config/coffer");
  dir_.Write("home/.config/coffer/run.toml", "toolchains = [\"~/toolchain\"]\n");
  const RunResult declared = RunTool();
  EXPECT_TRUE(Contains(declared.out, "own library")) << declared.Describe();
  ExpectNothing(declared);
  for (const std::string& directory :
       {toolchain.string(), (toolchain / "lib").string(), (home_ / ".config/coffer").string()}) {
    const RunResult result = Run({"true"}, {"--rw", directory});
    EXPECT_EQ(result.exit, 120) << directory << result.Describe();
  }
  // A configuration that another user can change is refused, and so is one with two meanings.
  fs::permissions(home_ / ".config/coffer/run.toml", fs::perms(0666));
  EXPECT_EQ(RunTool().exit, 120);
  fs::permissions(home_ / ".config/coffer/run.toml", fs::perms(0644));
  dir_.Write("home/.config/coffer/run.toml", "toolchain = [\"~/toolchain\"]\n");
  EXPECT_EQ(RunTool().exit, 120);
}

// What lies where a version manager keeps its interpreters is believed. So no call may write around such a place, not even
// before there is one.
TEST_P(BroughtIn, APlaceOfAVersionManagerIsNotTheCallsToMake) {
  const fs::path manager = home_ / ".nvm";
  for (const fs::path& directory : {manager, home_ / ".local/share", home_ / ".local/opt"}) {
    fs::create_directories(directory);
  }
  for (const char* flag : {"--rw", "--project"}) {
    for (const fs::path& directory : {manager, home_ / ".local/share"}) {
      const RunResult result = Run({"true"}, {flag, directory.string()});
      EXPECT_EQ(result.exit, 120) << "OPEN: " << flag << directory << result.Describe();
    }
  }
  if (container() || !IsRoot()) {
    EXPECT_EQ(Run({"true"}, {"--rw", (home_ / ".local/opt").string()}).exit, 0) << "NO-CONTROL";
  }
  fs::create_directories(manager / "versions/own");
  fs::rename(project_ / "lib/libown.so", manager / "versions/own/libown.so");
  fs::create_symlink(manager / "versions/own/libown.so", project_ / "lib/libown.so");
  EXPECT_TRUE(Contains(RunTool().out, "own library")) << "NO-CONTROL: it is not believed";
}

// The configuration lies behind a link, as those who keep their settings in a repository have it. A call that may write
// to that repository could decide what the next call believes.
TEST_P(BroughtIn, AConfigurationBehindALinkIsNotTheCallsToMake) {
  const fs::path settings = home_ / "settings";
  const fs::path toolchain = home_ / "toolchain";
  fs::create_directories(toolchain / "lib");
  fs::rename(project_ / "lib/libown.so", toolchain / "lib/libown.so");
  fs::create_symlink(toolchain / "lib/libown.so", project_ / "lib/libown.so");
  fs::create_directories(home_ / ".config");
  const auto expect_refused = [&](const char* what) {
    for (const char* flag : {"--rw", "--project"}) {
      const RunResult result = Run({"true"}, {flag, settings.string()});
      EXPECT_EQ(result.exit, 120) << what << flag << result.Describe();
    }
  };
  fs::create_directories(settings);
  if (container() || !IsRoot()) {
    EXPECT_EQ(Run({"true"}, {"--rw", settings.string()}).exit, 0) << "NO-CONTROL";
  }
  fs::create_directory_symlink(settings / "coffer", home_ / ".config/coffer");
  ExpectRefused(RunTool(), "policy.runtime.link");
  expect_refused("a link that leads nowhere yet");
  fs::create_directories(settings / "coffer");
  dir_.Write("home/settings/coffer/run.toml", "toolchains = [\"~/toolchain\"]\n");
  EXPECT_TRUE(Contains(RunTool().out, "own library")) << "NO-CONTROL: it is not believed";
  expect_refused("the directory itself");
  fs::rename(settings / "coffer", home_ / "elsewhere");
  fs::create_directory_symlink(home_ / "elsewhere", settings / "coffer");
  EXPECT_TRUE(Contains(RunTool().out, "own library")) << "NO-CONTROL: it is not believed";
  expect_refused("a link on the way");
}

INSTANTIATE_TEST_SUITE_P(Level, BroughtIn, ::testing::Values("container", "process"),
                         LevelTestName);
INSTANTIATE_TEST_SUITE_P(Level, JavaHome, ::testing::Values("container", "process"), LevelTestName);
INSTANTIATE_TEST_SUITE_P(Level, VirtualEnvironment, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
