// SPDX-License-Identifier: Apache-2.0
//
// What people bring on the first day: a shell beside Python, native code, the Python that is meant, listed runtimes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/support/run.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSystemPath = "/usr/local/bin:/usr/bin:/bin";

class Programs : public ::testing::Test {
 protected:
  // The caller's environment, with `path` before the system's.
  RunOptions With(const std::string& path, const Strings& more = {}) const {
    RunOptions options;
    options.environment = Strings{"PATH=" + (path.empty() ? "" : path + ":") + kSystemPath,
                                  "HOME=" + (dir_ / "home")};
    options.environment->insert(options.environment->end(), more.begin(), more.end());
    return options;
  }

  void SetUp() override { dir_.MakeDir("home"); }

  // A virtual environment of the system's Python, with a console script.
  std::string MakeVenv(const std::string& name) {
    const std::string venv = dir_ / name;
    const RunResult made =
        RunProgram({"/usr/bin/python3", "-m", "venv", "--without-pip", venv}, With(""));
    EXPECT_EQ(made.exit, 0) << made.Describe();
    dir_.Write(name + "/bin/tool",
               "#!" + venv + "/bin/python\nimport sys\nprint('tool', sys.prefix)\n", 0755);
    return venv;
  }

  TempDir dir_;
};

int UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

bool ShowsUsr(const Json& receipt) {
  const Json& bound = receipt["files"]["bound"];
  return std::any_of(bound.begin(), bound.end(),
                     [](const Json& entry) { return entry["path"] == "/usr"; });
}

TEST_F(Programs, AShellBesidePython) {
  const Strings command = {
      "python3", "-c",
      "import subprocess; print(subprocess.check_output('echo hi | tr a-z A-Z', shell=True))"};
  const RunResult result = RunCoffer({}, command, With(""));
  EXPECT_TRUE(Contains(result.out, "HI")) << result.Describe();
  // With listed files alone there is no shell.
  const RunResult narrow = RunCoffer({"--runtime", "python3"}, command, With(""));
  EXPECT_NE(narrow.exit, 0) << narrow.Describe();
  const RunResult both = RunCoffer({"--runtime", "python3,base"}, command, With(""));
  EXPECT_TRUE(Contains(both.out, "HI")) << both.Describe();
}

TEST_F(Programs, TheReceiptSaysWhichOfTheTwo) {
  const RunResult whole = RunCoffer({}, {"python3", "-c", "pass"}, With(""));
  EXPECT_EQ(whole.receipt["isolation"]["runtimes"], Json::array({"host-usr"})) << whole.Describe();
  EXPECT_TRUE(ShowsUsr(whole.receipt)) << whole.receipt["files"];
  EXPECT_TRUE(Contains(whole.receipt["blast_radius"], "can read /usr")) << whole.Describe();
  EXPECT_TRUE(Contains(whole.receipt["isolation"]["program"], "python3")) << whole.Describe();
  const RunResult listed =
      RunCoffer({"--runtime", "python3", "--no-exec"}, {"python3", "-c", "pass"}, With(""));
  EXPECT_EQ(listed.receipt["isolation"]["runtimes"], Json::array({"python3"})) << listed.Describe();
  EXPECT_FALSE(ShowsUsr(listed.receipt)) << listed.receipt["files"];
  EXPECT_FALSE(Contains(listed.receipt["blast_radius"], "can read /usr")) << listed.Describe();
  EXPECT_EQ(whole.receipt["files"]["exec"], true);
  EXPECT_EQ(listed.receipt["files"]["exec"], false);
}

TEST_F(Programs, WhatIsMissingIsNamedWithItsRuntime) {
  const RunResult git = RunCoffer({"--runtime", "python3"}, {"git", "status"}, With(""));
  EXPECT_EQ(git.exit, 127) << git.Describe();
  EXPECT_TRUE(Contains(git.err, "the runtime git has it")) << git.err;
  const RunResult grep = RunCoffer({"--runtime", "python3"}, {"grep", "x"}, With(""));
  EXPECT_TRUE(Contains(grep.err, "the runtime base has it")) << grep.err;
  const RunResult other = RunCoffer({"--runtime", "python3"}, {"tzselect"}, With(""));
  EXPECT_TRUE(Contains(other.err, "host-usr")) << other.err;
}

