// SPDX-License-Identifier: Apache-2.0
//
// A project as uv leaves it, for `uv run` and for an activated environment: interpreters in ~/.local/share/uv/python, a
// link there for each minor version, an environment whose links and pyvenv.cfg go through that link, and console scripts
// in all the forms that uv and pip write. uv itself is not needed: what it runs in the end is what is run here.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/support/run.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

class UvProject : public ::testing::Test {
 protected:
  void SetUp() override {
    const RunResult version =
        RunProgram({"/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"});
    if (version.exit != 0) {
      GTEST_SKIP() << "/usr/bin/python3 is not installed";
    }
    version_ = version.out.substr(0, version.out.size() - 1);
    InstallPython();
    MakeEnvironment();
  }

  std::string Installed() const { return uv_ + "/cpython-" + version_ + ".99-linux"; }
  std::string Minor() const { return uv_ + "/cpython-" + version_ + "-linux"; }

  void InstallPython() const {
    const std::string python = "python" + version_;
    const std::string system = "/usr/lib/" + python;
    const std::string lib = Installed() + "/lib/" + python;
    fs::create_directories(Installed() + "/bin");
    fs::create_directories(lib + "/lib-dynload");
    fs::copy_file(fs::canonical("/usr/bin/python3"), Installed() + "/bin/" + python);
    fs::create_symlink(python, Installed() + "/bin/python3");
    for (const fs::directory_entry& entry : fs::directory_iterator(system)) {
      if (entry.path().extension() == ".py" && !entry.is_symlink()) {
        fs::copy_file(entry.path(), lib + "/" + entry.path().filename().string());
      }
    }
    for (const char* package : {"encodings", "importlib", "collections", "re"}) {
      fs::copy(system + "/" + package, lib + "/" + package, fs::copy_options::recursive);
    }
    fs::create_directory_symlink(fs::path(Installed()).filename(), Minor());
  }

  void MakeEnvironment() const {
    const std::string python = "python" + version_;
    const std::string site = "proj/.venv/lib/" + python + "/site-packages";
    fs::create_directories(dir_ / site);
    fs::create_directories(venv_ + "/bin");
    fs::create_symlink(Minor() + "/bin/" + python, venv_ + "/bin/python");
    fs::create_symlink("python", venv_ + "/bin/python3");
    fs::create_directory_symlink("lib", venv_ + "/lib64");
    dir_.Write("proj/.venv/pyvenv.cfg",
               "home = " + Minor() + "/bin\nimplementation = CPython\nuv = 0.9.5\nversion_info = " +
                   version_ + ".99\ninclude-system-site-packages = false\nprompt = proj\n");
    dir_.Write(site + "/demo.py",
               "import sys\ndef main():\n    print('demo', sys.prefix, sys.argv[1:])\n");
    const std::string body = "from demo import main\nmain()\n";
    dir_.Write("proj/s.py", body);
    dir_.Write("proj/.venv/bin/first-line", "#!" + venv_ + "/bin/python\n" + body, 0755);
    dir_.Write("proj/.venv/bin/long", Trampoline("'" + venv_ + "/bin/python'") + body, 0755);
    dir_.Write("proj/.venv/bin/movable",
               Trampoline(R"x("$(dirname -- "$(realpath -- "$0")")"/'python')x") + body, 0755);
  }
  // The first lines of a script whose interpreter does not fit into one.
  static std::string Trampoline(const std::string& interpreter) {
    return "#!/bin/sh\n'''exec' " + interpreter + R"( "$0" "$@")" + "\n' '''\n";
  }

  RunOptions Activated() const {
    RunOptions options;
    options.environment = Strings{"PATH=" + venv_ + "/bin:/usr/local/bin:/usr/bin:/bin",
                                  "HOME=" + (dir_ / "home"), "VIRTUAL_ENV=" + venv_};
    options.cwd = dir_ / "proj";
    return options;
  }
  RunOptions NotActivated() const {
    RunOptions options = Activated();
    options.environment = Strings{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + (dir_ / "home")};
    return options;
  }
  void ExpectDemo(const RunResult& result, const std::string& arguments = "") const {
    EXPECT_EQ(result.exit, 0) << result.Describe();
    // What is brought in from /tmp lies below /run/command inside.
    EXPECT_TRUE(result.out.starts_with("demo ") &&
                result.out.ends_with(venv_ + " [" + arguments + "]\n"))
        << result.Describe();
  }

