// SPDX-License-Identifier: Apache-2.0
//
// Everything that is bound, swapped after it was examined and before it is mounted: by a link to the secret, by another
// file or directory under the same name, by the other kind of the two, and by a link in the place of the directory above.
// The supervisor is held before it clones the first mount, or before it lets init do that. Each test has three controls:
// what is shown without the swap, that the supervisor has examined the name by then (it holds it open, or what it read is
// what the command sees), and that the name leads to the secret afterwards. A session's workspace has a test of its own
// (daemon/session_swap_test.cc).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "base/hash.h"
#include "base/unique_fd.h"
#include "tests/escape/brought_in.h"
#include "tests/support/open_files.h"
#include "tests/support/tracer.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

enum class Way : uint8_t { kLink, kOther, kOtherKind, kLinkAbove };
constexpr const char* kWayNames[] = {"a link", "another under its name", "the other kind",
                                     "a link above"};

// How the supervisor has what it examined: open, as a copy that it made, or only the directory around it.
enum class Kept : uint8_t { kOpen, kCopy, kAround };

std::set<std::string> NamesIn(const fs::path& directory) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    names.insert(entry.path().filename());
  }
  return names;
}

class SwappedAfterTheLook : public BroughtIn {
 protected:
  SwappedAfterTheLook() {
    // As a program or script it prints itself.
    dir_.Write("home/secrets/key", "#!/bin/cat\n" + token_ + "\n", 0755);
    dir_.MakeDir("tmp");
  }

  // Runs `command` and calls `swap` at that moment. The output.
  using Swap = std::function<void(pid_t supervisor)>;
  static void NoSwap(pid_t /*supervisor*/) {}
  std::string RunSwapped(Strings flags, const Strings& command, const Swap& swap) {
    flags.emplace_back("--");
    flags.insert(flags.end(), command.begin(), command.end());
    return RunHeld(flags, swap);
  }
  std::string RunHeld(const Strings& words, const Swap& swap) {
    Strings argv = {"/usr/bin/env",
                    "-i",
                    "HOME=" + home_.string(),
                    "PATH=/usr/bin:/bin",
                    "TMPDIR=" + (dir_ / "tmp"),
                    CofferPath(),
                    "run",
                    "--level",
                    level()};
    argv.insert(argv.end(), words.begin(), words.end());
    bool swapped = false;
    const Traced traced = RunTraced(
        argv, dir_ / "out", dir_ / "err",
        [&](const TracedProcess& caller, const std::map<pid_t, TracedProcess>&) -> pid_t {
          if (!HasExamined(caller)) {
            return 0;
          }
          swapped = true;
          swap(caller.pid);
          return kLetGo;
        },
        Seconds(300));
    EXPECT_TRUE(traced.started) << traced.why;
    EXPECT_TRUE(swapped) << "no boundary was begun: " << Errors();
    EXPECT_FALSE(traced.timed_out);
    return ReadFile(dir_ / "out").value_or("");
  }
  std::string Errors() const { return ReadFile(dir_ / "err").value_or(""); }
  void ExpectNothingIn(const std::string& out) {
    EXPECT_FALSE(Contains(out, mark_)) << out << Errors();
    EXPECT_FALSE(Contains(out, "holds key")) << out;
  }
  // A name of the host inside: what lies below /tmp is shown elsewhere.
  std::string Inside(const fs::path& path) const {
    return (container() ? "/run/command" : "") + path.string();
  }