TEST_F(Programs, AFileBesideTheCallerIsMissedByName) {
  dir_.Write("app.py", "print('ran')\n");
  dir_.MakeDir("data");
  RunOptions here = With("");
  here.cwd = dir_ / ".";
  const RunResult missed = RunCoffer({}, {"python3", "app.py"}, here);
  EXPECT_EQ(missed.exit, 2) << missed.Describe();
  EXPECT_TRUE(Contains(missed.err, "note: the file app.py was not brought in; --in app.py"))
      << missed.Describe();
  const RunResult listed = RunCoffer({}, {"ls", "data"}, here);
  EXPECT_TRUE(Contains(listed.err, "note: the directory data was not brought in"))
      << listed.Describe();
  // By its whole name too. What a mount shows is not said to be missing: the command looked elsewhere.
  const RunResult whole = RunCoffer({}, {"python3", dir_ / "app.py"}, here);
  EXPECT_TRUE(Contains(whole.err, "note: the file app.py was not brought in")) << whole.Describe();
  dir_.Write("data/x", "1\n");
  const RunResult shown = RunCoffer({"--ro", "data"}, {"cat", "data/x"}, here);
  EXPECT_EQ(shown.exit, 1) << shown.Describe();
  EXPECT_TRUE(
      Contains(shown.err, "started in /workspace, and data/x is shown at " + (dir_ / "data/x")))
      << shown.Describe();
  const RunResult elsewhere = RunCoffer({"--ro", "data:/data"}, {"ls", "data"}, here);
  EXPECT_TRUE(Contains(elsewhere.err, "data is shown at /data")) << elsewhere.Describe();
  const RunResult there = RunCoffer({"--ro", "data:/workspace/data"}, {"ls", "data", "no"}, here);
  EXPECT_FALSE(Contains(there.err, "is shown at")) << there.Describe();
  // A copy is there, also if the command fails for another reason; a project is there as a whole.
  const RunResult copied =
      RunCoffer({"--in", "app.py"}, {"sh", "-c", "python3 $0; exit 3", "app.py"}, here);
  EXPECT_EQ(copied.out, "ran\n") << copied.Describe();
  EXPECT_FALSE(Contains(copied.err, "brought in")) << copied.Describe();
  const RunResult project = RunCoffer({"--project", "."}, {"ls", "app.py", "gone"}, here);
  EXPECT_FALSE(Contains(project.err, "brought in")) << project.Describe();
  EXPECT_FALSE(Contains(RunCoffer({"--quiet"}, {"ls", "data"}, here).err, "brought in"));
}

TEST_F(Programs, LscpuCountsCoresAndSockets) {
  if (!Exists("/usr/bin/lscpu")) {
    GTEST_SKIP() << "lscpu is not installed here";
  }
  const int cpus = UsableCpus();
  if (cpus > 16) {
    GTEST_SKIP() << "more CPUs than have files of their own";
  }
  const RunResult result = RunCoffer({}, {"lscpu", "-p=CPU,CORE,SOCKET"}, With(""));
  std::set<std::string> cores;
  for (const std::string& line : Lines(result.out)) {
    if (!line.starts_with("#")) {
      EXPECT_TRUE(line.ends_with(",0")) << "not the one socket: " << line;
      cores.insert(line.substr(line.find(',') + 1));
    }
  }
  EXPECT_EQ(static_cast<int>(cores.size()), cpus) << result.Describe();
  const RunResult summary = RunCoffer({}, {"sh", "-c", "LC_ALL=C lscpu | tr -d ' '"}, With(""));
  EXPECT_TRUE(Contains(summary.out, fmt::format("Core(s)persocket:{}\n", cpus)) &&
              Contains(summary.out, "Thread(s)percore:1\n"))
      << summary.Describe();
}

