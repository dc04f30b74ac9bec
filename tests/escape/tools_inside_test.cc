// SPDX-License-Identifier: Apache-2.0
//
// Hostile code in a run that offers tools: another tool, a file, more time or memory than the run has, and everything that
// bytes on the socket can be. Each with a control that shows the same thing at work where it is allowed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/tools_fixture.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

using ToolsInsideEscape = ToolsInside;

std::string MountOf(const std::string& host, const std::string& mode = "read") {
  return "[[files.mount]]\nhost = \"" + host + "\"\nat = \"/data\"\nmode = \"" + mode + "\"\n";
}

TEST_F(ToolsInsideEscape, AToolGetsNoFileThatTheRunDoesNotHave) {
  TempDir secret;
  const std::string token = NewToken();
  secret.Write("secret", token);
  Declare("read", "cat /data/secret", MountOf(secret.path()));
  const RunResult outside =
      RunProgram({CofferPath(), "call", "read", "--state", state_, "--tools", manifests_.path()});
  EXPECT_EQ(outside.out, token) << "NO-CONTROL\n" << outside.Describe();

  const RunResult inside = RunBash("read", "coffer call read");
  EXPECT_EQ(inside.exit, 120) << inside.Describe();
  EXPECT_FALSE(Contains(inside.out + inside.err, token)) << "OPEN\n" << inside.Describe();
  EXPECT_TRUE(Contains(inside.err, "policy.narrow")) << inside.err;
  EXPECT_FALSE(Contains(inside.err, secret.path())) << "no path of the host is told inside";

  const RunResult granted = RunBash("read", "coffer call read", {"--ro", secret.path()});
  EXPECT_EQ(granted.out, token) << "NO-CONTROL: both have it\n" << granted.Describe();
}

// The run's own --allow does not help: rules of a run and of a manifest are not compared.
TEST_F(ToolsInsideEscape, AToolWithANetworkIsRefusedInside) {
  Declare("reach", "exec 3<>/dev/tcp/127.0.0.1/3128 && echo proxy",
          "[[network.allow]]\nhost = \"api.example.com\"\ntls = \"splice\"\n");
  const RunResult outside =
      RunProgram({CofferPath(), "call", "reach", "--state", state_, "--tools", manifests_.path()});
  EXPECT_EQ(outside.out, "proxy\n") << "NO-CONTROL\n" << outside.Describe();

  for (const Strings& flags : {Strings{}, Strings{"--allow", "api.example.com"}}) {
    const RunResult inside = RunBash("reach", "coffer call reach", flags);
    EXPECT_EQ(inside.exit, 120) << inside.Describe();
    EXPECT_FALSE(Contains(inside.out, "proxy")) << "OPEN\n" << inside.Describe();
    EXPECT_TRUE(Contains(inside.err, "policy.narrow")) << inside.err;
  }
}

TEST_F(ToolsInsideEscape, AToolWritesNothingThatTheRunMayOnlyRead) {
  TempDir shared;
  if (IsRoot()) {  // a declared tool does not write where root owns
    ASSERT_EQ(chown(shared.path().c_str(), 65534, 65534), 0);
  }
  Declare("plant", "echo planted > /data/planted", MountOf(shared.path(), "write"));
  const RunResult refused = RunBash("plant", "coffer call plant", {"--ro", shared.path()});
  ExpectRan(refused);
  EXPECT_NE(refused.exit, 0) << refused.Describe();
  EXPECT_FALSE(Exists(shared / "planted")) << "OPEN";
  const RunResult granted = RunBash("plant", "coffer call plant", {"--rw", shared.path()});
  EXPECT_EQ(granted.exit, 0) << "NO-CONTROL\n" << granted.Describe();
  EXPECT_TRUE(Exists(shared / "planted"));
}

// The run may write to a directory above the one that a tool mounts, and puts a link in its place.
TEST_F(ToolsInsideEscape, ALinkInThePlaceOfAMountLeadsNowhere) {
  TempDir secret;
  const std::string token = NewToken();
  secret.Write("secret", token);
  TempDir shared;
  shared.Write("part/secret", "harmless\n");
  if (IsRoot()) {
    ASSERT_EQ(RunProgram({"chown", "-R", "65534:65534", shared.path()}).exit, 0);
  }
  Declare("read", "cat /data/secret", MountOf(shared / "part"));
  const std::string script = "coffer call read; mv /shared/part /shared/was; ln -s " +
                             secret.path() + " /shared/part; coffer call read";
  const RunResult result = RunBash("read", script, {"--rw", shared.path() + ":/shared"});
  EXPECT_TRUE(result.out.starts_with("harmless\n")) << "NO-CONTROL\n" << result.Describe();
  EXPECT_FALSE(Contains(result.out + result.err, token)) << "OPEN\n" << result.Describe();
  EXPECT_FALSE(Contains(result.err, secret.path())) << "OPEN: told where the link leads";
  EXPECT_FALSE(Contains(result.err, shared.path())) << "OPEN: told a path of the host";
  EXPECT_NE(result.exit, 0) << result.Describe();
}

