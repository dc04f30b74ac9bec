// SPDX-License-Identifier: Apache-2.0
//
// A neighbour on the host who renames directories of a project while its protective mounts are attached, and renames them
// back afterwards. The mount would lie over another directory, and the payload could write to the one that the host runs.
// Init is held before it enters the new root, when all sources are open and none is attached in the project, and again
// after it attached them. The controls: renaming and renaming back before that changes nothing, so the call runs and is
// held off; the names do lead elsewhere while init attaches; and without a project the same script writes.
// unit/isolation/child/root_test.cc has the control that a mount which does not compare leaves the directory open.
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "tests/escape/brought_in.h"
#include "tests/support/tracer.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

class MovedMounts : public BroughtIn {
 protected:
  MovedMounts() {
    dir_.MakeDir("tmp");
    for (const char* const name : {".git/objects", ".git/refs", ".git/hooks", ".git/harmless", "l",
                                   "deep/a/.vscode", "deep/b/.vscode", "harmless/hooks"}) {
      fs::create_directories(project_ / name);
    }
    dir_.Write("proj/.git/HEAD", "ref: refs/heads/main\n");
    dir_.Write("proj/.git/config", "[core]\n\trepositoryformatversion = 0\n");
    dir_.Write("proj/.git/notes", "");
    dir_.Write("proj/deep/a/.vscode/settings.json", "{}");
    dir_.Write("proj/deep/b/.vscode/settings.json", "{}");
    fs::create_symlink("l", project_ / ".claude");
    fs::create_symlink("l", project_ / "link");
  }

  struct Held {
    int swaps = 0;
    int exit = -1;
    std::string out;
    std::string err;
  };
  // Runs `script` in the project. `before` is called when the sources are open, `after` when they are attached.
  Held Run(const std::string& script, const std::function<void()>& before,
           const std::function<void()>& after, Strings flags = {}) {
    if (flags.empty()) {
      flags = {"--project", project_};
    }
    Strings argv = {"/usr/bin/env",
                    "-i",
                    "HOME=" + home_.string(),
                    "PATH=/usr/bin:/bin",
                    "TMPDIR=" + (dir_ / "tmp"),
                    CofferPath(),
                    "run",
                    "--level",
                    level()};
    argv.insert(argv.end(), flags.begin(), flags.end());
    argv.insert(argv.end(), {"--", "/bin/sh", "-c", script});
    Held held;
    const Traced traced = RunTraced(
        argv, dir_ / "out", dir_ / "err",
        [&](const TracedProcess& caller, const std::map<pid_t, TracedProcess>&) -> pid_t {
          if (caller.depth == 1 && caller.number == SYS_pivot_root && held.swaps == 0) {
            ++held.swaps;
            before();
          } else if (caller.depth == 1 && caller.number == SYS_sethostname) {
            after();
            return kLetGo;
          }
          return 0;
        },
        Seconds(300));
    EXPECT_TRUE(traced.started) << traced.why;
    EXPECT_FALSE(traced.timed_out);
    EXPECT_EQ(held.swaps, 1) << "NO-CONTROL: no root was entered";
    held.exit = traced.exit;
    held.out = ReadFile(dir_ / "out").value_or("");
    held.err = ReadFile(dir_ / "err").value_or("");
    return held;
  }
  void Exchange(const std::string& a, const std::string& b) {
    EXPECT_EQ(::renameat2(AT_FDCWD, (project_ / a).c_str(), AT_FDCWD, (project_ / b).c_str(),
                          RENAME_EXCHANGE),
              0)
        << a << " " << b;
  }
  // Exchanges `name` and `other` while the mounts are attached; `script` then writes "evil" to `file`.
  void ExpectHeld(const std::string& name, const std::string& other, const std::string& script,
                  const std::string& file) {
    SCOPED_TRACE(name);
    const auto planted = [&] {
      return Contains(ReadFile(project_ / file).value_or(""), "evil") ||
             (fs::is_symlink(project_ / file) && fs::read_symlink(project_ / file) == "evil");
    };
    const auto identity = [&](const std::string& path) {
      struct stat info{};
      EXPECT_EQ(::lstat((project_ / path).c_str(), &info), 0) << path;
      return info.st_ino;
    };
    const auto exchange = [&] { Exchange(name, other); };
    const ino_t own = identity(name);
    const Held back = Run(
        script + "; echo ran",
        [&] {
          exchange();
          exchange();
        },
        [] {});
    EXPECT_TRUE(Contains(back.out, "ran")) << "NO-CONTROL: " << back.err;
    EXPECT_FALSE(planted()) << "OPEN";

    ino_t other_then = 0;
    const Held held = Run(
        script + "; echo ran",
        [&] {
          exchange();
          other_then = identity(other);
        },
        exchange);
    EXPECT_EQ(other_then, own) << "NO-CONTROL: it was not renamed";
    EXPECT_FALSE(planted()) << "OPEN: " << held.out << held.err;
    EXPECT_FALSE(Contains(held.out, "ran")) << held.out;
    EXPECT_EQ(held.exit, 120) << held.err;
    EXPECT_TRUE(Contains(held.err, "policy.path.moved")) << held.err;
    EXPECT_TRUE(Contains(held.err, (project_ / name).string())) << held.err;
    EXPECT_TRUE(Contains(held.err, "try again")) << held.err;
    if (identity(name) != own) {
      exchange();
    }

    // Of the attack as such: in a plain mount the script writes.
    const RunResult plain = RunCoffer(
        {"--level", level(), "--rw", project_, "--runtime", "host-usr", "--cwd", project_},
        {"/bin/sh", "-c", script}, options_);
    EXPECT_TRUE(planted()) << "NO-CONTROL: " << plain.Describe();
    fs::remove(project_ / file);
  }
};