// A JVM takes a quarter of the memory that it sees.
TEST_F(Programs, JavaSizesItsHeapByTheCap) {
  if (!Exists("/usr/bin/java")) {
    GTEST_SKIP() << "java is not installed here";
  }
  const Strings ask = {"sh", "-c", "java -XX:+PrintFlagsFinal -version | grep -w MaxHeapSize"};
  const auto heap = [](const std::string& out) {
    const size_t sign = out.find('=');
    return sign == std::string::npos ? 0ULL : std::stoull(out.substr(sign + 1));
  };
  const RunResult outside = RunProgram(ask, With(""));
  ASSERT_GT(heap(outside.out), 128ULL << 20) << "NO-CONTROL " << outside.Describe();
  const RunResult inside = RunCoffer(
      {"--memory", "512MiB", "--processes", "256", "--open-files", "1024"}, ask, With(""));
  EXPECT_GT(heap(inside.out), 0ULL) << inside.Describe();
  EXPECT_LE(heap(inside.out), 128ULL << 20) << inside.Describe();
}

TEST_F(Programs, NodeSeesItsCpusAndItsLoopback) {
  if (!Exists("/usr/bin/node")) {
    GTEST_SKIP() << "node is not installed here";
  }
  const RunResult result =
      RunCoffer({},
                {"node", "-p",
                 "os.cpus().length + ' ' + Object.keys(os.networkInterfaces()) + ' ' + "
                 "os.totalmem()"},
                With(""));
  EXPECT_EQ(result.out, fmt::format("{} lo {}\n", UsableCpus(), 256ULL << 20)) << result.Describe();
}

TEST_F(Programs, WrittenProgramsRun) {
  const std::string data = dir_.MakeDir("data");
  ASSERT_EQ(::chmod(data.c_str(), 0777), 0);
  const Strings command = {
      "sh", "-c", "for d in /workspace /tmp /data; do cp /bin/echo $d/e && $d/e ran; done"};
  const RunResult result = RunCoffer({"--rw", data + ":/data"}, command, With(""));
  EXPECT_EQ(result.out, "ran\nran\nran\n") << result.Describe();
  const RunResult refused = RunCoffer({"--no-exec", "--rw", data + ":/data"}, command, With(""));
  EXPECT_EQ(refused.out, "") << refused.Describe();
  EXPECT_NE(refused.exit, 0);
}

TEST_F(Programs, TheActivatedEnvironmentIsUsed) {
  const std::string venv = MakeVenv("venv");
  const std::string where = "import sys; print(sys.prefix != sys.base_prefix, sys.executable)";
  const RunResult plain = RunCoffer({}, {"python3", "-c", where}, With(""));
  EXPECT_TRUE(Contains(plain.out, "False")) << plain.Describe();
  const RunResult active = RunCoffer({}, {"python", "-c", where}, With(venv + "/bin"));
  EXPECT_TRUE(Contains(active.out, "True")) << active.Describe();
  EXPECT_TRUE(Contains(active.receipt["isolation"]["program"], "venv/bin/python"))
      << active.Describe();
  const std::string script = dir_.Write("a.py", where + "\n");
  const RunResult file = RunProgram({CofferPath(), "run", script}, With(venv + "/bin"));
  EXPECT_TRUE(Contains(file.out, "True")) << file.Describe();
  const RunResult tool = RunCoffer({}, {"tool"}, With(venv + "/bin"));
  EXPECT_TRUE(Contains(tool.out, "venv")) << tool.Describe();
}