TEST_F(ToolsInsideEscape, NoOtherToolAndNoOtherCallIsReached) {
  Declare("greet", "echo hello");
  Declare("other", "echo reached");
  const RunResult result = RunPython("greet", R"(
for name in ["other", "bash", "run", "shell", "start-process", "", "../other", "greet\u0000", "OTHER", "x" * 100000]:
    answer = call(name)
    print(answer.get("stdout", ""), answer.get("code"))
for method in ["resources/list", "resources/read", "prompts/list", "sampling/createMessage", "initialize", "server/x"]:
    print(method, ask(method, {"name": "other", "uri": "file:///etc/passwd"}).get("error", {}).get("code"))
print(call("greet")["stdout"])
)");
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_FALSE(Contains(result.out, "reached")) << "OPEN\n" << result.out;
  EXPECT_TRUE(Contains(result.out, "hello")) << "NO-CONTROL\n" << result.Describe();
  for (const std::string& line : Lines(result.out)) {
    EXPECT_TRUE(line.empty() || Contains(line, "-326") || line == "hello") << line;
  }
}

// A call of a call has no socket and no program for it, so there is no depth and no cycle.
TEST_F(ToolsInsideEscape, AToolCannotCallFurther) {
  Declare("nest",
          "echo socket=$COFFER_TOOLS_SOCKET; ls -d /run/coffer 2>&1; type coffer 2>&1; true");
  const RunResult result = RunBash("nest", "ls -d /run/coffer; coffer call nest");
  const Strings lines = Lines(result.out);
  ASSERT_GE(lines.size(), 3U) << result.Describe();
  EXPECT_EQ(lines[0], "/run/coffer") << "NO-CONTROL";
  EXPECT_EQ(lines[1], "socket=") << "OPEN";
  EXPECT_TRUE(Contains(result.out, "No such file")) << result.out;
  EXPECT_TRUE(Contains(result.out, "not found")) << result.out;
}

TEST_F(ToolsInsideEscape, NoKeyNoStateAndNoAddressIsInside) {
  Declare("greet", "echo hello");
  const RunResult result =
      RunBash("greet", "env; cat /proc/self/mounts; ls -laR /run/coffer; ls " + state_ + " " +
                           manifests_.path() +
                           "; echo hi > /run/coffer/x; rm -f /run/coffer/tools.sock; "
                           "coffer tools list --json; true");
  for (const std::string& kept : {state_, std::string("coffer_")}) {
    EXPECT_FALSE(Contains(result.out, kept)) << kept << "\n" << result.out;
  }
  EXPECT_FALSE(Contains(result.out, manifests_.path())) << result.out;
  EXPECT_TRUE(Contains(result.out, "tools.sock")) << "NO-CONTROL";
}

TEST_F(ToolsInsideEscape, ACallHasNoMoreTimeOrMemoryThanItsRun) {
  Declare("slow", "sleep 30; echo woke",
          "[limits]\nwall = \"60s\"\ncpu = \"60s\"\nmemory = \"256MiB\"\n");
  const RunResult timed = RunBash("slow", "coffer call slow; echo status $?", {"--wall", "3s"});
  ExpectRan(timed);
  EXPECT_LT(timed.took.count(), 20) << timed.Describe();
  EXPECT_FALSE(Contains(timed.out, "woke")) << "OPEN";

  Declare("eat", "head -c 100000000 /dev/zero | tail | wc -c",
          "[limits]\nmemory = \"512MiB\"\ncpu = \"60s\"\n");
  const RunResult little =
      RunBash("eat", "coffer call eat", {"--memory", "64MiB", "--cpu", "60s", "--wall", "60s"});
  ExpectRan(little);
  EXPECT_FALSE(Contains(little.out, "100000000")) << "OPEN\n" << little.Describe();
  const RunResult enough =
      RunBash("eat", "coffer call eat", {"--memory", "512MiB", "--cpu", "60s", "--wall", "60s"});
  EXPECT_TRUE(Contains(enough.out, "100000000")) << "NO-CONTROL\n" << enough.Describe();

  Declare("burn", "while :; do :; done", "[limits]\nwall = \"60s\"\ncpu = \"60s\"\n");
  const RunResult burnt = RunBash(
      "burn",
      "began=${EPOCHREALTIME/./}; coffer call burn; echo first $?; then=${EPOCHREALTIME/./}; "
      "coffer call burn; echo second $?; "
      "(( 2 * (${EPOCHREALTIME/./} - then) < then - began )) && echo shorter",
      {"--cpu", "2s", "--wall", "60s"});
  EXPECT_TRUE(Contains(burnt.out, "first 122")) << burnt.Describe();
  EXPECT_TRUE(Contains(burnt.out, "second 12")) << burnt.Describe();
  EXPECT_TRUE(Contains(burnt.out, "shorter"))
      << "the second call has what the first one left: nothing\n"
      << burnt.Describe();
}