TEST_P(MovedMounts, LieOverWhatWasExaminedOrNothingRuns) {
  if (!container()) {
    EXPECT_EQ(RunCoffer({"--level", level(), "--project", project_}, {"true"}, options_).exit, 120)
        << "NO-CONTROL: projects need mounts";
    return;
  }
  ExpectHeld(".git/hooks", ".git/harmless", "echo evil > .git/hooks/x", ".git/hooks/x");
  ExpectHeld(".git", "harmless", "echo evil > .git/hooks/y", ".git/hooks/y");
  ExpectHeld("deep/a/.vscode", "deep/b/.vscode", "echo evil > deep/a/.vscode/x",
             "deep/a/.vscode/x");
  // A link, and a file: exchanged for others of their kind, and for directories.
  const std::string link = "ln -sfn evil .claude";
  ExpectHeld(".claude", "link", link, ".claude");
  fs::create_symlink("l", project_ / ".claude");
  ExpectHeld(".claude", "harmless", link, ".claude");
  fs::create_symlink("l", project_ / ".claude");
  const std::string config = "echo evil >> .git/config";
  const fs::path kept = dir_.Write("config", ReadFile(project_ / ".git/config").value_or(""));
  ExpectHeld(".git/config", ".git/notes", config, ".git/config");
  fs::copy_file(kept, project_ / ".git/config");
  ExpectHeld(".git/config", ".git/harmless", config, ".git/config");
}

// Gone, with nothing in its place. Nothing is made there, and what another program puts there is not set aside.
TEST_P(MovedMounts, ARefusedCallLeavesTheProjectAsItIs) {
  if (!container()) {
    return;
  }
  const auto names = [&] {
    std::set<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(project_)) {
      all.insert(entry.path());
    }
    return all;
  };
  const std::set<std::string> before = names();
  EXPECT_TRUE(Contains(Run("echo ran", [] {}, [] {}).out, "ran")) << "NO-CONTROL";
  const Held planted = Run("echo ran", [&] { Exchange("deep/a/.vscode", "deep/b"); }, [] {});
  EXPECT_EQ(planted.exit, 120) << planted.out << planted.err;
  EXPECT_TRUE(fs::exists(project_ / "deep/a/.vscode/.vscode")) << planted.err;
  Exchange("deep/a/.vscode", "deep/b");
  EXPECT_EQ(names(), before);
  for (const char* const name : {".git/config", ".git/hooks", ".claude"}) {
    SCOPED_TRACE(name);
    const fs::path away = dir_ / "away";
    const Held held = Run("echo ran", [&] { fs::rename(project_ / name, away); }, [] {});
    EXPECT_EQ(held.exit, 120) << held.out << held.err;
    EXPECT_TRUE(Contains(held.err, "policy.path.moved")) << held.err;
    EXPECT_FALSE(fs::exists(fs::symlink_status(project_ / name))) << "made on the host";
    fs::rename(away, project_ / name);
  }
}

// The project itself, and a directory on the way to it, in what is shown around it.
TEST_P(MovedMounts, AProjectInADirectoryThatIsShown) {
  if (!container()) {
    return;
  }
  const fs::path outer = project_ / "deep";
  const fs::path inner = outer / "a/app";
  for (const char* const name : {"a/app", "b/app", "a2/app"}) {
    fs::create_directories(outer / name);
  }
  for (const fs::path& moved : {inner, outer / "a"}) {
    SCOPED_TRACE(moved);
    const fs::path other = moved == inner ? outer / "b/app" : outer / "a2";
    const auto exchange = [&] {
      EXPECT_EQ(::renameat2(AT_FDCWD, moved.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE), 0);
    };
    const Strings flags = {"--project", inner, "--ro", outer};
    const Held back = Run(
        "echo ran",
        [&] {
          exchange();
          exchange();
        },
        [] {}, flags);
    EXPECT_TRUE(Contains(back.out, "ran")) << "NO-CONTROL: " << back.err;
    const Held held = Run("echo ran", exchange, [] {}, flags);
    EXPECT_EQ(held.exit, 120) << held.out << held.err;
    EXPECT_TRUE(Contains(held.err, "policy.path.moved")) << held.err;
    exchange();
  }
}

INSTANTIATE_TEST_SUITE_P(Level, MovedMounts, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
