// SPDX-License-Identifier: Apache-2.0
//
// A small project of a newcomer with its real programs, offline: `npm test`, and what --cache keeps between calls.
//
// Each cache is filled in one call and used in the next. The control is the same pair of calls without --cache, where the
// second one finds nothing.
#include <gtest/gtest.h>

#include "tests/support/run.h"

namespace coffer::test {
namespace {

class ProjectPrograms : public ::testing::Test {
 protected:
  void SetUp() override {
    project_ = dir_.MakeDir("project");
    dir_.MakeDir("home");
  }
  void TearDown() override {
    if (IsRoot()) {  // root's caches are in /var/cache/coffer
      RunProgram({CofferPath(), "cache", "clear", "--project", project_});
    }
  }

  RunResult InProject(const Strings& flags, const std::string& script) {
    RunOptions options;
    options.timeout = Seconds(180);
    options.cwd = project_;
    options.environment = {{"HOME=" + (dir_ / "home"), "XDG_CACHE_HOME=" + (dir_ / "cache"),
                            "PATH=/usr/local/bin:/usr/bin:/bin"}};
    Strings all = {"--project", "."};
    all.insert(all.end(), flags.begin(), flags.end());
    return RunCoffer(all, {"sh", "-ec", script}, options);
  }

  // `fill` in one call, `use` in the next: with the cache `use` finds what was kept, without it does not.
  void ExpectKept(const std::string& cache, const std::string& fill, const std::string& use,
                  const std::string& kept) {
    const RunResult first = InProject({"--cache", cache}, fill);
    ASSERT_EQ(first.exit, 0) << first.Describe();
    const RunResult second = InProject({"--cache", cache}, use);
    EXPECT_TRUE(Contains(second.out, kept)) << second.Describe();

    InProject({}, fill);
    const RunResult control = InProject({}, use);
    EXPECT_FALSE(Contains(control.out, kept)) << "NO-CONTROL " << control.Describe();
  }