  // Swaps `path` in each way while `command` is begun, which prints `own` if nothing is swapped, and what it sees of
  // the secret. It may try to write a file "mark" into a directory.
  void ExpectNoSwapShows(const fs::path& path, const Strings& flags, const Strings& command,
                         const std::string& own, Kept kept = Kept::kOpen,
                         std::optional<Way> only = std::nullopt) {
    SCOPED_TRACE(path);
    const std::string honest = RunSwapped(flags, command, NoSwap);
    ASSERT_TRUE(Contains(honest, own)) << "NO-CONTROL: " << honest << Errors();
    ExpectNothingIn(honest);
    for (const Way way : {Way::kLink, Way::kOther, Way::kOtherKind, Way::kLinkAbove}) {
      // The directory of the test itself cannot become a link.
      const bool stays = way == Way::kLinkAbove && path.parent_path() == dir_.path();
      if (stays || (only && *only != way)) {
        continue;
      }
      SCOPED_TRACE(kWayNames[static_cast<size_t>(way)]);
      const fs::path replaced = way == Way::kLinkAbove ? path.parent_path() : path;
      const fs::path away = Beside(replaced, ".away-");
      const fs::path other = MakeOther(way, path);
      const std::set<std::string> secrets = NamesIn(SecretDirectory());
      bool leads = false;
      bool examined = kept != Kept::kOpen;
      const std::string out = RunSwapped(flags, command, [&](pid_t supervisor) {
        examined = examined || HoldsOpen(supervisor, path);
        fs::rename(replaced, away);
        fs::rename(other, replaced);
        leads = Contains(ReadFile(path).value_or(""), mark_) ||
                Contains(ReadFile(path / "key").value_or(""), mark_);
      });
      EXPECT_TRUE(leads) << "NO-CONTROL: the name does not lead to the secret";
      EXPECT_TRUE(examined) << "NO-CONTROL: it was swapped before it was examined";
      EXPECT_TRUE(kept != Kept::kCopy || Contains(out, own))
          << "NO-CONTROL: it was swapped before it was read, or is read again: " << out << Errors();
      ExpectNothingIn(out);
      EXPECT_FALSE(fs::exists(path / "mark")) << "OPEN: written into what took its place";
      EXPECT_EQ(NamesIn(SecretDirectory()), secrets) << "OPEN: something was left there";
      fs::remove_all(replaced);
      fs::rename(away, replaced);
    }
  }

  static fs::path Beside(const fs::path& path, const std::string& prefix) {
    return path.parent_path() / (prefix + path.filename().string());
  }
  // What is to take the place of `path`, or of the directory above it, beside it for now.
  fs::path MakeOther(Way way, const fs::path& path) {
    const bool directory = fs::is_directory(path);
    const fs::path replaced = way == Way::kLinkAbove ? path.parent_path() : path;
    const fs::path other = Beside(replaced, ".other-");
    if (way == Way::kLink) {
      fs::create_symlink(directory ? SecretDirectory() : SecretFile(), other);
    } else if (way == Way::kLinkAbove) {
      const fs::path above = home_ / ("above" + std::to_string(++above_));
      fs::create_directories(above);
      PutSecret(above / path.filename(), directory);
      fs::create_directory_symlink(above, other);
    } else {
      PutSecret(other, directory == (way == Way::kOther));
    }
    return other;
  }
  void PutSecret(const fs::path& path, bool directory) {
    if (directory) {
      fs::copy(SecretDirectory(), path);
    } else {
      fs::copy_file(SecretFile(), path);
    }
  }

  int above_ = 0;
  // As much of the token as fits into the files of programs.
  const std::string mark_ = token_.substr(0, 9);
  const std::string elf_ =
      "says \x7f"
      "ELF";
};

// The secret is a library of the same kind, so that the program would run with it and print what it says.
TEST_P(SwappedAfterTheLook, TheLibrary) {
  const fs::path library = project_ / "lib/libown.so";
  std::string bytes = ReadFile(library).value_or("");
  const size_t at = bytes.find("own library");
  ASSERT_NE(at, std::string::npos);
  dir_.Write("home/secrets/key", bytes.replace(at, mark_.size(), mark_));
  ExpectNoSwapShows(library, {}, {tool_, Inside(library), Inside(library / "key")}, "own library");
  fs::rename(library, project_ / "lib/away");
  fs::copy_file(SecretFile(), library);
  EXPECT_TRUE(Contains(RunProgram({tool_}).out, mark_)) << "NO-CONTROL: the other one is loaded";
}

// At the process level the scratch directory is what the payload may read and write. It is granted by descriptor: what
// stands at its name by then is not.
TEST_P(SwappedAfterTheLook, TheScratchDirectory) {
  if (IsRoot()) {
    GTEST_SKIP() << "root's scratch directory lies in /tmp, where no other user renames it";
  }
  EXPECT_TRUE(Contains(RunProgram({"/bin/cat", SecretFile()}).out, token_)) << "NO-CONTROL";
  const Strings command = {"/bin/sh", "-c",
                           "echo x > own && echo it-ran; cat own " + SecretFile() +
                               " $PWD/key ../key ./key; ls " + SecretDirectory()};
  EXPECT_TRUE(Contains(RunSwapped({}, command, NoSwap), "it-ran")) << "NO-CONTROL";
  int swapped = 0;
  const std::string out = RunSwapped({}, command, [&](pid_t) {
    for (const auto& entry : fs::directory_iterator(dir_ / "tmp")) {
      const std::string name = entry.path().filename();
      if (name.starts_with("coffer-scratch-") && !name.ends_with(".away")) {
        ReplaceByLink(entry.path(), SecretDirectory());
        ++swapped;
        return;
      }
    }
  });
  EXPECT_EQ(swapped, container() ? 0 : 1) << "where the scratch directory is has changed";
  ExpectNothingIn(out);
}