TEST_F(ToolsInsideEscape, BytesThatAreNoRequestAreAnsweredOrCutOff) {
  Declare("greet", "echo hello");
  const RunResult result = RunPython("greet", R"(
def raw(data, wait=5):
    s = connect(); s.settimeout(wait)
    try:
        s.sendall(data)
        return s.recv(65536)[:60]
    except OSError as e:
        return e.__class__.__name__
print(raw(b"\x00\xff\xfe\n"))
print(raw(b"[" * 100000 + b"\n"))
print(raw(b'{"jsonrpc":"2.0","id":null,"method":"tools/call"}\n'))
print(raw(b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}\n'))
print(raw(b"x" * (3 << 20) + b"\n"))
print(raw(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n' * 5000))
half = [connect() for _ in range(3)]
for s in half: s.sendall(b'{"jsonrpc":')
closing = connect(); closing.sendall(line("tools/call", {"name": "greet"})); closing.close()
import array
fds = connect(); fds.sendmsg([line("tools/list", {})], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
print(len(fds.recv(100)))
print(call("greet")["stdout"])
)");
  EXPECT_EQ(result.exit, 0) << result.Describe();
  const Strings lines = Lines(result.out);
  ASSERT_GE(lines.size(), 8U) << result.Describe();
  for (const int bad : {0, 1, 2, 3, 4}) {
    EXPECT_TRUE(Contains(lines[bad], "\"error\"") || Contains(lines[bad], "jsonrpc"))
        << bad << ": " << lines[bad];
  }
  EXPECT_EQ(lines[7], "hello") << "NO-CONTROL: a request among all that is answered\n"
                               << result.Describe();
}

TEST_F(ToolsInsideEscape, AThousandConnectionsAndAClientThatDoesNotRead) {
  Declare("greet", "echo hello");
  Declare("print", "head -c 900000 /dev/zero | tr '\\0' 'x'");
  const RunResult result =
      RunPython("greet,print", R"(
held = []
for _ in range(1000):
    s = socket.socket(socket.AF_UNIX); s.setblocking(False)
    try:
        s.connect(os.environ["COFFER_TOOLS_SOCKET"]); held.append(s)
    except OSError: s.close()
deaf = held.pop() if held else connect()
deaf.setblocking(True)
deaf.settimeout(5)
try:
    for i in range(20): deaf.sendall(line("tools/call", {"name": "print"}, i))
except OSError as e: print("cut", e.__class__.__name__)
print("held", len(held) > 0)
begun = time.time()
print(call("greet")["stdout"])
print("soon", time.time() - begun < 20)
)",
                {"--open-files", "2000", "--wall", "60s", "--cpu", "20s", "--memory", "1GiB"});
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_TRUE(Contains(result.out, "held True")) << "NO-CONTROL\n" << result.Describe();
  EXPECT_TRUE(Contains(result.out, "hello")) << result.Describe();
  EXPECT_TRUE(Contains(result.out, "soon True")) << result.Describe();
}

// The manifests decide what a call may do, so the run that makes calls must not write them.
TEST_F(ToolsInsideEscape, TheManifestsAreNotTheRunsToWrite) {
  Declare("greet", "echo hello");
  const RunResult refused = RunBash("greet", "true", {"--rw", manifests_.path()});
  EXPECT_EQ(refused.exit, 120) << refused.Describe();
  const RunResult shown = RunBash("greet", "coffer call greet", {"--ro", manifests_.path()});
  EXPECT_EQ(shown.out, "hello\n") << "NO-CONTROL\n" << shown.Describe();
}

}  // namespace
}  // namespace coffer::test
