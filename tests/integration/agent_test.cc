// SPDX-License-Identifier: Apache-2.0
//
// An agent that itself runs inside: `coffer run --project . --tty --rw ~/.agent:/workspace/.agent -- AGENT`.
//
// The stand-in does what terminal agents do: it reads its configuration from HOME and keeps a session there, takes over
// the terminal, notices its size, starts children with pipes, with a terminal and with a UNIX socket, waits for a
// browser's callback on a loopback port, and edits the project.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/person.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAgent = R"python(
import http.server, json, os, pty, signal, socket, subprocess, sys, termios, threading, tty

home = os.environ["HOME"] + "/.agent"
name = json.load(open(home + "/config.json"))["name"]

def size(*_):
    columns, rows = os.get_terminal_size()
    print(f"size {rows}x{columns}", end="\r\n", flush=True)

def in_a_terminal():
    seen = b""
    pid, fd = pty.fork()
    if pid == 0:
        os.execlp("sh", "sh", "-c", "test -t 1 && echo child-has-a-tty")
    try:
        while block := os.read(fd, 1024):
            seen += block
    except OSError:
        pass
    os.waitpid(pid, 0)
    return seen.decode().strip()

def over_a_socket():
    path = os.environ["TMPDIR"] + "/agent.sock"
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    child = subprocess.Popen([sys.executable, "-c",
        f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({path!r}); s.sendall(b'child-on-a-socket')"])
    answer = server.accept()[0].recv(99).decode()
    child.wait()
    return answer

def callback():
    got = []
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            got.append(self.path)
            self.send_response(200)
            self.end_headers()
        def log_message(self, *_): pass
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    opened = subprocess.Popen([os.environ["BROWSER"], f"http://localhost:{server.server_port}/callback?code=42"])
    server.handle_request()
    opened.wait()
    return got[0]

def plant():
    try:
        open(".git/hooks/pre-commit", "w").write("#!/bin/sh\n")
        return "hook-planted"
    except OSError as error:
        return "hook-refused"

print("name " + name, flush=True)
before = termios.tcgetattr(0)
tty.setraw(0)
signal.signal(signal.SIGWINCH, size)
size()
actions = {"t": in_a_terminal, "s": over_a_socket, "c": callback, "p": plant,
           "g": lambda: "git " + subprocess.check_output(["git", "log", "--format=%s"], text=True).strip(),
           "w": lambda: open("made.txt", "w").write("by the agent") and "wrote-the-project"}
while (key := os.read(0, 1).decode()) != "q":
    print(actions[key](), end="\r\n", flush=True)
termios.tcsetattr(0, termios.TCSADRAIN, before)
json.dump({"session": 1}, open(home + "/session.json", "w"))
print("bye", flush=True)
)python";

class Agent : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Exists("/usr/bin/git")) {
      GTEST_SKIP() << "git is not installed here";
    }
    home_ = dir_.MakeDir("home");
    project_ = dir_.MakeDir("project");
    dir_.Write("project/agent.py", kAgent);
    // What $BROWSER is on a developer's machine: a program that takes an address.
    dir_.Write(
        "project/browser",
        "#!/usr/bin/python3\nimport sys, urllib.request\nurllib.request.urlopen(sys.argv[1])\n",
        0755);
    dir_.Write("home/.agent/config.json", R"({"name": "stand-in"})");
    dir_.Write("home/.ssh/id", token_);
    RunOptions options;
    options.cwd = project_;
    options.environment = {{"HOME=" + home_, "PATH=/usr/bin:/bin"}};
    const RunResult made = RunProgram(
        {"/bin/sh", "-ec",
         "git init -q .; git -c user.email=a@b -c user.name=n commit -q --allow-empty -m first"},
        options);
    ASSERT_EQ(made.exit, 0) << made.Describe();
  }

  Strings Command() const {
    return {CofferPath(),
            "run",
            "--project",
            project_,
            "--tty",
            "--rw",
            home_ + "/.agent:/workspace/.agent",
            "--env",
            "BROWSER=" + project_ + "/browser",
            "--",
            "python3",
            project_ + "/agent.py"};
  }

  TempDir dir_;
  std::string home_;
  std::string project_;
  const std::string token_ = NewToken();
};

TEST_F(Agent, ATerminalProgramWithChildrenSocketsAndACallback) {
  Person person(Command());
  ASSERT_TRUE(person.Sees("name stand-in")) << person.screen();
  EXPECT_TRUE(person.Sees("size 30x100")) << person.screen();
  person.Resize(44, 111);
  EXPECT_TRUE(person.Sees("size 44x111")) << person.screen();
  person.Type("t");
  EXPECT_TRUE(person.Sees("child-has-a-tty")) << person.screen();
  person.Type("s");
  EXPECT_TRUE(person.Sees("child-on-a-socket")) << person.screen();
  person.Type("c");
  EXPECT_TRUE(person.Sees("/callback?code=42")) << person.screen();
  person.Type("g");
  EXPECT_TRUE(person.Sees("git first")) << person.screen();
  person.Type("w");
  EXPECT_TRUE(person.Sees("wrote-the-project")) << person.screen();
  person.Type("p");
  EXPECT_TRUE(person.Sees("hook-refused")) << person.screen();
  person.Type("q");
  EXPECT_TRUE(person.Sees("bye")) << person.screen();
  EXPECT_EQ(person.Wait(), 0) << person.screen();
  EXPECT_TRUE(person.SettingsRestored());
  EXPECT_EQ(dir_.Read("project/made.txt"), "by the agent");
  EXPECT_EQ(dir_.Read("home/.agent/session.json"), R"({"session": 1})");
  EXPECT_FALSE(Exists(project_ + "/.git/hooks/pre-commit"));
}

TEST_F(Agent, ItSeesItsOwnConfigurationAndNothingElseOfTheHome) {
  const std::string look = "cat ~/.agent/config.json; ls -A ~; cat " + home_ + "/.ssh/id";
  RunOptions options;
  options.environment = {{"HOME=" + home_, "PATH=/usr/bin:/bin"}};
  const RunResult control = RunProgram({"/bin/sh", "-c", look}, options);
  EXPECT_TRUE(Contains(control.out, token_)) << "NO-CONTROL " << control.Describe();
  const RunResult inside =
      RunCoffer({"--project", project_, "--rw", home_ + "/.agent:/workspace/.agent"},
                {"sh", "-c", look}, options);
  EXPECT_TRUE(Contains(inside.out, "stand-in")) << inside.Describe();
  EXPECT_FALSE(Contains(inside.out, token_)) << inside.Describe();
  EXPECT_FALSE(Contains(inside.out, ".ssh")) << inside.Describe();
}

}  // namespace
}  // namespace coffer::test