TEST_F(Programs, AMountedEnvironmentIsRunInside) {
  const std::string venv = MakeVenv("venv");
  const Strings flags = {"--ro", venv + ":/venv"};
  const RunResult python =
      RunCoffer(flags, {"/venv/bin/python", "-c", "import sys; print(sys.prefix)"}, With(""));
  EXPECT_EQ(python.out, "/venv\n") << python.Describe();
  const RunResult missing = RunCoffer(flags, {"/venv/bin/nothing"}, With(""));
  EXPECT_EQ(missing.exit, 127) << missing.Describe();
  EXPECT_TRUE(Contains(missing.err, "not found in the mount")) << missing.err;
  // In its own place: found on PATH, or by a first line that names it.
  const RunResult own = RunCoffer({"--ro", venv}, {"python", "-c", "import sys; print(sys.prefix)"},
                                  With(venv + "/bin"));
  if (!venv.starts_with("/tmp/")) {
    EXPECT_EQ(own.out, venv + "\n") << own.Describe();
  }
}

TEST_F(Programs, AShimLeadsToTheVersionThatIsMeant) {
  const std::string manager = dir_ / "home/.pyenv";
  for (const char* part : {"home/.pyenv", "home/.pyenv/shims", "home/.pyenv/versions"}) {
    dir_.MakeDir(part);
  }
  dir_.Write("home/.pyenv/shims/tool", "#!/bin/sh\necho the shim itself\n", 0755);
  for (const std::string version : {"1.0", "2.0"}) {
    fs::create_directories(manager + "/versions/" + version + "/bin");
    dir_.Write("home/.pyenv/versions/" + version + "/bin/tool", "#!/bin/sh\necho " + version + "\n",
               0755);
  }
  dir_.Write("home/.pyenv/version", "1.0\n");
  const std::string shims = manager + "/shims";
  EXPECT_EQ(RunCoffer({}, {"tool"}, With(shims)).out, "1.0\n");
  EXPECT_EQ(RunCoffer({}, {"tool"}, With(shims, {"PYENV_VERSION=2.0"})).out, "2.0\n");
  // What a file in the project says chooses among installed versions and nothing else.
  dir_.MakeDir("project");
  dir_.MakeDir("evil");
  dir_.MakeDir("evil/bin");
  dir_.Write("evil/bin/tool", "#!/bin/sh\necho evil\n", 0755);
  RunOptions project = With(shims);
  project.cwd = dir_ / "project";
  dir_.Write("project/.python-version", "2.0\n");
  EXPECT_EQ(RunCoffer({}, {"tool"}, project).out, "2.0\n");
  dir_.Write("project/.python-version", "../../../evil\n");
  const RunResult evil = RunCoffer({}, {"tool"}, project);
  EXPECT_FALSE(Contains(evil.out, "evil")) << evil.Describe();
  EXPECT_EQ(evil.exit, 127) << evil.Describe();
}

TEST_F(Programs, BaseHasTheEverydayTools) {
  const RunResult result = RunCoffer(
      {"--runtime", "base"},
      {"sh", "-c",
       "for p in sh ls grep sed awk find tar gzip diff; do command -v $p >/dev/null || echo no $p; "
       "done; command -v git gcc python3 perl; echo end"},
      With(""));
  EXPECT_EQ(result.out, "end\n") << result.Describe();
}

// What packages keep in /etc and beside the library: the same is found as outside, with the files of the runtime alone.
TEST_F(Programs, PythonBringsItsConfiguration) {
  const Strings command = {"/usr/bin/python3", "-c", R"(
import ctypes, os, ssl
crypto = ctypes.CDLL('libcrypto.so.3')
crypto.CONF_get1_default_config_file.restype = ctypes.c_char_p
place = crypto.CONF_get1_default_config_file().decode()
print(place, os.path.exists(place) and hash(open(place, 'rb').read()))
print(len(ssl.create_default_context().get_ca_certs()))
try:
    import tkinter
    print(tkinter.Tcl().eval('info patchlevel'))
except ImportError as error:
    print(error)
try:
    import matplotlib
    print(matplotlib.matplotlib_fname())
except ImportError as error:
    print(error)
print(crypto.OSSL_PROVIDER_load(None, b'legacy') != 0)
)"};
  const RunOptions options = With("", {"PYTHONHASHSEED=0", "MPLCONFIGDIR=/tmp"});
  const RunResult outside = RunProgram(command, options);
  ASSERT_EQ(outside.exit, 0) << outside.Describe();
  const RunResult inside =
      RunCoffer({"--runtime", "python3", "--env", "PYTHONHASHSEED=0", "--env", "MPLCONFIGDIR=/tmp"},
                command, options);
  EXPECT_EQ(inside.exit, 0) << inside.Describe();
  EXPECT_EQ(inside.out, outside.out) << inside.Describe();
}

