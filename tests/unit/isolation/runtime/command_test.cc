// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "elf_maker.h"
#include "inside.h"
#include "isolation/runtime/program.h"
#include "isolation/runtime/relocate.h"
#include "isolation/runtime/runtime.h"
#include "tests/support/temp_dir.h"

namespace coffer::isolation {
namespace {

const ResolveOptions kFresh{.use_cache = false};
using Words = std::vector<std::string>;

Error CommandError(const Words& argv, const Words& runtimes = {}) {
  const Result<Command> command = ResolveCommand(argv, runtimes, kFresh);
  return command.ok() ? Error{ErrorKind::kInternal, "found", "it was found", {}, 0}
                      : command.error();
}

Error ScriptError(const std::string& file) {
  const Result<Command> command = ResolveScript(file, {}, kFresh);
  return command.ok() ? Error{ErrorKind::kInternal, "found", "it was found", {}, 0}
                      : command.error();
}

// With an argument the carriage return is the argument's, and some interpreters pass over it: perl -w.
TEST(Shebang, ACarriageReturnEndsTheNameOrTheArgument) {
  EXPECT_TRUE(ParseShebang("#!/bin/sh\r\n").missing);
  EXPECT_TRUE(ParseShebang("#! /bin/sh\r\n").missing);
  EXPECT_FALSE(ParseShebang("#!/usr/bin/perl -w\r\n").missing);
  EXPECT_TRUE(ParseShebang("#!/usr/bin/perl -w\r\n").windows);
  EXPECT_FALSE(ParseShebang("#!/bin/sh\n").missing);
}

TEST(Shebang, IsSplitAsTheKernelDoes) {
  const auto check = [](std::string_view head, const std::string& interpreter,
                        const std::string& argument) {
    const Shebang shebang = ParseShebang(head);
    EXPECT_EQ(shebang.interpreter, interpreter) << head;
    EXPECT_EQ(shebang.argument, argument) << head;
  };
  check("#!/bin/sh\n", "/bin/sh", "");
  check("#! /bin/sh -e\necho", "/bin/sh", "-e");
  check("#!/usr/bin/env -S python3 -u -I \n", "/usr/bin/env", "-S python3 -u -I");
  check("#!/bin/sh\r\n", "",
        "");  // the kernel would look for a file whose name ends in a carriage return
  check("#!/" + std::string(253, 'x'), "", "");  // cut off: the name may go on
  check("#!/" + std::string(252, 'x') + "\n", "/" + std::string(252, 'x'), "");
  check("#!/bin/sh " + std::string(246, 'x'), "/bin/sh", std::string(246, 'x'));
  check("#!\t/bin/sh\t-x\ty\n", "/bin/sh", "-x\ty");
  check("#!/bin/sh", "/bin/sh", "");
  check("#!\n", "", "");
  check("#!", "", "");
  check("", "", "");
  check("# !/bin/sh\n", "", "");
  check(std::string_view("#!/bin/s\0h\n", 11), "", "");
}

TEST(Command, WhatIsNotThereIs127) {
  for (const Words& argv :
       {Words{"no-such-command-anywhere"}, Words{"./no-such"}, Words{"/no/such"},
        Words{"/etc/passwd/x"}, Words{std::string(5000, 'x')}, Words{"line\nbreak"},
        Words{"\xff\xfe"}}) {
    const Error error = CommandError(argv);
    EXPECT_EQ(error.kind, ErrorKind::kNotFound) << argv[0] << error.message;
    EXPECT_NE(error.message.find("not found"), std::string::npos) << error.message;
  }
  EXPECT_EQ(CommandError({}).kind, ErrorKind::kRefused);
  EXPECT_EQ(CommandError({""}).kind, ErrorKind::kRefused);
}

TEST(Command, WhatCannotBeRunIs126) {
  const test::TempDir dir;
  const auto expect = [](const std::string& path, const std::string& reason) {
    const Error error = CommandError({path});
    EXPECT_EQ(error.kind, ErrorKind::kNotExecutable) << path;
    EXPECT_NE(error.message.find(reason), std::string::npos) << error.message;
    EXPECT_EQ(error.message.find('\n'), std::string::npos);
  };
  expect("/tmp", "is a directory");
  expect(dir.path() + "/", "is a directory");
  expect(dir.Write("plain", "#!/bin/sh\n", 0644), "not executable");
  expect(dir.Write("thirty-two", MakeElf({.elf_class = ELFCLASS32}), 0755), "is a 32-bit program");
  expect(dir.Write("riscv", MakeElf({.machine = EM_RISCV}), 0755), "is a program for RISC-V");
  expect(dir.Write("cut", MakeElf({.needed = {"libc.so.6"}}).substr(0, 100), 0755), "damaged");
  expect(dir.Write("text", "hello\n", 0755), "names no interpreter");
  expect(dir.Write("empty", "", 0755), "names no interpreter");
  expect(dir.Write("setuid", MakeElf({}), 04755), "setuid");
  expect(dir.Write("setgid", MakeElf({}), 02755), "setgid");
  expect(dir.Write("missing-library", MakeElf({.needed = {"libnowhere.so.9"}}), 0755),
         "\"libnowhere.so.9\", which is not installed");
  expect(dir.Write("missing-loader", MakeElf({.interpreter = "/lib/ld-nowhere.so"}), 0755),
         "needs the loader /lib/ld-nowhere.so");
  expect("/dev/null", "permission denied");
  dir.Link("loop", "loop");
  expect(dir.path() + "/loop", "symbolic links");
}

TEST(Command, TheFixedPathComesBeforeTheCallers) {
  const test::TempDir dir;
  dir.Write("true", "#!/bin/sh\n", 0755);
  dir.Write("coffer-test-only-here", MakeElf({}), 0755);
  dir.Write("coffer-test-no-x", "", 0644);
  const std::string before = ::getenv("PATH") == nullptr ? "" : ::getenv("PATH");
  ::setenv("PATH", (dir.path() + ":relative:").c_str(), 1);
  const Result<Command> system = ResolveCommand({"true"}, {}, kFresh);
  const Result<Command> own = ResolveCommand({"coffer-test-only-here"}, {}, kFresh);
  const Error no_x = CommandError({"coffer-test-no-x"});
  ::setenv("PATH", before.c_str(), 1);
  ASSERT_TRUE(system.ok());
  EXPECT_FALSE(system->program.starts_with(dir.path()));
  ASSERT_TRUE(own.ok()) << own.error().message;
  EXPECT_EQ(own->program, Relocated(dir.path() + "/coffer-test-only-here"));
  EXPECT_EQ(no_x.kind, ErrorKind::kNotExecutable);
}

TEST(Command, LinksAreFollowedAndTheNameStays) {
  const Result<Command> command = ResolveCommand({"/bin/sh", "-c", "x"}, {}, kFresh);
  ASSERT_TRUE(command.ok());
  EXPECT_EQ(command->argv, (Words{"/bin/sh", "-c", "x"}));
  EXPECT_EQ(command->runtimes, Words{"sh"});
  EXPECT_EQ(FindInside(command->runtime, command->program),
            std::filesystem::canonical("/bin/sh").string());
}

TEST(Command, AScriptBringsItsInterpreterAndItself) {
  const test::TempDir dir;
  const std::string script = dir.Write("tool", "#!/bin/sh -e\necho \"got $1\"\n", 0755);
  const Result<Command> command = ResolveCommand({script, "one"}, {}, kFresh);
  ASSERT_TRUE(command.ok()) << command.error().message;
  EXPECT_EQ(command->argv, (Words{"/bin/sh", "-e", Relocated(script), "one"}));
  EXPECT_EQ(FindInside(command->runtime, Relocated(script)), Relocated(script));
  const InsideResult result = RunInside(command->runtime, command->program, command->argv);
  if (!result.supported) {
    GTEST_SKIP() << "this host allows neither root nor user namespaces";
  }
  EXPECT_EQ(result.output, "got one\n");
  const Result<Command> by_env =
      ResolveCommand({dir.Write("env", "#!/usr/bin/env -S sh -e\n", 0755)}, {}, kFresh);
  ASSERT_TRUE(by_env.ok()) << by_env.error().message;
  EXPECT_EQ(by_env->argv, (Words{"sh", "-e", Relocated(dir.path() + "/env")}));
}

TEST(Command, AScriptWhoseInterpreterIsAScript) {
  const test::TempDir dir;
  const std::string inner = dir.Write("inner", "#!/bin/sh\necho \"inner $1\"\n", 0755);
  const std::string outer = dir.Write("outer", "#!" + inner + "\n", 0755);
  const Result<Command> command = ResolveCommand({outer, "x"}, {}, kFresh);
  ASSERT_TRUE(command.ok()) << command.error().message;
  EXPECT_EQ(command->argv, (Words{"/bin/sh", Relocated(inner), Relocated(outer), "x"}));
  EXPECT_FALSE(FindInside(command->runtime, Relocated(inner)).empty());
  const std::string self = dir.Write("self", "#!" + dir.path() + "/self\n", 0755);
  EXPECT_EQ(CommandError({self}).kind, ErrorKind::kNotExecutable);
}

TEST(Command, BadInterpretersAreNamed) {
  const test::TempDir dir;
  const Error missing = CommandError({dir.Write("a", "#!/no/such/interpreter\n", 0755)});
  EXPECT_EQ(missing.kind, ErrorKind::kNotFound);
  EXPECT_NE(missing.message.find("/no/such/interpreter"), std::string::npos);
  EXPECT_EQ(CommandError({dir.Write("b", "#!/usr/bin/env no-such-interpreter\n", 0755)}).kind,
            ErrorKind::kNotFound);
  EXPECT_EQ(CommandError({dir.Write("c", "#!bin/relative\n", 0755)}).kind,
            ErrorKind::kNotExecutable);
  EXPECT_EQ(CommandError({dir.Write("d", "#!/usr/bin/env -i FOO=1 sh\n", 0755)}).kind,
            ErrorKind::kNotExecutable);
}

TEST(Command, NamedRuntimesAreAllThereIs) {
  const Result<Command> inside = ResolveCommand({"ls", "/"}, {"sh"}, kFresh);
  ASSERT_TRUE(inside.ok()) << inside.error().message;
  EXPECT_EQ(inside->argv, (Words{"ls", "/"}));
  EXPECT_EQ(inside->runtimes, Words{"sh"});
  EXPECT_FALSE(FindInside(inside->runtime, inside->program).empty());
  const Error outside = CommandError({"perl"}, {"sh"});
  EXPECT_EQ(outside.kind, ErrorKind::kNotFound);
  EXPECT_NE(outside.message.find("not found in the runtime sh"), std::string::npos);
  EXPECT_EQ(CommandError({"/usr/bin/perl"}, {"sh"}).kind, ErrorKind::kNotFound);
  EXPECT_EQ(CommandError({"ls"}, {"nonsense"}).kind, ErrorKind::kRefused);
  const test::TempDir dir;
  const std::string script = dir.Write("s", "#!/bin/sh\n", 0755);
  const Result<Command> by_script = ResolveCommand({script}, {"sh"}, kFresh);
  ASSERT_TRUE(by_script.ok()) << by_script.error().message;
  EXPECT_FALSE(FindInside(by_script->runtime, Relocated(script)).empty());
  EXPECT_EQ(CommandError({dir.Write("p", "#!/usr/bin/perl\n", 0755)}, {"sh"}).kind,
            ErrorKind::kNotFound);
}

TEST(Command, WhatLiesInAPrivatePlaceMoves) {
  EXPECT_EQ(Relocated("/tmp/x/tool"), "/run/command/tmp/x/tool");
  EXPECT_EQ(Relocated("/tmpfile"), "/tmpfile");
  EXPECT_EQ(Relocated("/home/me/tool"), "/home/me/tool");
  RuntimeSet set;
  set.files = {{"/tmp/app/bin/tool", "/tmp/app/bin/tool", true, false},
               {"/tmp/app/lib/libx.so", "/tmp/app/lib/libx.so", false, false},
               {"/usr/bin/dash", "/usr/bin/dash", true, false},
               {"/etc/alternatives", "/etc/alternatives", false, true}};
  set.links = {{"/tmp/app/sh", "../../usr/bin/dash"}, {"/usr/bin/tool", "../../tmp/app/bin/tool"}};
  const RuntimeSet moved = Relocated(Merge(set, {}));
  EXPECT_EQ(FindInside(moved, "/run/command/tmp/app/sh"), "/usr/bin/dash");
  EXPECT_EQ(FindInside(moved, "/usr/bin/tool"), "/run/command/tmp/app/bin/tool");
  EXPECT_EQ(FindInside(moved, "/run/command/tmp/app/bin/../lib/libx.so"),
            "/run/command/tmp/app/lib/libx.so");
  EXPECT_EQ(FindInside(moved, "/etc/alternatives"), "/etc/alternatives");
  EXPECT_EQ(FindInside(moved, "/tmp/app/bin/tool"), "");
}

// A program names its loader by an absolute path, and the kernel looks there.
TEST(Command, ALoaderBelowTmpStaysWhereItIs) {
  RuntimeSet set;
  set.files = {{"/tmp/app/bin/tool", "/tmp/app/bin/tool", true, false},
               {"/tmp/app/lib/ld.so", "/tmp/app/lib/ld.so", true, false, BindReason::kLoader},
               {"/etc/own/ld.so", "/etc/own/ld.so", true, false, BindReason::kLoader}};
  set.links = {{"/tmp/app/lib/libc.so", "ld.so"}};
  // Also if what has moved is moved with more once again.
  const RuntimeSet moved = Relocated(Merge(Relocated(Merge(set, {})), {}));
  EXPECT_EQ(FindInside(moved, "/tmp/app/lib/ld.so"), "/tmp/app/lib/ld.so");
  EXPECT_EQ(FindInside(moved, "/run/command/tmp/app/lib/libc.so"), "/tmp/app/lib/ld.so");
  EXPECT_EQ(FindInside(moved, "/run/command/tmp/app/bin/tool"), "/run/command/tmp/app/bin/tool");
  EXPECT_EQ(FindInside(moved, "/run/command/etc/own/ld.so"), "/run/command/etc/own/ld.so");
}

TEST(Command, AVirtualEnvironmentComesWithItsPackages) {
  const std::string python = FindSystemProgram("python3");
  if (python.empty()) {
    GTEST_SKIP() << "this host has no python3";
  }
  const test::TempDir dir;
  const std::string version(BaseName(std::filesystem::canonical(python).string()));
  dir.Write("venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n");
  dir.Write("venv/lib/" + version + "/site-packages/only_here.py",
            "print('from the environment')\n");
  dir.Link("venv/bin/python", python);
  const Result<Command> command =
      ResolveCommand({dir.path() + "/venv/bin/python", "-c", "import only_here"}, {}, kFresh);
  ASSERT_TRUE(command.ok()) << command.error().message;
  const InsideResult result = RunInside(command->runtime, command->program, command->argv);
  if (!result.supported) {
    GTEST_SKIP() << "this host allows neither root nor user namespaces";
  }
  EXPECT_EQ(result.output, "from the environment\n");
}

TEST(Script, TheInterpreterComesFromTheFirstLineOrTheEnding) {
  const test::TempDir dir;
  const auto argv = [&](const std::string& name, const std::string& content) {
    const Result<Command> command = ResolveScript(dir.Write(name, content), {}, kFresh);
    EXPECT_TRUE(command.ok()) << command.error().message;
    return command.ok() ? command->argv : Words{};
  };
  EXPECT_EQ(argv("a.sh", "echo\n"), Words{"sh"});
  EXPECT_EQ(argv("a.pl", "print 1\n"), Words{"perl"});
  EXPECT_EQ(argv("a.bash", "echo\n"), Words{"bash"});
  EXPECT_EQ(argv("a.py", "#!/bin/sh -e\n"), (Words{"/bin/sh", "-e"}));  // the first line wins
  EXPECT_EQ(argv("b", "#!/usr/bin/env -S sh -e\n"), (Words{"sh", "-e"}));
  if (!FindSystemProgram("python3").empty()) {
    // By PATH, which may have another Python before the system's.
    const Words python = argv("a.py", "print()\n");
    ASSERT_EQ(python.size(), 1U);
    EXPECT_EQ(python[0].substr(python[0].rfind('/') + 1), "python3");
    const Result<Command> command = ResolveScript(dir.path() + "/a.py", {}, kFresh);
    EXPECT_EQ(command->runtimes, Words{"python3"});
    EXPECT_TRUE(FindInside(command->runtime, dir.path() + "/a.py")
                    .empty());  // the caller brings the script in
  }
  if (!FindSystemProgram("node").empty()) {
    EXPECT_EQ(argv("a.mjs", ""), Words{"node"});
    EXPECT_EQ(argv("a.cjs", ""), Words{"node"});
    EXPECT_EQ(argv("a.js", ""), Words{"node"});
  }
}

TEST(Script, AProgramRunsAsItIs) {
  const Result<Command> command = ResolveScript("/bin/true", {}, kFresh);
  ASSERT_TRUE(command.ok()) << command.error().message;
  EXPECT_TRUE(command->program.empty());
  EXPECT_TRUE(command->argv.empty());
  EXPECT_EQ(command->runtime.files.size(), 2U);
}

TEST(Script, WhatCannotRunIsRefusedWithWhatCan) {
  const test::TempDir dir;
  const Error unknown = ScriptError(dir.Write("notes.txt", "hello\n"));
  EXPECT_EQ(unknown.kind, ErrorKind::kRefused);
  EXPECT_NE(unknown.hint.find(".py .js .mjs .cjs .ts .mts .cts .sh .bash .pl"), std::string::npos);
  EXPECT_EQ(ScriptError(dir.path() + "/none.py").kind, ErrorKind::kNotFound);
  EXPECT_EQ(ScriptError(dir.path()).kind, ErrorKind::kNotExecutable);
  EXPECT_EQ(ScriptError(dir.Write("x", MakeElf({.elf_class = ELFCLASS32}))).kind,
            ErrorKind::kNotExecutable);
}

}  // namespace
}  // namespace coffer::isolation
