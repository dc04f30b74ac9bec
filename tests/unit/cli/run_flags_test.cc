// SPDX-License-Identifier: Apache-2.0
#include "cli/run_flags.h"

#include <gtest/gtest.h>

namespace coffer::cli {
namespace {

using call::RunRequest;
using Words = std::vector<std::string_view>;

Result<RunRequest> Parse(const Words& words) { return ParseRunFlags(words); }

RunRequest Accepted(const Words& words) {
  Result<RunRequest> request = Parse(words);
  EXPECT_TRUE(request.ok()) << (request.ok() ? "" : request.error().message);
  return request.ok() ? std::move(request).value() : RunRequest();
}

TEST(RunFlags, CommandAfterTheSeparator) {
  const RunRequest request = Accepted({"--", "ls", "-l", "--memory", "--", "1"});
  EXPECT_EQ(request.command, (std::vector<std::string>{"ls", "-l", "--memory", "--", "1"}));
  EXPECT_FALSE(request.script);
}

TEST(RunFlags, FileAndItsArguments) {
  const RunRequest request = Accepted({"--quiet", "script.py", "--memory", "-x", "--"});
  EXPECT_EQ(request.command, (std::vector<std::string>{"script.py", "--memory", "-x", "--"}));
  EXPECT_TRUE(request.script);
  EXPECT_TRUE(Accepted({"-"}).script) << "a single dash is a word";
}

TEST(RunFlags, ValuesAsNextWordOrAfterEquals) {
  for (const Words& words :
       {Words{"--memory", "64MiB", "--", "x"}, Words{"--memory=64MiB", "--", "x"}}) {
    EXPECT_EQ(Accepted(words).envelope.limits.memory, 64U << 20);
  }
  EXPECT_EQ(Accepted({"--env=A=b=c", "--", "x"}).envelope.env.front().second, "b=c");
  EXPECT_EQ(Accepted({"--memory", "1MiB", "--memory", "2MiB", "--", "x"}).envelope.limits.memory,
            2U << 20);
}

TEST(RunFlags, EveryLimitReachesItsPlace) {
  const policy::Limits limits =
      Accepted({"--cpu", "1s",           "--wall",   "2s",     "--memory", "3MiB",  "--processes",
                "4",     "--open-files", "5",        "--disk", "6MiB",     "--tmp", "7MiB",
                "--io",  "8MiB",         "--output", "9KiB",   "--",       "x"})
          .envelope.limits;
  EXPECT_EQ(limits.cpu, std::chrono::seconds(1));
  EXPECT_EQ(limits.wall, std::chrono::seconds(2));
  EXPECT_EQ(limits.memory, 3U << 20);
  EXPECT_EQ(limits.processes, 4U);
  EXPECT_EQ(limits.open_files, 5U);
  EXPECT_EQ(limits.disk, 6U << 20);
  EXPECT_EQ(limits.tmp, 7U << 20);
  EXPECT_EQ(limits.io, 8U << 20);
  EXPECT_EQ(limits.output, 9U << 10);
  EXPECT_EQ(Accepted({"--", "x"}).envelope.limits, policy::Limits());
}

TEST(RunFlags, Mounts) {
  const auto mounts =
      Accepted({"--ro", "/a", "--rw", "/b:/c", "--ro=/x:y:/z", "--out", "o", "--", "x"})
          .envelope.mounts;
  using policy::Access;
  EXPECT_EQ(mounts, (std::vector<policy::Mount>{{"/a", "", Access::kRead},
                                                {"/b", "/c", Access::kWrite},
                                                {"/x:y", "/z", Access::kRead},
                                                {"o", "/out", Access::kWrite}}));
  const auto dangerous = Accepted({"--dangerously-rw", "/etc/x:/x", "--", "x"}).envelope.mounts;
  EXPECT_EQ(dangerous, (std::vector<policy::Mount>{{"/etc/x", "/x", Access::kWrite,
                                                    /*dangerous=*/false, /*system=*/true}}));
}

TEST(RunFlags, ListsTakeManyWordsOnlyBeforeASeparator) {
  EXPECT_EQ(Accepted({"--in", "a", "b", "c", "--quiet", "--", "x"}).envelope.inputs,
            (std::vector<std::string>{"a", "b", "c"}));
  const RunRequest script = Accepted({"--in", "a", "script.sh", "b"});
  EXPECT_EQ(script.envelope.inputs, std::vector<std::string>{"a"});
  EXPECT_EQ(script.command, (std::vector<std::string>{"script.sh", "b"}));
  EXPECT_EQ(Accepted({"--in=a", "b", "--", "c"}).command,
            (std::vector<std::string>{"b", "--", "c"}))
      << "after = it is one word, even before a separator";
  EXPECT_EQ(Accepted({"--runtime", "python3,sh", "node", "--", "x"}).envelope.runtimes,
            (std::vector<std::string>{"python3", "sh", "node"}));
  EXPECT_EQ(Accepted({"--in", "a,b", "--", "x"}).envelope.inputs, std::vector<std::string>{"a,b"})
      << "a file name";
  const auto floor = Accepted({"--floor", "seccomp,landlock", "userns", "--", "x"}).envelope.floor;
  EXPECT_EQ(floor, (policy::LayerSet{policy::Layer::kSeccomp, policy::Layer::kLandlock,
                                     policy::Layer::kUserns}));
}

TEST(RunFlags, TheRest) {
  const RunRequest request =
      Accepted({"--level", "container", "--seccomp", "strict", "--uid", "0", "--cwd", "/tmp",
                "--tty", "--receipt", "-", "--trace", "--quiet", "--", "x"});
  EXPECT_EQ(request.envelope.level, policy::Level::kContainer);
  EXPECT_EQ(request.envelope.syscalls, policy::SyscallProfile::kStrict);
  EXPECT_EQ(request.envelope.uid, 0U);
  EXPECT_EQ(request.envelope.cwd, "/tmp");
  EXPECT_TRUE(request.envelope.tty && request.trace && request.quiet);
  EXPECT_EQ(request.receipt_path, "-");
  const RunRequest imported = Accepted({"--seccomp", "./p.json", "--", "x"});
  EXPECT_EQ(imported.envelope.syscalls, policy::SyscallProfile::kImported);
  EXPECT_EQ(imported.envelope.imported_seccomp, "./p.json");
}

TEST(RunFlags, RefusedByName) {
  const Words cases[] = {
      {},
      {"--"},
      {"--quiet"},
      {"--", ""},
      {""},
      {"--memory"},
      {"--memory", "--", "x"},
      {"--memory=", "--", "x"},
      {"--memory", "-1", "--", "x"},
      {"--memory", "0", "--", "x"},
      {"--memory", "1e99", "--", "x"},
      {"--memory", "10XB", "--", "x"},
      {"--memory", "99999999999999999999", "--", "x"},
      {"--cpu", "0", "--", "x"},
      {"--wall", "forever", "--", "x"},
      {"--processes", "0", "--", "x"},
      {"--processes", "1000001", "--", "x"},
      {"--open-files", "-5", "--", "x"},
      {"--level", "none", "--", "x"},
      {"--level", "", "--", "x"},
      {"--floor", "seccomp,", "--", "x"},
      {"--floor", "everything", "--", "x"},
      {"--seccomp", "unconfined", "--", "x"},
      {"--uid", "-1", "--", "x"},
      {"--uid", "65536", "--", "x"},
      {"--uid", "4294967296", "--", "x"},
      {"--uid", "root", "--", "x"},
      {"--uid", "", "--", "x"},
      {"--cwd", "relative", "--", "x"},
      {"--cwd", "/a/../b", "--", "x"},
      {"--cwd", "/..", "--", "x"},
      {"--env", "A", "--", "x"},
      {"--env", "=b", "--", "x"},
      {"--env", "A B=c", "--", "x"},
      {"--env", "A\n=c", "--", "x"},
      {"--ro", "", "--", "x"},
      {"--ro", ":/a", "--", "x"},
      {"--ro", "/a:", "--", "x"},
      {"--out", "", "--", "x"},
      {"--out", "a", "--out", "b", "--", "x"},
      {"--in", "", "--", "x"},
      {"--runtime", "a,,b", "--", "x"},
      {"--receipt", "", "--", "x"},
      {"--tty=yes", "--", "x"},
      {"--quiet=1", "--", "x"},
      {"--network", "host", "--", "x"},
      {"--privileged", "--", "x"},
      {"-v", "--", "x"},
      {"--Memory", "1", "--", "x"},
      {"--memor", "1", "--", "x"},
  };
  for (const Words& words : cases) {
    const Result<RunRequest> request = Parse(words);
    ASSERT_FALSE(request.ok()) << ::testing::PrintToString(words);
    EXPECT_EQ(request.error().kind, ErrorKind::kRefused) << ::testing::PrintToString(words);
    EXPECT_TRUE(request.error().code.starts_with("policy.")) << request.error().code;
    EXPECT_EQ(request.error().message.find('\n'), std::string::npos)
        << ::testing::PrintToString(words);
  }
}

TEST(RunFlags, ErrorsNameTheFlagAndStayOneLine) {
  const Result<RunRequest> bad = Parse({"--memory", "a\nb\x1b[2J", "--", "x"});
  ASSERT_FALSE(bad.ok());
  EXPECT_TRUE(bad.error().message.starts_with("--memory")) << bad.error().message;
  for (const char c : bad.error().message) {
    EXPECT_GE(static_cast<unsigned char>(c), 0x20);
  }
}

TEST(RunFlags, ManyAndStrangeArgumentsPassUnchanged) {
  std::vector<std::string> strings;
  for (int i = 0; i < 10000; ++i) {
    strings.push_back("arg\n" + std::to_string(i) + "\xff\x01");
  }
  Words words = {"--", "cmd", ""};
  words.insert(words.end(), strings.begin(), strings.end());
  const RunRequest request = Accepted(words);
  ASSERT_EQ(request.command.size(), 10002U);
  EXPECT_EQ(request.command[1], "");
  EXPECT_EQ(request.command[2 + 9999], strings[9999]);
  Words flags;
  for (int i = 0; i < 10000; ++i) {
    flags.push_back("--env=A=b");
  }
  flags.insert(flags.end(), {"--", "x"});
  EXPECT_EQ(Accepted(flags).envelope.env.size(), 10000U);
}

TEST(RunFlags, HelpNamesEveryFlag) {
  for (const char* flag :
       {"--ro",     "--rw",     "--in",        "--out",        "--level", "--runtime", "--cpu",
        "--wall",   "--memory", "--processes", "--open-files", "--disk",  "--tmp",     "--io",
        "--output", "--env",    "--cwd",       "--uid",        "--floor", "--seccomp", "--receipt",
        "--tty",    "--quiet",  "--trace",     "--state"}) {
    EXPECT_NE(RunHelp().find(flag), std::string_view::npos) << flag;
  }
}

TEST(RunFlags, PortsOfABackgroundProcess) {
  const Result<RunRequest> several = Parse({"--port", "8000,8001", "--port=9000", "--", "x"});
  ASSERT_TRUE(several.ok()) << several.error().message;
  EXPECT_EQ(several->ports, (std::vector<uint16_t>{8000, 8001, 9000}));
  for (const char* wrong : {"80", "65536", "-1", "", "8000x", "8000,", "8000,8000",
                            "2001,2002,2003,2004,2005,2006,2007,2008,2009"}) {
    const Result<RunRequest> refused = Parse({"--port", wrong, "--", "x"});
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_EQ(refused.error().code, "policy.value") << wrong;
  }
}

}  // namespace
}  // namespace coffer::cli
