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
