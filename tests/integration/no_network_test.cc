// SPDX-License-Identifier: Apache-2.0
//
// A call without hosts to reach says so when its program looked for the network: in the receipt what was tried, and on stderr
// the flag, because programs seldom say more than "could not resolve host". With hosts to reach, the same of an address.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/run.h"
#include "tests/support/temp_dir.h"

namespace coffer::test {
namespace {

constexpr const char* kHint = "this call had no network; --allow ";

Strings Python(const std::string& code) { return {"python3", "-c", "import socket\n" + code}; }

TEST(NoNetwork, AnAddressOutsideIsADenialWithItsFix) {
  for (const auto& [connect, target] :
       {std::pair("socket.create_connection(('192.0.2.7', 443), 5)", "192.0.2.7:443"),
        std::pair("s = socket.socket(socket.AF_INET6); s.connect(('2001:db8::7', 25))",
                  "[2001:db8::7]:25"),
        std::pair("s = socket.socket(type=socket.SOCK_DGRAM); s.connect(('192.0.2.8', 123))",
                  "192.0.2.8:123")}) {
    const RunResult run = RunCoffer({"--level", "container", "--trace"}, Python(connect));
    EXPECT_EQ(run.exit, 1) << run.Describe();
    ASSERT_EQ(run.receipt["denials"].size(), 1U) << run.Describe();
    const Json denial = run.receipt["denials"][0];
    EXPECT_EQ(denial["surface"], "egress");
    EXPECT_EQ(denial["operation"], "connect");
    EXPECT_EQ(denial["target"], target);
    EXPECT_TRUE(Contains(denial["fix"], "--allow HOST[:PORT]"));
    EXPECT_TRUE(Contains(run.err, std::string("refused 1x ") + target)) << run.err;
    EXPECT_TRUE(Contains(run.err, kHint + std::string("HOST"))) << run.err;
  }
}

TEST(NoNetwork, AUrlInTheCommandNamesTheHostToAllow) {
  const RunResult run = RunCoffer({}, {"curl", "-sS", "-m", "5", "https://api.example.com/v1"});
  EXPECT_EQ(run.exit, 6) << run.Describe();
  EXPECT_TRUE(Contains(run.err, kHint + std::string("api.example.com"))) << run.err;
}

// The command is the script's name then, and what it asks for stands in the script.
TEST(NoNetwork, AUrlInTheScriptNamesTheHostToAllow) {
  TempDir dir;
  const auto run = [&](const std::string& text) {
    std::ofstream(dir.path() + "/fetch.py", std::ios::trunc) << text;
    return RunProgram({CofferPath(), "run", dir.path() + "/fetch.py"});
  };
  const std::string fetch =
      "import urllib.request\nurllib.request.urlopen('https://api.example.com/v1')\n";
  const RunResult failed = run(fetch);
  EXPECT_EQ(failed.exit, 1) << failed.Describe();
  EXPECT_TRUE(Contains(failed.err, kHint + std::string("api.example.com"))) << failed.err;
  const RunResult caught = run("x = 'https://api.example.com/v1'\n");
  EXPECT_EQ(caught.exit, 0) << caught.Describe();
  EXPECT_FALSE(Contains(caught.err, kHint)) << "the control: nothing failed\n" << caught.err;
  const RunResult comment = run("# https://docs.example.com/\nraise SystemExit(1)\n");
  EXPECT_EQ(comment.exit, 1) << comment.Describe();
  EXPECT_FALSE(Contains(comment.err, kHint)) << "the control: a comment\n" << comment.err;
}

// Inside, the loopback is the command's own, and clients do not ask the proxy for it: nothing else says so.
TEST(NoNetwork, ARuleForLoopbackSaysWhatIsMeant) {
  const Strings connect = Python("socket.create_connection(('127.0.0.1', 9), 5)");
  const RunResult run = RunCoffer({"--level", "container", "--allow", "127.0.0.1:9"}, connect);
  EXPECT_EQ(run.exit, 1) << run.Describe();
  EXPECT_TRUE(Contains(run.err, "--allow tcp://server.test:9 --resolve server.test=127.0.0.1 "))
      << run.err;
  const RunResult other = RunCoffer({"--level", "container", "--allow", "192.0.2.7:9"}, connect);
  EXPECT_EQ(other.exit, 1) << other.Describe();
  EXPECT_FALSE(Contains(other.err, "server.test")) << "the control\n" << other.err;
}

// Clients that try again until their time is spent say nothing themselves.
TEST(NoNetwork, AProgramThatTriesUntilTheWallIsTold) {
  const std::string waits = "import time; time.sleep(60)";
  const RunResult tries = RunCoffer(
      {"--wall", "2s"}, {"python3", "-c", waits, "https://packages.example.com/left-pad"});
  EXPECT_EQ(tries.ErrorClass(), "limit.wall") << tries.Describe();
  EXPECT_TRUE(Contains(tries.err, kHint + std::string("packages.example.com"))) << tries.err;
  const RunResult waited = RunCoffer({"--wall", "2s"}, {"python3", "-c", waits});
  EXPECT_EQ(waited.ErrorClass(), "limit.wall") << waited.Describe();
  EXPECT_FALSE(Contains(waited.err, kHint)) << "the control\n" << waited.err;
}

// A name server is looked for by programs that ask it themselves.
TEST(NoNetwork, ALookForANameIsADenial) {
  const RunResult run = RunCoffer({"--level", "container"},
                                  Python("s = socket.socket(type=socket.SOCK_DGRAM)\n"
                                         "s.connect(('127.0.0.1', 53)); s.send(b'x'); s.recv(1)"));
  EXPECT_EQ(run.exit, 1) << run.Describe();
  ASSERT_EQ(run.receipt["denials"].size(), 1U) << run.Describe();
  EXPECT_EQ(run.receipt["denials"][0]["operation"], "resolve");
}

TEST(NoNetwork, NothingIsSaidOfAProgramThatFailsForAnotherReason) {
  const std::string own =
      "s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())\n"
      "try: socket.create_connection(('127.0.0.1', 9), 5)\n"
      "except ConnectionRefusedError: exit(3)";
  const RunResult run = RunCoffer({"--level", "container"}, Python(own));
  EXPECT_EQ(run.exit, 3) << run.Describe();
  EXPECT_EQ(run.receipt["denials"], Json::array());
  EXPECT_FALSE(Contains(run.err, kHint)) << run.err;
  const RunResult fine = RunCoffer({}, {"echo", "https://api.example.com/"});
  EXPECT_EQ(fine.exit, 0);
  EXPECT_FALSE(Contains(fine.err, kHint)) << fine.err;
}

// With hosts to reach there is a network, but no way to an address that a program has from elsewhere than from a name.
TEST(NoNetwork, AnAddressThatNoNameLeadsToIsSaidInOneLine) {
  const std::string line =
      ": hosts are reached by their names only; to allow it: name the host: --allow HOST[:PORT]";
  const auto tries = [](const std::string& addresses) {
    return Python("for address in " + addresses +
                  ":\n"
                  "  try: socket.create_connection((address, 443), 5)\n"
                  "  except OSError: pass\n");
  };
  const Strings flags = {"--level", "container", "--allow", "api.test"};
  const RunResult one = RunCoffer(flags, tries("('192.0.2.7', '192.0.2.7')"));
  EXPECT_EQ(one.exit, 0) << one.Describe();
  ASSERT_EQ(one.receipt["denials"].size(), 1U) << one.Describe();
  EXPECT_TRUE(Contains(one.err, "coffer: note: refused: 192.0.2.7:443" + line)) << one.err;

  const RunResult many =
      RunCoffer(flags, tries("['192.0.2.%d' % n for n in range(1, 21)] + ['2001:db8::7']"));
  EXPECT_EQ(many.receipt["denials"].size(), 21U) << many.Describe();
  EXPECT_TRUE(Contains(many.err, "refused: 192.0.2.1:443 and 20 more" + line)) << many.err;
  EXPECT_EQ(many.err.find("refused:"), many.err.rfind("refused:")) << "one line\n" << many.err;

  // It needs no receipt, and --quiet leaves it out.
  Strings bare = {CofferPath(), "run", "--allow", "api.test", "--"};
  const Strings command = tries("('192.0.2.7',)");
  bare.insert(bare.end(), command.begin(), command.end());
  const RunResult unrecorded = RunProgram(bare);
  EXPECT_TRUE(Contains(unrecorded.err, "refused: 192.0.2.7:443" + line)) << unrecorded.err;
  bare.insert(bare.begin() + 2, "--quiet");
  EXPECT_FALSE(Contains(RunProgram(bare).err, "refused:"));

  // The control: a program that keeps to its own loopback is told nothing.
  const RunResult own = RunCoffer(
      flags,
      Python(
          "s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())"));
  EXPECT_EQ(own.exit, 0) << own.Describe();
  EXPECT_EQ(own.receipt["denials"], Json::array()) << own.Describe();
  EXPECT_FALSE(Contains(own.err, "refused:")) << own.err;
}

// What nothing is asked about: the kernel counts it, and knows no address.
constexpr const char* kUnnamed = "addresses outside";
constexpr const char* kThreeDatagrams =
    "for address in ('192.0.2.7', '192.0.2.8', '224.0.0.251'):\n"
    "  s = socket.socket(type=socket.SOCK_DGRAM)\n"
    "  try: s.sendto(b'secret', (address, 123))\n"
    "  except OSError: pass\n";
constexpr const char* kTwoConnects =
    "for to in (socket.AF_INET, '192.0.2.7'), (socket.AF_INET6, '2001:db8::7'):\n"
    "  try: socket.socket(to[0]).connect((to[1], 443))\n"
    "  except OSError: pass\n";

// {operation, count} of the one denial without an address; {"", 0} if there is none.
std::pair<std::string, int> UnnamedIn(const RunResult& run) {
  std::pair<std::string, int> found;
  for (const Json& denial : run.receipt["denials"]) {
    if (denial["target"] == kUnnamed) {
      EXPECT_EQ(found.second, 0) << "one denial\n" << run.Describe();
      EXPECT_EQ(denial["surface"], "egress");
      EXPECT_TRUE(Contains(denial["fix"], "--allow HOST[:PORT]"));
      found = {denial["operation"], denial["count"]};
    }
  }
  return found;
}

TEST(NoNetwork, DatagramsAreCountedWhereverTheyGo) {
  using Found = std::pair<std::string, int>;
  for (const Strings& shown : {Strings{}, Strings{"--runtime", "python3"}}) {
    const bool named = !shown.empty();
    Strings flags = {"--level", "container"};
    flags.insert(flags.end(), shown.begin(), shown.end());
    const RunResult run = RunCoffer(flags, Python(kThreeDatagrams));
    EXPECT_EQ(UnnamedIn(run), Found(named ? "connect" : "send", 3)) << run.Describe();
    EXPECT_EQ(run.receipt["denials"].size(), 1U) << run.Describe();
    EXPECT_FALSE(Contains(run.err, kHint)) << "it went well";
    const RunResult fails = RunCoffer(flags, Python(std::string(kThreeDatagrams) + "exit(3)"));
    EXPECT_TRUE(Contains(fails.err, kHint + std::string("HOST"))) << fails.err;

    // With hosts to reach it is said in any case, with a receipt or without.
    flags.insert(flags.end(), {"--allow", "api.test"});
    const RunResult reaches = RunCoffer(flags, Python(kThreeDatagrams));
    EXPECT_EQ(UnnamedIn(reaches).second, 3) << reaches.Describe();
    Strings bare = {CofferPath(), "run"};
    bare.insert(bare.end(), flags.begin(), flags.end());
    bare.emplace_back("--");
    const Strings command = Python(kThreeDatagrams);
    bare.insert(bare.end(), command.begin(), command.end());
    const RunResult unrecorded = RunProgram(bare);
    EXPECT_TRUE(Contains(unrecorded.err,
                         "coffer: note: refused: addresses outside: hosts are reached by their "
                         "names only"))
        << unrecorded.err;
  }
}

// The kernel of a call that shows no directory of the host connects by itself.
TEST(NoNetwork, ConnectsOfANamedRuntimeAreCounted) {
  using Found = std::pair<std::string, int>;
  const Strings named = {"--level", "container", "--runtime", "python3"};
  const RunResult run = RunCoffer(named, Python(kTwoConnects));
  EXPECT_EQ(UnnamedIn(run), Found("connect", 2)) << run.Describe();
  // Where the supervisor connects, both have their address, and neither is counted twice.
  const RunResult served = RunCoffer({"--level", "container"}, Python(kTwoConnects));
  EXPECT_EQ(UnnamedIn(served).second, 0) << served.Describe();
  EXPECT_EQ(served.receipt["denials"].size(), 2U) << served.Describe();
  // Together: those with their addresses, and the rest.
  const RunResult both =
      RunCoffer({"--level", "container"}, Python(std::string(kTwoConnects) + kThreeDatagrams));
  EXPECT_EQ(UnnamedIn(both), Found("send", 3)) << both.Describe();
  EXPECT_EQ(both.receipt["denials"].size(), 3U) << both.Describe();
}

// Neither a flood, nor a network of its own, nor its end takes it back.
TEST(NoNetwork, WhatWasCountedCannotBeTakenBack) {
  const std::string leave =
      "import ctypes, os, signal\n"
      "libc = ctypes.CDLL(None, use_errno=True)\n"
      "for flags in (0x40000000, 0x50000000):\n"  // CLONE_NEWNET, and with CLONE_NEWUSER
      "  print(libc.unshare(flags), ctypes.get_errno(), flush=True)\n"
      "for name in ('snmp', 'snmp6'):\n"
      "  try: open('/proc/self/net/' + name, 'w'); print('written', flush=True)\n"
      "  except OSError: print('refused', flush=True)\n";
  const std::string flood =
      "s = socket.socket(type=socket.SOCK_DGRAM)\n"
      "for i in range(20000):\n"
      "  try: s.sendto(b'x', ('192.0.2.7', i % 60000 + 1))\n"
      "  except OSError: pass\n";
  const std::string killed = "os.kill(os.getpid(), signal.SIGKILL)";
  for (const Strings& flags :
       {Strings{"--level", "container"}, Strings{"--level", "container", "--runtime", "python3"}}) {
    const RunResult run = RunCoffer(flags, Python(leave + flood + killed));
    EXPECT_EQ(Lines(run.out), (Strings{"-1 1", "-1 1", "refused", "refused"})) << run.Describe();
    EXPECT_EQ(UnnamedIn(run).second, 20000) << run.Describe();
  }
  const RunResult waits =
      RunCoffer({"--level", "container", "--wall", "3s"},
                Python(std::string(kThreeDatagrams) + "import time\ntime.sleep(60)"));
  EXPECT_EQ(waits.ErrorClass(), "limit.wall") << waits.Describe();
  EXPECT_EQ(UnnamedIn(waits).second, 3) << waits.Describe();
}

// Programs that keep to themselves, or ask for names only, are told nothing.
TEST(NoNetwork, HonestProgramsAreNotCounted) {
  const std::string python =
      "import threading\n"
      "for name in ('localhost', '127.0.0.1', '::1', 'api.test', socket.gethostname()):\n"
      "  try: socket.getaddrinfo(name, 80)\n"
      "  except OSError: pass\n"
      "for family, here in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):\n"
      "  a = socket.socket(family, socket.SOCK_DGRAM); a.bind((here, 0))\n"
      "  b = socket.socket(family, socket.SOCK_DGRAM); b.sendto(b'x', a.getsockname())\n"
      "  assert a.recv(1) == b'x'\n"
      "  b.connect((here, 9)); b.close()\n"
      "  s = socket.create_server((here, 0), family=family)\n"
      "  socket.create_connection(s.getsockname()[:2]).close()\n";
  const std::vector<Strings> commands = {
      Python(python),
      {"getent", "ahosts", "api.test"},
      {"curl", "-sS", "-m", "20", "-o", "/dev/null", "https://api.test/"},
      {"git", "ls-remote", "https://api.test/x"},
      {"wget", "-q", "-T", "20", "-t", "1", "-O", "/dev/null", "https://api.test/"},
      {"node", "-e",
       "require('dns').lookup('localhost', () => {}); "
       "require('https').get('https://api.test/').on('error', () => {})"},
      {"java", "-version"},
      {"go", "version"}};
  size_t asked = 0;
  for (const Strings& command : commands) {
    if (RunProgram({"sh", "-c", "command -v " + command[0]}).exit != 0) {
      continue;  // not every host has all of them
    }
    ++asked;
    for (const Strings& flags : {Strings{"--level", "container"},
                                 Strings{"--level", "container", "--allow", "api.test"}}) {
      const RunResult run = RunCoffer(flags, command);
      EXPECT_EQ(UnnamedIn(run).second, 0) << run.Describe();
      EXPECT_FALSE(Contains(run.err, kUnnamed)) << run.err;
    }
  }
  EXPECT_GE(asked, 3U) << "NO-CONTROL: every host has the first three";
}

}  // namespace
}  // namespace coffer::test