  TempDir dir_;
  std::string project_;
};

#define NEEDS(program)                                   \
  if (!Exists("/usr/bin/" program)) {                    \
    GTEST_SKIP() << program << " is not installed here"; \
  }

TEST_F(ProjectPrograms, NpmTest) {
  NEEDS("npm");
  dir_.Write("project/package.json",
             R"({"name": "small", "version": "1.0.0", "scripts": {"test": "node --test"}})");
  dir_.Write("project/sum.js", "module.exports = (a, b) => a + b;\n");
  dir_.Write("project/sum.test.js",
             "const test = require('node:test'), assert = require('node:assert');\n"
             "test('adds', () => assert.equal(require('./sum.js')(1, 2), 3));\n");
  RunOptions options;
  options.cwd = project_;
  options.timeout = Seconds(180);
  options.environment = {{"HOME=" + (dir_ / "home"), "PATH=/usr/local/bin:/usr/bin:/bin"}};
  const RunResult passed = RunCoffer({"--project", "."}, {"npm", "test"}, options);
  EXPECT_EQ(passed.exit, 0) << passed.Describe();
  EXPECT_TRUE(Contains(passed.out, "pass 1")) << passed.Describe();
  dir_.Write("project/sum.js", "module.exports = (a, b) => a - b;\n");
  const RunResult failed = RunCoffer({"--project", "."}, {"npm", "test"}, options);
  EXPECT_EQ(failed.exit, 1) << failed.Describe();
}

// Names that the call must not make are empty directories meanwhile, which git can neither remove nor stash.
TEST_F(ProjectPrograms, GitStashesAndCleans) {
  NEEDS("git");
  dir_.Write("project/a", "one\n");
  RunOptions options;
  options.cwd = project_;
  options.environment = {{"HOME=" + (dir_ / "home"), "PATH=/usr/local/bin:/usr/bin:/bin"}};
  const std::string git = "git -c user.name=a -c user.email=a@example.com ";
  ASSERT_EQ(
      RunProgram({"/bin/sh", "-ec", "git init -q; git add a; " + git + "commit -qm one"}, options)
          .exit,
      0);
  dir_.Write("project/new/b", "two\n");
  const RunResult stashed =
      InProject({}, git + "stash -u; ls new 2>&1 || true; " + git + "stash pop; cat new/b");
  EXPECT_EQ(stashed.exit, 0) << stashed.Describe();
  EXPECT_TRUE(Contains(stashed.out, "cannot access") && Contains(stashed.out, "two"))
      << stashed.Describe();
  // A repository in the project has names of its own, which are no placeholders.
  const RunResult cleaned = InProject(
      {},
      "git clean -fd; ls new 2>&1 || true; git status --short --ignored | grep -v '^!!' || true; "
      "mkdir inner; cd inner; git init -q; mkdir .claude; touch .claude/x; git status --short "
      "-uall; "
      "rm -rf .claude");
  EXPECT_EQ(cleaned.exit, 0) << cleaned.Describe();
  EXPECT_TRUE(Contains(cleaned.out, "cannot access")) << cleaned.Describe();
  EXPECT_TRUE(Contains(cleaned.out, "?? .claude/x")) << "hidden in another repository\n"
                                                     << cleaned.Describe();
}

// Of a repository around the project git sees nothing. The note says which one it is, and that is what works.
TEST_F(ProjectPrograms, GitBelowARepositoryIsToldWhatToName) {
  NEEDS("git");
  dir_.Write("project/a", "one\n");
  dir_.Write("project/part/b", "two\n");
  RunOptions options;
  options.cwd = project_;
  options.environment = {{"HOME=" + (dir_ / "home"), "PATH=/usr/local/bin:/usr/bin:/bin"}};
  ASSERT_EQ(RunProgram({"/bin/sh", "-ec", "git init -q; git add a"}, options).exit, 0);
  const std::string part = project_ + "/part";
  const std::string told = "it is not the top of " + project_ + ", which is not shown";
  const RunResult below = RunCoffer({"--project", part}, {"git", "status", "--short"}, options);
  EXPECT_EQ(below.exit, 128) << below.Describe();
  EXPECT_TRUE(Contains(below.err, told)) << below.Describe();
  EXPECT_TRUE(Contains(below.err, "--project " + project_ + " --cwd " + part)) << below.Describe();
  // Also if the command went on without.
  const RunResult on = RunCoffer(
      {"--project", part}, {"sh", "-c", "v=$(git describe 2>&1) || v=none; echo $v"}, options);
  EXPECT_EQ(on.out, "none\n") << on.Describe();
  EXPECT_TRUE(Contains(on.err, told)) << on.Describe();
  EXPECT_TRUE(Contains(below.err, "--ro " + project_)) << below.Describe();
  // Writable, what is around it would be a second way to what the project holds read-only.
  const RunResult beside = RunCoffer({"--project", part, "--rw", project_}, {"true"}, options);
  EXPECT_EQ(beside.ErrorClass(), "policy.mount.overlap") << beside.Describe();
  const RunResult behind =
      RunCoffer({"--project", part, "--ro", project_, "--ro-overlay"}, {"true"}, options);
  EXPECT_EQ(behind.ErrorClass(), "policy.mount.overlap") << behind.Describe();
  const RunResult named =
      RunCoffer({"--project", project_, "--cwd", part}, {"git", "status", "--short"}, options);
  EXPECT_EQ(named.exit, 0) << named.Describe();
  EXPECT_EQ(named.out, "A  ../a\n?? ./\n") << named.Describe();
  // A command that succeeds did not miss it, and a project with a repository of its own does not.
  for (const Strings& other : {Strings{"cat", "b"}, Strings{"echo", ".git", "legit", "git-lfs"}}) {
    const RunResult content = RunCoffer({"--project", part}, other, options);
    EXPECT_EQ(content.exit, 0) << content.Describe();
    EXPECT_FALSE(Contains(content.err, told)) << content.Describe();
  }
  const RunResult top = RunCoffer({"--project", project_}, {"false"}, options);
  EXPECT_EQ(top.exit, 1) << top.Describe();
  EXPECT_FALSE(Contains(top.err, "finds no repository")) << top.Describe();
}

// The repository around the project is shown read-only if the caller names it: git reads there, and what it writes fails.
TEST_F(ProjectPrograms, GitReadsTheRepositoryThatIsShownAroundTheProject) {
  NEEDS("git");
  dir_.Write("project/a", "one\n");
  dir_.Write("project/packages/part/b", "two\n");
  RunOptions options;
  options.cwd = project_;
  options.environment = {{"HOME=" + (dir_ / "home"), "PATH=/usr/local/bin:/usr/bin:/bin"}};
  const std::string commit = "git -c user.name=a -c user.email=a@example.com commit -qm first";
  ASSERT_EQ(RunProgram({"/bin/sh", "-ec", "git init -q; git add .; " + commit}, options).exit, 0);
  const std::string part = project_ + "/packages/part";
  const std::string receipt = dir_ / "receipt.json";
  // The flags in either order.
  for (const Strings& flags : {Strings{"--project", part, "--ro", project_},
                               Strings{"--ro", project_, "--project", part}}) {
    dir_.Write("project/packages/part/b", "two\nthree\n");
    Strings all = flags;
    all.insert(all.end(), {"--receipt", receipt});
    const RunResult result = RunCoffer(
        all,
        {"sh", "-c",
         "git status --short; git log --format=%s; git diff --stat; cat ../../a; echo x > new; "
         "git status --short; rm new; git commit -qam second"},
        options);
    EXPECT_EQ(result.exit, 128) << result.Describe();
    EXPECT_TRUE(Contains(result.out, " M b\nfirst\n packages/part/b | 1 +\n")) << result.Describe();
    EXPECT_TRUE(Contains(result.out, "one\n M b\n?? new\n")) << result.Describe();
    EXPECT_TRUE(Contains(result.err, "index.lock': Read-only file system")) << result.Describe();
    EXPECT_FALSE(Contains(result.err, "finds no repository")) << result.Describe();
    const std::string told = ReadFile(receipt).value_or("");
    EXPECT_TRUE(Contains(told, "\"path\": \"" + project_ + "\"")) << told;
  }
}

// Go asks git about every `.git`, also about the empty directory that keeps the name.
TEST_F(ProjectPrograms, GoBuildsWhereThereIsNoRepository) {
  NEEDS("go");
  dir_.Write("project/go.mod", "module x\n\ngo 1.18\n");
  dir_.Write("project/main.go", "package main\n\nfunc main() { println(\"built\") }\n");
  const Strings limits = {"--wall", "300s", "--cpu", "250s"};
  const RunResult built = InProject(limits, "go build -o x . && ./x");
  EXPECT_EQ(built.exit, 0) << built.Describe();
  EXPECT_EQ(built.err, "built\n") << built.Describe();
  const RunResult own = InProject({"--env", "GOFLAGS=-v"}, "echo $GOFLAGS");
  EXPECT_EQ(own.out, "-v\n") << own.Describe();
  dir_.MakeDir("project/.git");
  const RunResult there = InProject({}, "echo \"<$GOFLAGS>\"");
  EXPECT_EQ(there.out, "<>\n") << there.Describe();
}

// poetry, pipenv and virtualenvwrapper keep environments in the home directory.
TEST_F(ProjectPrograms, AnEnvironmentOutsideIsShownByNameAndIsOnPath) {
  const std::string venv = dir_ / "home/envs/one";
  ASSERT_EQ(RunProgram({"/usr/bin/python3", "-m", "venv", "--without-pip", venv}).exit, 0);
  RunOptions options;
  options.cwd = project_;
  options.environment = {{"HOME=" + (dir_ / "home"), "VIRTUAL_ENV=" + venv,
                          "PATH=" + venv + "/bin:/usr/local/bin:/usr/bin:/bin"}};
  const std::string ask = "python3 -c 'import sys; print(sys.prefix)'";
  const std::string note = "the activated environment " + venv + " is not shown";
  const RunResult shown =
      RunCoffer({"--project", project_, "--ro", venv}, {"sh", "-c", ask + "; exit 3"}, options);
  EXPECT_EQ(shown.out, venv + "\n") << shown.Describe();
  EXPECT_FALSE(Contains(shown.err, note)) << shown.Describe();
  const RunResult other =
      RunCoffer({"--project", project_}, {"sh", "-c", ask + "; exit 3"}, options);
  EXPECT_FALSE(Contains(other.out, venv)) << other.Describe();
  EXPECT_TRUE(Contains(other.err, note + " to this command; if it needs that: --ro " + venv))
      << other.Describe();
  // Elsewhere it is not what PATH names.
  const RunResult moved =
      RunCoffer({"--project", project_, "--ro", venv + ":/venv"}, {"sh", "-c", ask}, options);
  EXPECT_FALSE(Contains(moved.out, venv)) << moved.Describe();
  // Nor is anything said of one that the command used, or to a command that succeeds.
  const RunResult used = RunCoffer({"--project", project_}, {"python3", "-c", "exit(3)"}, options);
  EXPECT_EQ(used.exit, 3) << used.Describe();
  EXPECT_FALSE(Contains(used.err, note)) << used.Describe();
  const RunResult content = RunCoffer({"--project", project_}, {"true"}, options);
  EXPECT_FALSE(Contains(content.err, note)) << content.Describe();
}

TEST_F(ProjectPrograms, CargoOfRustupIsToldWhatToShow) {
  const std::string toolchains = dir_.MakeDir("home/.rustup/toolchains");
  RunOptions options;
  options.cwd = project_;
  options.environment = {{"HOME=" + (dir_ / "home"), "PATH=/usr/local/bin:/usr/bin:/bin"}};
  const std::string note = "--ro " + toolchains + "/NAME:/rust";
  const auto told = [&](const Strings& flags, const std::string& script) {
    Strings all = {"--project", project_};
    all.insert(all.end(), flags.begin(), flags.end());
    return Contains(RunCoffer(all, {"sh", "-c", script}, options).err, note);
  };
  EXPECT_TRUE(told({}, "cargo --no-such-flag"));
  EXPECT_FALSE(told({}, "echo cargo"));
  EXPECT_FALSE(told({}, "cargo-like; exit 3"));
  EXPECT_FALSE(told({"--ro", dir_.MakeDir("home/.rustup/toolchains/one") + ":/rust"},
                    "cargo --no-such-flag"));
}

TEST_F(ProjectPrograms, CcacheHitsInTheNextCall) {
  NEEDS("ccache");
  NEEDS("gcc");
  dir_.Write("project/a.c", "int main(void) { return 0; }\n");
  ExpectKept("ccache", "ccache gcc -c a.c -o a.o",
             "rm -f a.o; ccache -z >/dev/null; ccache gcc -c a.c -o a.o; ccache --print-stats",
             "direct_cache_hit\t1");
}

TEST_F(ProjectPrograms, PipTakesTheWheelThatItBuilt) {
  NEEDS("pip3");
  dir_.Write("project/pp-1.0/setup.py",
             "from setuptools import setup\nsetup(name='pp', version='1.0', py_modules=['pp'])\n");
  dir_.Write("project/pp-1.0/pp.py", "x = 42\n");
  dir_.Write("project/pp-1.0/PKG-INFO", "Metadata-Version: 1.0\nName: pp\nVersion: 1.0\n");
  RunOptions options;
  options.cwd = project_;
  ASSERT_EQ(RunProgram({"/bin/tar", "czf", "pp-1.0.tar.gz", "pp-1.0"}, options).exit, 0);
  const std::string install =
      "rm -rf t; /usr/bin/python3 -m pip install --no-index --find-links . --no-build-isolation "
      "--no-deps --target t pp==1.0; PYTHONPATH=t /usr/bin/python3 -c 'import pp; print(pp.x)'";
  ExpectKept("pip", install,
             install + "; find $PIP_CACHE_DIR/wheels -name '*.whl' -mmin +0 | wc -l",
             "Using cached pp-1.0");
}

TEST_F(ProjectPrograms, NpmInstallsFromItsCache) {
  NEEDS("npm");
  dir_.Write("project/a/package.json", R"({"name": "a", "version": "1.0.0"})");
  dir_.Write("project/b/package.json", R"({"name": "b", "version": "1.0.0"})");
  ExpectKept("npm", "cd a; npm pack --silent --offline; npm cache add ./a-1.0.0.tgz",
             "npm cache verify 2>&1", "Content verified: 1");
}

}  // namespace
}  // namespace coffer::test