  TempDir dir_;
  std::string version_;
  const std::string uv_ = dir_ / "home/.local/share/uv/python";
  const std::string venv_ = dir_ / "proj/.venv";
};

TEST_F(UvProject, RunsAsOnTheHost) {
  const RunOptions options = Activated();
  for (const std::string script : {"first-line", "long", "movable"}) {
    ExpectDemo(RunProgram({venv_ + "/bin/" + script, "a"}, options), "'a'");
    ExpectDemo(RunCoffer({}, {script, "a"}, options), "'a'");
    ExpectDemo(RunCoffer({}, {".venv/bin/" + script, "a"}, options), "'a'");
    ExpectDemo(RunCoffer({"--project", "."}, {script, "a"}, options), "'a'");
    ExpectDemo(RunCoffer({"--project", "."}, {"sh", "-c", script}, options));
    ExpectDemo(RunCoffer({"--ro", "."}, {".venv/bin/" + script, "a"}, options), "'a'");
  }
  ExpectDemo(RunProgram({CofferPath(), "run", "s.py"}, options));
  ExpectDemo(RunCoffer({"--project", "."}, {"python", "s.py"}, options));
  ExpectDemo(RunCoffer({"--project", "."}, {".venv/bin/python3", "s.py"}, options));
}

// `uv run` and a Makefile name the interpreter by its path.
TEST_F(UvProject, IsThereThoughTheEnvironmentIsNotActivated) {
  const RunOptions options = NotActivated();
  // In place of uv, which executes the interpreter of the environment.
  dir_.Write("proj/uv", "#!/bin/sh\nshift\nexec ./.venv/bin/python \"$@\"\n", 0755);
  dir_.Write("proj/Makefile", "test:\n\t@.venv/bin/python s.py\n");
  const auto run = [&](const Strings& command) {
    return RunCoffer({"--project", "."}, command, options);
  };
  const Strings by_path = {"sh", "-c", ".venv/bin/python s.py"};
  ExpectDemo(run({"./uv", "run", "s.py"}));
  ExpectDemo(run(by_path));
  ExpectDemo(run({"sh", "-c", ".venv/bin/python3 s.py"}));
  if (fs::exists("/usr/bin/make")) {
    ExpectDemo(run({"make", "test"}));
  }
  // PATH is the caller's all the same.
  const RunResult usual = run({"sh", "-c", "python3 -c 'import sys; print(sys.executable)'"});
  EXPECT_EQ(usual.out, "/usr/bin/python3\n") << usual.Describe();
  // With one of the names alone, activated or not.
  fs::remove(venv_ + "/bin/python3");
  ExpectDemo(run(by_path));
  ExpectDemo(RunCoffer({"--project", "."}, {"sh", "-c", "python s.py"}, Activated()));
  fs::rename(venv_ + "/bin/python", venv_ + "/bin/python3");
  ExpectDemo(run({"sh", "-c", ".venv/bin/python3 s.py"}));
  // Named runtimes are all that a call has.
  const RunResult named = RunCoffer({"--project", ".", "--runtime", "base"},
                                    {"sh", "-c", ".venv/bin/python3 s.py"}, options);
  EXPECT_EQ(named.exit, 127) << named.Describe();
}

// An earlier call wrote the environment. It brings in what any file may name, and nothing else.
TEST_F(UvProject, APlantedEnvironmentBringsInNoOtherTree) {
  const std::string kept = dir_.MakeDir("home/kept");
  fs::copy_file("/bin/cat", kept + "/python3");
  dir_.Write("home/kept/secret", "kept-secret\n");
  dir_.Write("home/kept/script", "#!/bin/cat\nkept-secret\n", 0755);
  const std::string ask =
      "cat " + kept + "/secret " + kept + "/script; ls " + kept + " " + uv_ + "; echo went on";
  const RunResult control = RunProgram({"sh", "-c", ask}, NotActivated());
  EXPECT_TRUE(Contains(control.out, "kept-secret")) << "NO-CONTROL: " << control.Describe();
  const auto run = [&] { return RunCoffer({"--project", "."}, {"sh", "-c", ask}, NotActivated()); };
  const RunResult honest = run();
  EXPECT_TRUE(Contains(honest.out, "cpython-")) << "NO-CONTROL: " << honest.Describe();
  const std::string python = "python" + version_;
  for (const std::string& target :
       {kept + "/python3", kept + "/script", kept + "/secret", kept,
        uv_ + "/../../../../kept/python3", std::string("/proc/self/root") + kept + "/python3"}) {
    for (const char* const environment : {".venv", "venv"}) {
      for (const char* const name : {"python", "python3"}) {
        fs::remove_all(venv_);
        const std::string bin = dir_ / ("proj/" + std::string(environment) + "/bin");
        fs::create_directories(bin);
        fs::create_symlink(target, bin + "/" + name);
        dir_.Write("proj/" + std::string(environment) + "/pyvenv.cfg", "home = " + kept + "\n");
        const RunResult result = run();
        EXPECT_TRUE(Contains(result.out, "went on")) << result.Describe();
        EXPECT_FALSE(Contains(result.out, "kept-secret")) << "OPEN " << target << result.Describe();
        EXPECT_FALSE(Contains(result.out, "python3")) << "OPEN " << target << result.Describe();
        fs::remove_all(dir_ / ("proj/" + std::string(environment)));
      }
    }
  }
}

