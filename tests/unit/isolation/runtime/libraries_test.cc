// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/libraries.h"

#include <gtest/gtest.h>
#include <stdio.h>

#include <algorithm>
#include <set>

#include "elf_maker.h"
#include "isolation/runtime/program.h"
#include "tests/support/temp_dir.h"

namespace coffer::isolation {
namespace {

std::vector<std::string> Names(const LibraryFinder& finder) {
  std::vector<std::string> names;
  for (const Library& library : finder.found()) {
    names.push_back(library.name);
  }
  return names;
}

// What the loader itself says: real paths, without the loader and the vdso.
std::set<std::string> Ldd(const std::string& program) {
  std::set<std::string> found;
  FILE* const output = ::popen(("ldd " + program + " 2>/dev/null").c_str(), "r");
  char line[4096];
  while (output != nullptr && ::fgets(line, sizeof(line), output) != nullptr) {
    const std::string text(line);
    const size_t arrow = text.find(" => /");
    if (arrow != std::string::npos) {
      const size_t end = text.find(" (", arrow);
      found.insert(std::filesystem::canonical(text.substr(arrow + 4, end - arrow - 4)).string());
    }
  }
  if (output != nullptr) {
    ::pclose(output);
  }
  return found;
}

TEST(Libraries, AgreeWithTheLoader) {
  int compared = 0;
  for (const std::string name :
       {"true", "ls", "bash", "tar", "python3", "perl", "node", "git", "bwrap", "find"}) {
    const std::string path = FindSystemProgram(name);
    if (path.empty()) {
      continue;
    }
    RealPaths paths;
    const Result<Program> program = OpenProgram(paths, path);
    ASSERT_TRUE(program.ok()) << program.error().message;
    LibraryFinder finder(paths);
    finder.Provide(std::string(BaseName(program->elf.interpreter)));
    const Status closed =
        finder.Close(program->elf, std::string(DirName(program->place.real)), Missing::kFail);
    ASSERT_TRUE(closed.ok()) << path << ": " << closed.error().message;
    std::set<std::string> ours;
    for (const Library& library : finder.found()) {
      ours.insert(library.real);
    }
    EXPECT_EQ(ours, Ldd(path)) << path;
    ++compared;
  }
  EXPECT_GE(compared, 4);
}

class LibrariesTree : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const ElfRecipe& recipe) {
    return dir_.Write(name, MakeElf(recipe), 0755);
  }

  // The libraries of `object`, or the error's message.
  std::vector<std::string> Close(const std::string& path, Missing missing = Missing::kFail) {
    RealPaths paths;
    const Result<Program> program = OpenProgram(paths, path);
    EXPECT_TRUE(program.ok()) << program.error().message;
    LibraryFinder finder(paths, dir_.path() + "/no-cache");
    const Status closed =
        finder.Close(program->elf, std::string(DirName(program->place.real)), missing);
    if (!closed.ok()) {
      return {closed.error().message};
    }
    std::vector<std::string> names = Names(finder);
    for (std::string& name : names) {
      name = name.substr(name.starts_with(dir_.path()) ? dir_.path().size() : 0);
    }
    return names;
  }

  test::TempDir dir_;
};

TEST_F(LibrariesTree, OriginIsWhereTheObjectLies) {
  Write("app/lib/libone.so", {.needed = {"libtwo.so"}, .runpath = "${ORIGIN}/deep"});
  Write("app/lib/deep/libtwo.so", {});
  const std::string program =
      Write("app/bin/program", {.needed = {"libone.so"}, .runpath = "$ORIGIN/../lib"});
  EXPECT_EQ(Close(program),
            (std::vector<std::string>{"/app/lib/libone.so", "/app/lib/deep/libtwo.so"}));
}

TEST_F(LibrariesTree, RpathIsInheritedAndRunpathIsNot) {
  Write("lib/libone.so", {.needed = {"libtwo.so"}});
  Write("lib/libtwo.so", {});
  EXPECT_EQ(Close(Write("by-rpath", {.needed = {"libone.so"}, .rpath = "$ORIGIN/lib"})),
            (std::vector<std::string>{"/lib/libone.so", "/lib/libtwo.so"}));
  const auto by_runpath =
      Close(Write("by-runpath", {.needed = {"libone.so"}, .runpath = "$ORIGIN/lib"}));
  ASSERT_EQ(by_runpath.size(), 1U);
  EXPECT_NE(by_runpath.front().find("\"libtwo.so\", which is not installed"), std::string::npos);
}