TEST_P(SwappedAfterTheLook, TheProgram) {
  EXPECT_TRUE(Contains(RunProgram({SecretFile()}).out, token_)) << "NO-CONTROL: it prints itself";
  ExpectNoSwapShows(tool_, {}, {tool_, Inside(tool_), Inside(project_ / "bin/key")},
                    Inside(tool_) + " " + elf_);
}

// A copy of the system's loader in the project, which the program names. The secret is one too, with letters where the kernel
// does not look. Not below /tmp: what lies there is shown in another
// place, and the kernel would not find the loader.
TEST_P(SwappedAfterTheLook, AnOwnLoader) {
  const TempDir elsewhere("/var/tmp");
  const fs::path own = elsewhere.path();
  fs::copy(project_, own, fs::copy_options::recursive);
  const fs::path loader = own / "lib/ld.so";
  std::string bytes = ReadFile(tool_).value_or("");
  for (size_t i = 0; i < HeaderCount(bytes); ++i) {
    const Elf64_Phdr entry = ProgramHeader(bytes, i);
    if (entry.p_type == PT_INTERP) {
      fs::copy_file(bytes.substr(entry.p_offset, entry.p_filesz - 1), loader);
      PutProgramHeader(bytes, i, InterpreterEntry(bytes, loader));
    }
  }
  ASSERT_TRUE(fs::exists(loader));
  const std::string tool = elsewhere.Write("bin/tool", bytes, 0755);
  dir_.Write("home/secrets/key",
             ReadFile(loader).value_or("").replace(EI_OSABI, mark_.size(), mark_), 0755);
  ExpectNoSwapShows(loader, {}, {tool, loader, loader / "key"}, loader.string() + " " + elf_);
  fs::rename(loader, own / "lib/away");
  fs::copy_file(SecretFile(), loader);
  EXPECT_TRUE(Contains(RunProgram({tool, loader}).out, mark_)) << "NO-CONTROL: the other one works";
}

TEST_P(SwappedAfterTheLook, ThePackagesOfAVirtualEnvironment) {
  const std::string python =
      RunProgram({"/usr/bin/python3", "-c",
                  "import sys; print('python%d.%d' % sys.version_info[:2], end='')"})
          .out;
  const fs::path packages = project_ / "venv/lib" / python / "site-packages";
  fs::create_directories(packages);
  fs::create_directories(project_ / "venv/bin");
  fs::create_symlink("/usr/bin/python3", project_ / "venv/bin/python3");
  const fs::path config = dir_.Write("proj/venv/pyvenv.cfg", "home = /usr/bin\n");
  std::ofstream(packages / "mine.py") << "value = 'my own package'\n";
  // Also what the import system, the site module and a .pth file would read of a directory there.
  const Strings command = {(project_ / "venv/bin/python3").string(),
                           "-c",
                           "import os, sys\n"
                           "try:\n  import mine; print(mine.value)\n"
                           "except ImportError: pass\n"
                           "for path in sys.argv[1:]:\n"
                           "  try: print(path, 'holds', *os.listdir(path))\n"
                           "  except OSError: pass\n"
                           "  try: print(path, 'says', open(path).read())\n"
                           "  except OSError: pass\n",
                           Inside(packages),
                           Inside(packages / "key"),
                           Inside(config),
                           Inside(config / "key")};
  ExpectNoSwapShows(packages, {}, command, "my own package");
  ExpectNoSwapShows(config, {}, command, "says home = /usr/bin");
}