// Not a directory with links in it, but whatever else a call could leave under those names. The caller's PATH holds another
// program, which a first line could name.
TEST_F(UvProject, WhatIsNoEnvironmentBringsInNothing) {
  const std::string kept = dir_.MakeDir("home/kept");
  dir_.Write("home/kept/secret", "kept-secret\n");
  fs::create_directories(kept + "/bin");
  fs::copy_file("/bin/cat", kept + "/bin/prog");
  const std::string ask =
      "cat " + kept + "/secret; ls " + kept + "/bin; find /run/command -name prog; echo went on";
  RunOptions options = Activated();
  options.environment->front() += ":" + kept + "/bin";
  const RunResult control = RunProgram({"sh", "-c", ask}, options);
  EXPECT_TRUE(Contains(control.out, "kept-secret") && Contains(control.out, "prog"))
      << "NO-CONTROL: " << control.Describe();
  const auto expect_nothing = [&](const std::string& what) {
    const RunResult result = RunCoffer({"--project", "."}, {"sh", "-c", ask}, options);
    EXPECT_EQ(result.out, "went on\n") << "OPEN " << what << result.Describe();
  };
  for (const std::string name : {".venv", ".venv/bin", ".venv/bin/python3", ".venv/lib"}) {
    const std::string place = dir_ / ("proj/" + name);
    const auto clear = [&] {
      fs::remove_all(venv_);
      fs::create_directories(venv_ + "/bin");
      fs::remove_all(place);
    };
    clear();
    ASSERT_EQ(::mkfifo(place.c_str(), 0644), 0);
    expect_nothing(name + " is a fifo");
    clear();
    fs::create_directory_symlink(kept, place);
    expect_nothing(name + " is a link to a directory");
    clear();
    fs::create_symlink(place, place);
    expect_nothing(name + " leads in a circle");
  }
  for (const std::string& line :
       {std::string("#!/usr/bin/env prog\n"), std::string("#!/usr/bin/env -S prog -n\n"),
        "#!" + kept + "/bin/prog\n", Trampoline("'" + kept + "/bin/prog'")}) {
    for (const char* const name : {"python", "python3", "node"}) {
      fs::remove_all(venv_);
      dir_.Write("proj/.venv/bin/" + std::string(name), line, 0755);
      expect_nothing(name + (" with the first line " + line));
    }
  }
}

// A script in the form of a console script names no more than a first line may.
TEST_F(UvProject, AScriptThatNamesAnotherInterpreterIsRefused) {
  dir_.MakeDir("private");
  dir_.Write("private/tool", "#!/bin/sh\necho private\n", 0755);
  dir_.Write("proj/.venv/bin/evil", Trampoline("'" + (dir_ / "private/tool") + "'"), 0755);
  const RunResult control = RunProgram({venv_ + "/bin/evil"}, Activated());
  EXPECT_EQ(control.out, "private\n") << "NO-CONTROL: " << control.Describe();
  for (const Strings& flags : {Strings{}, Strings{"--level", "process"}}) {
    const RunResult result = RunCoffer(flags, {"evil"}, Activated());
    EXPECT_EQ(result.out, "") << result.Describe();
    EXPECT_EQ(result.ErrorClass(), "policy.runtime.foreign") << result.Describe();
  }
  const RunResult mounted = RunCoffer({"--project", "."}, {"evil"}, Activated());
  EXPECT_FALSE(Contains(mounted.out, "private")) << mounted.Describe();
}

}  // namespace
}  // namespace coffer::test