TEST_F(LibrariesTree, RunpathMakesRpathVoid) {
  Write("a/libone.so", {});
  Write("b/libone.so", {});
  EXPECT_EQ(Close(Write("program",
                        {.needed = {"libone.so"}, .rpath = "$ORIGIN/a", .runpath = "$ORIGIN/b"})),
            (std::vector<std::string>{"/b/libone.so"}));
}

TEST_F(LibrariesTree, TheNameStaysAndTheFileIsReal) {
  Write("lib/libone.so.1.2.3", {});
  dir_.Link("lib/libone.so.1", "libone.so.1.2.3");
  const std::string path = Write("program", {.needed = {"libone.so.1"}, .runpath = "$ORIGIN/lib"});
  RealPaths paths;
  const Result<Program> program = OpenProgram(paths, path);
  LibraryFinder finder(paths, dir_.path() + "/no-cache");
  ASSERT_TRUE(finder.Close(program->elf, dir_.path(), Missing::kFail).ok());
  ASSERT_EQ(finder.found().size(), 1U);
  EXPECT_EQ(finder.found()[0].name, dir_.path() + "/lib/libone.so.1");
  EXPECT_EQ(finder.found()[0].real, dir_.path() + "/lib/libone.so.1.2.3");
}

TEST_F(LibrariesTree, ACircleEnds) {
  Write("lib/libone.so", {.needed = {"libtwo.so"}, .runpath = "$ORIGIN"});
  Write("lib/libtwo.so", {.needed = {"libone.so"}, .runpath = "$ORIGIN"});
  EXPECT_EQ(Close(Write("program", {.needed = {"libone.so"}, .runpath = "$ORIGIN/lib"})).size(),
            2U);
}

TEST_F(LibrariesTree, AnEndlessChainIsAnError) {
  for (int i = 0; i < 100; ++i) {
    Write("lib/lib" + std::to_string(i) + ".so",
          {.needed = {"lib" + std::to_string(i + 1) + ".so"}, .runpath = "$ORIGIN"});
  }
  EXPECT_EQ(Close(Write("program", {.needed = {"lib0.so"}, .runpath = "$ORIGIN/lib"})),
            (std::vector<std::string>{"needs too many libraries"}));
}

TEST_F(LibrariesTree, RelativeAndUnknownPathsAreIgnored) {
  Write("lib/libone.so", {});
  for (const std::string runpath : {"lib", "./lib", "", "$LIB", "$PLATFORM/lib", "$ORIGIN/$LIB"}) {
    const auto result = Close(Write("program", {.needed = {"libone.so"}, .runpath = runpath}));
    ASSERT_EQ(result.size(), 1U);
    EXPECT_NE(result.front().find("not installed"), std::string::npos) << runpath;
  }
}

TEST_F(LibrariesTree, TheCallersLibraryPathPlaysNoPart) {
  Write("lib/libone.so", {});
  ::setenv("LD_LIBRARY_PATH", (dir_.path() + "/lib").c_str(), 1);
  const auto result = Close(Write("program", {.needed = {"libone.so"}}));
  ::unsetenv("LD_LIBRARY_PATH");
  ASSERT_EQ(result.size(), 1U);
  EXPECT_NE(result.front().find("not installed"), std::string::npos);
}

TEST_F(LibrariesTree, ABadLibraryIsNamed) {
  Write("lib/libone.so", {.machine = EM_RISCV});
  const auto result = Close(Write("program", {.needed = {"libone.so"}, .runpath = "$ORIGIN/lib"}));
  ASSERT_EQ(result.size(), 1U);
  EXPECT_NE(result.front().find("libone.so, which is a program for RISC-V"), std::string::npos);
  EXPECT_TRUE(Close(dir_.path() + "/program", Missing::kSkip).empty());
}

TEST_F(LibrariesTree, ASetuidLibraryIsRefused) {
  const std::string library = Write("lib/libone.so", {});
  ASSERT_EQ(::chmod(library.c_str(), 04755), 0);
  const auto result = Close(Write("program", {.needed = {"libone.so"}, .runpath = "$ORIGIN/lib"}));
  ASSERT_EQ(result.size(), 1U);
  EXPECT_NE(result.front().find("setuid"), std::string::npos);
}

}  // namespace
}  // namespace coffer::isolation