// Declared in run.toml: a program of the toolchain that a first line names, its library, and a tree that comes with it.
TEST_P(SwappedAfterTheLook, AToolchain) {
  const fs::path toolchain = home_ / "tools/chain";
  const fs::path tree = toolchain / "share/perl";
  fs::create_directories(toolchain / "bin");
  fs::create_directories(tree);
  fs::copy_file(tool_, toolchain / "bin/perl");
  fs::copy(project_ / "lib", toolchain / "lib");
  std::ofstream(tree / "own.pm") << "own module\n";
  dir_.Write("home/.config/coffer/run.toml", "toolchains = [\"~/tools/chain\"]\n");
  const std::string script =
      dir_.Write("proj/named", "#!" + (toolchain / "bin/perl").string() + "\n", 0755);
  const fs::path library = toolchain / "lib/libown.so";
  const fs::path program = toolchain / "bin/perl";
  Strings command = {script};
  for (const fs::path& path : {toolchain / "key", tree, tree / "own.pm", tree / "key", library,
                               library / "key", program, program / "key"}) {
    command.push_back(Inside(path));
  }
  const std::string own_module = Inside(tree / "own.pm") + " says own module";
  ExpectNoSwapShows(toolchain, {}, command, own_module);
  ExpectNoSwapShows(tree, {}, command, own_module);
  ExpectNoSwapShows(library, {}, command, Inside(library) + " " + elf_);
  ExpectNoSwapShows(program, {}, command, Inside(program) + " " + elf_);
}

TEST_P(SwappedAfterTheLook, AScript) {
  const fs::path script = dir_.Write("proj/bin/run.sh", "#!/bin/sh\necho own script\n", 0755);
  ExpectNoSwapShows(script, {}, {script}, "own script");
  // Its own interpreter, which is a script too.
  const fs::path inner = dir_.Write("proj/lib/inner", "#!/bin/sh\necho inner script\n", 0755);
  dir_.Write("proj/bin/run.sh", "#!" + inner.string() + "\n", 0755);
  ExpectNoSwapShows(inner, {}, {script}, "inner script");
  // And a program.
  dir_.Write("proj/run.sh", "#!" + tool_ + "\n", 0755);
  ExpectNoSwapShows(tool_, {}, {(project_ / "run.sh").string(), Inside(tool_)},
                    Inside(tool_) + " " + elf_);
}

// coffer run FILE: the script is read, and copied in.
TEST_P(SwappedAfterTheLook, AScriptThatIsCopiedIn) {
  const fs::path script = dir_.Write("proj/bin/report.sh", "echo own report\ncat \"$0\"\n");
  for (const Way way : {Way::kLink, Way::kOther, Way::kOtherKind, Way::kLinkAbove}) {
    SCOPED_TRACE(kWayNames[static_cast<size_t>(way)]);
    const fs::path replaced = way == Way::kLinkAbove ? script.parent_path() : script;
    const fs::path other = MakeOther(way, script);
    bool leads = false;
    const std::string out = RunHeld({script}, [&](pid_t) {
      fs::rename(replaced, Beside(replaced, ".away-"));
      fs::rename(other, replaced);
      leads =
          Contains(ReadFile(script).value_or("") + ReadFile(script / "key").value_or(""), token_);
    });
    EXPECT_TRUE(leads) << "NO-CONTROL";
    EXPECT_TRUE(Contains(out, "own report")) << "what was read is what runs: " << out << Errors();
    ExpectNothingIn(out);
    fs::remove_all(replaced);
    fs::rename(Beside(replaced, ".away-"), replaced);
  }
}

TEST_P(SwappedAfterTheLook, AnInput) {
  const fs::path file = dir_.Write("proj/data/notes", "own notes");
  ExpectNoSwapShows(file, {"--in", file}, {"/bin/sh", "-c", "cat notes /in/*; ls /in/notes"},
                    "own notes", Kept::kCopy);
}

TEST_P(SwappedAfterTheLook, AMountedFileAndDirectory) {
  if (MountsAreRefused(Flags({"--ro", project_.string()}))) {
    return;
  }
  const fs::path file = dir_.Write("proj/some/notes", "own notes");
  const fs::path directory = dir_.MakeDir("proj/some/data");
  dir_.Write("proj/some/data/own", "own data");
  ExpectNoSwapShows(file, {"--ro", file}, {tool_, file, file / "key"}, "says own notes");
  for (const char* const flag : {"--ro", "--rw"}) {
    const Strings look = {"/bin/sh", "-c",
                          "cd " + directory.string() + " && cat own key; ls; echo x > mark"};
    ExpectNoSwapShows(directory, {flag, directory}, look, "own data");
    // Nothing swapped: then it is written.
    EXPECT_EQ(fs::exists(directory / "mark"), flag == std::string("--rw")) << "NO-CONTROL";
  }
}