TEST_F(Programs, GitBringsItsOwnCommands) {
  if (!Exists("/usr/bin/git")) {
    GTEST_SKIP() << "git is not installed";
  }
  const RunResult result = RunCoffer(
      {"--runtime", "git"},
      {"sh", "-ec",
       "git init -q o; cd o; printf '#!/bin/sh\\necho hook\\n' > .git/hooks/pre-commit; chmod "
       "+x .git/hooks/pre-commit; git -c user.email=a@b -c user.name=n commit -q "
       "--allow-empty -m one; cd ..; git clone -q o c; git -C c log --format=%s"},
      With(""));
  EXPECT_EQ(result.out, "one\n") << result.Describe();
  EXPECT_TRUE(Contains(result.err, "hook")) << result.Describe();
}

TEST_F(Programs, GccBringsItsParts) {
  if (!Exists("/usr/bin/gcc")) {
    GTEST_SKIP() << "gcc is not installed";
  }
  const RunResult result = RunCoffer({"--runtime", "gcc", "--wall", "60s"},
                                     {"sh", "-ec",
                                      "printf '#include <stdio.h>\\nint "
                                      "main(void){puts(\"built\");}\\n' > a.c; gcc a.c -o a; ./a"},
                                     With(""));
  EXPECT_EQ(result.out, "built\n") << result.Describe();
}

// The kernel finds it by the path in the program, also below /tmp, which is private inside.
TEST_F(Programs, AProgramWithALoaderOfItsOwnStartsBelowTmp) {
  if (::access("/usr/bin/gcc", X_OK) != 0) {
    GTEST_SKIP() << "gcc is not installed";
  }
  fs::path loader = "/lib64/ld-linux-x86-64.so.2";
  if (!fs::exists(loader)) {
    loader = "/lib/ld-linux-aarch64.so.1";
  }
  ASSERT_TRUE(fs::exists(loader));
  dir_.MakeDir("own/bin");
  dir_.MakeDir("own/lib");
  const std::string own = dir_ / "own/lib/ld.so";
  ASSERT_TRUE(own.starts_with("/tmp/"));
  fs::copy_file(loader, own);
  const std::string source =
      dir_.Write("a.c",
                 "#include <stdio.h>\nint main(int n, char **v) { puts(\"started\"); if (n > 1) "
                 "puts(rename(v[1], v[2]) == 0 ? \"moved\" : \"kept\"); return 0; }\n");
  const std::string program = dir_ / "own/bin/tool";
  ASSERT_EQ(RunProgram({"/usr/bin/gcc", "-Wl,--dynamic-linker=" + own, source, "-o", program}).exit,
            0);
  ASSERT_EQ(RunProgram({program}).out, "started\n");
  const RunResult result = RunCoffer({}, {program}, With(""));
  EXPECT_EQ(result.out, "started\n") << result.Describe();
  // What is shown there stays as it is, and so does the host's.
  const RunResult held = RunCoffer({}, {program, own, own + "2"}, With(""));
  EXPECT_EQ(held.out, "started\nkept\n") << held.Describe();
  EXPECT_TRUE(fs::exists(own));
  EXPECT_EQ(RunProgram({program, own, own + "2"}).out, "started\nmoved\n") << "NO-CONTROL";
}

}  // namespace
}  // namespace coffer::test