TEST_P(SwappedAfterTheLook, TheDirectoryForResults) {
  const fs::path directory = dir_.MakeDir("proj/some/results");
  dir_.Write("proj/some/results/own", "own data");
  const Strings flags = {"--out", directory};
  if (!container()) {
    EXPECT_EQ(Run({"true"}, flags).exit, 120) << "NO-CONTROL: /out is a place of the container's";
    return;
  }
  ExpectNoSwapShows(directory, flags,
                    {"/bin/sh", "-c", "cd /out && cat own key; ls; echo x > mark"}, "own data");
  EXPECT_TRUE(fs::exists(directory / "mark")) << "NO-CONTROL: nothing swapped, then it is written";
}

TEST_P(SwappedAfterTheLook, ADirectoryBehindAnOverlay) {
  const fs::path directory = dir_.MakeDir("proj/some/data");
  dir_.Write("proj/some/data/own", "own data");
  const Strings flags = {"--ro-overlay", "--ro", directory};
  if (const RunResult plain = Run({"true"}, flags); plain.exit != 0) {
    EXPECT_EQ(plain.exit, 120) << plain.Describe();
    EXPECT_FALSE(container() && Contains(ReadFile("/proc/filesystems").value_or(""), "\toverlay\n"))
        << "NO-CONTROL: the kernel has overlays" << plain.Describe();
    return;
  }
  ExpectNoSwapShows(
      directory, flags,
      {"/bin/sh", "-c", "cd " + directory.string() + " && cat own key; ls; echo x > mark"},
      "own data");
}

TEST_P(SwappedAfterTheLook, TheProject) {
  const fs::path work = dir_.MakeDir("home/work/app");
  dir_.Write("home/work/app/own", "own data");
  const Strings flags = {"--project", work};
  if (!container()) {
    EXPECT_EQ(Run({"true"}, flags).exit, 120) << "NO-CONTROL: projects need mounts";
    return;
  }
  const Strings look = {"/bin/sh", "-c", "cat own key; ls; echo x > mark"};
  ExpectNoSwapShows(work, flags, look, "own data");
  // Without the mounts in it that keep names free, which could not be made elsewhere.
  ExpectNoSwapShows(work, {"--project", work, "--keep-planted"}, look, "own data");
  EXPECT_EQ(NamesIn(work), (std::set<std::string>{"own", "mark"}))
      << "what held names free is removed wherever the project is";
}

// What is mounted inside a project's own mount: a protected directory, a protected file, a git directory. Whatever else lies
// in the project is shown anyway, so a link is what can lead out.
TEST_P(SwappedAfterTheLook, WhatIsProtectedInAProject) {
  const std::string root = project_.string();
  if (!container()) {
    EXPECT_EQ(Run({"true"}, {"--project", root}).exit, 120) << "NO-CONTROL: projects need mounts";
    return;
  }
  dir_.Write("home/secrets/settings.json", token_);
  dir_.Write("home/secrets/config", token_);
  for (const char* const name :
       {".vscode/settings.json", ".mcp.json", ".git/config", ".git/HEAD"}) {
    fs::create_directories((project_ / name).parent_path());
    std::ofstream(project_ / name) << "# own settings\n";
  }
  fs::create_directories(project_ / ".git/objects");
  fs::create_directories(project_ / ".git/refs");
  const Strings command = {"/bin/sh", "-c", "cat .vscode/* .mcp.json .git/config .git/key"};
  // The git directory last: under another name it is one that was planted.
  for (const char* const name :
       {".vscode", ".mcp.json", ".vscode/settings.json", ".git/config", ".git"}) {
    const bool in_another = name == std::string(".vscode/settings.json");
    ExpectNoSwapShows(project_ / name, {"--project", root}, command,
                      "# own settings\n# own settings\n# own settings\n",
                      in_another ? Kept::kAround : Kept::kOpen, Way::kLink);
  }
}

TEST_P(SwappedAfterTheLook, ACacheOfAProject) {
  const Strings flags = {"--project", project_.string(), "--cache", "pip"};
  if (!container()) {
    EXPECT_EQ(Run({"true"}, flags).exit, 120) << "NO-CONTROL: projects need mounts";
    return;
  }
  const fs::path cache = (IsRoot() ? fs::path("/var/cache") : home_ / ".cache") /
                         "coffer/projects" / HashOf(project_.string()).substr(7, 24) / "pip";
  RunSwapped(flags, {"/bin/sh", "-c", "echo kept > $PIP_CACHE_DIR/own"}, NoSwap);
  ASSERT_TRUE(fs::exists(cache / "own")) << cache;
  ExpectNoSwapShows(cache, flags,
                    {"/bin/sh", "-c", "cd $PIP_CACHE_DIR && cat own key; ls; echo x > mark"},
                    "kept");
  EXPECT_TRUE(fs::exists(cache / "mark")) << "NO-CONTROL: nothing swapped, then it is written";
  if (IsRoot()) {
    RunProgram({CofferPath(), "cache", "clear", "--project", project_.string()});
  }
}

TEST_P(SwappedAfterTheLook, TheRepositoryOfAWorktree) {
  const Strings flags = {"--project", project_.string()};
  if (!container()) {
    EXPECT_EQ(Run({"true"}, flags).exit, 120) << "NO-CONTROL: projects need mounts";
    return;
  }
  const fs::path git = dir_ / "repository/.git";
  const fs::path record = git / "worktrees/tree";
  for (const fs::path& directory : {record, git / "objects", git / "refs"}) {
    fs::create_directories(directory);
  }
  dir_.Write("repository/.git/HEAD", "ref: refs/heads/main\n");
  dir_.Write("repository/.git/config", "# own settings\n");
  dir_.Write("repository/.git/worktrees/tree/HEAD", "ref: refs/heads/tree\n");
  dir_.Write("repository/.git/worktrees/tree/commondir", "../..\n");
  dir_.Write("repository/.git/worktrees/tree/gitdir", (project_ / ".git").string() + "\n");
  dir_.Write("proj/.git", "gitdir: " + record.string() + "\n");
  const Strings look = {"/bin/sh", "-c",
                        "cd " + git.string() + " && cat config key; ls; echo x > mark"};
  ExpectNoSwapShows(git, flags, look, "own settings");
  EXPECT_TRUE(fs::exists(git / "mark")) << "NO-CONTROL: nothing swapped, then it is written";
  fs::remove(git / "mark");
  ExpectNoSwapShows(git / "config", flags, look, "own settings", Kept::kOpen, Way::kLink);
  ExpectNoSwapShows(record, flags, look, "own settings", Kept::kOpen, Way::kLink);
}

// Files that decide and are not bound: they are read once, and what stands there later decides nothing.
TEST_P(SwappedAfterTheLook, AConfiguration) {
  const fs::path toolchain = home_ / "toolchain";
  fs::create_directories(toolchain / "lib");
  fs::rename(project_ / "lib/libown.so", toolchain / "lib/libown.so");
  fs::create_symlink(toolchain / "lib/libown.so", project_ / "lib/libown.so");
  const fs::path config =
      dir_.Write("home/.config/coffer/run.toml", "[profile.mine]\nwall = \"50s\"\n");
  dir_.Write("home/.config/coffer/wider.toml",
             "toolchains = [\"~/toolchain\"]\n[profile.mine]\nro = \"~/secrets\"\n");
  const Strings command = {"/bin/sh", "-c", "echo it-ran; cat " + SecretFile()};
  const auto swap = [&](pid_t) { fs::rename(home_ / ".config/coffer/wider.toml", config); };
  const std::string out = RunSwapped({"--profile", "mine"}, command, swap);
  EXPECT_TRUE(Contains(out, "it-ran")) << out << Errors();
  ExpectNothingIn(out);
  if (container() || !IsRoot()) {
    EXPECT_TRUE(Contains(RunSwapped({"--profile", "mine"}, command, NoSwap), token_))
        << "NO-CONTROL: the next call shows what it says now";
  }
  EXPECT_TRUE(Contains(RunTool().out, "own library")) << "NO-CONTROL: so are its toolchains";
}

// A project's own file names what is read-only in it.
TEST_P(SwappedAfterTheLook, TheFileOfAProject) {
  const Strings flags = {"--project", project_.string()};
  if (!container()) {
    EXPECT_EQ(Run({"true"}, flags).exit, 120) << "NO-CONTROL: projects need mounts";
    return;
  }
  const fs::path file = dir_.Write("proj/.coffer.toml", "read_only = [\"infra\"]\n");
  dir_.MakeDir("proj/infra");
  dir_.Write("proj/wider.toml", "wall = \"50s\"\n");
  const Strings command = {"/bin/sh", "-c", "echo it-ran; echo x > infra/mark"};
  RunSwapped(flags, command, [&](pid_t) { fs::rename(project_ / "wider.toml", file); });
  EXPECT_FALSE(fs::exists(project_ / "infra/mark")) << "OPEN";
  RunSwapped(flags, command, NoSwap);
  EXPECT_TRUE(fs::exists(project_ / "infra/mark")) << "NO-CONTROL: the next call may write there";
}

// The same without a hold: a neighbour who swaps, as fast as it can, what the calls bind for a link to the secret and back.
// The kinds take turns. COFFER_RACE_TRIES sets the number of calls in all; `make nightly` makes 2,000.
TEST_P(SwappedAfterTheLook, ANeighbourWhoSwapsAllTheTimeGetsNothing) {
  const char* const given = ::getenv("COFFER_RACE_TRIES");
  const int tries = given == nullptr ? 30 : ::atoi(given);
  ASSERT_GT(tries, 0);
  // A link that the caller names is followed for reading, but not into a hidden directory.
  fs::create_directories(home_ / ".hidden");
  dir_.Write("home/.hidden/key", token_);
  const fs::path library = project_ / "lib/libown.so";
  const fs::path file = dir_.Write("proj/notes", "own notes");
  const fs::path directory = dir_.MakeDir("proj/data");
  const fs::path tree = project_ / "share/perl";
  fs::create_directories(tree);
  fs::copy_file(tool_, project_ / "bin/perl");
  const std::string perl = project_ / "bin/perl";
  struct Kind {
    const char* what;
    fs::path path;
    Strings flags;
    Strings command;
  };
  std::vector<Kind> kinds = {
      {"program", tool_, {}, {tool_, Inside(tool_)}},
      {"library", library, {}, {tool_, Inside(library)}},
      {"runtime tree", tree, {}, {perl, Inside(tree), Inside(tree / "key")}},
      {"input", file, {"--in", file}, {"/bin/cat", "notes"}},
  };
  if (container() || !IsRoot()) {
    kinds.push_back({"mounted file", file, {"--ro", file}, {tool_, file}});
    kinds.push_back({"mounted directory",
                     directory,
                     {"--ro", directory},
                     {tool_, directory, directory / "key"}});
  }
  const int turns = (tries + static_cast<int>(kinds.size()) - 1) / static_cast<int>(kinds.size());
  for (const Kind& kind : kinds) {
    SCOPED_TRACE(kind.what);
    const fs::path link = kind.path.string() + ".link";
    fs::create_symlink(fs::is_directory(kind.path) ? home_ / ".hidden" : home_ / ".hidden/key",
                       link);
    std::atomic<bool> done{false};
    std::atomic<long> swaps{0};
    std::thread neighbour([&] {
      while (!done) {
        swaps +=
            ::renameat2(AT_FDCWD, kind.path.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE) == 0;
      }
    });
    const auto leads_to_secret = [&] {
      return Contains(ReadFile(kind.path).value_or(""), token_) ||
             Contains(ReadFile(kind.path / "key").value_or(""), token_);
    };
    EXPECT_TRUE(WaitUntil(leads_to_secret)) << "NO-CONTROL: the link is never there";
    EXPECT_TRUE(WaitUntil([&] { return !leads_to_secret(); })) << "NO-CONTROL: it always is";
    const long before = swaps;
    int ran = 0;
    for (int i = 0; i < turns; ++i) {
      const RunResult result = Run(kind.command, kind.flags);
      ran += result.exit == 0 ? 1 : 0;
      ExpectNothing(result);
    }
    EXPECT_GT(swaps - before, turns) << "NO-CONTROL: it did not swap while the calls ran";
    done = true;
    neighbour.join();
    if (fs::is_symlink(kind.path)) {
      fs::rename(kind.path, link.string() + ".away");
      fs::rename(link, kind.path);
    }
    const RunResult after = Run(kind.command, kind.flags);
    ExpectRan(after);
    ExpectNothing(after);
    fs::remove(link.string() + ".away");
    fs::remove(link);
    RecordProperty(kind.what, ran);
  }
}

INSTANTIATE_TEST_SUITE_P(Level, SwappedAfterTheLook, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
