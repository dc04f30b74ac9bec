// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/policy/manifest/manifest_text.h"

namespace coffer::policy {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::vector<std::string> Mistakes(const std::string& text) {
  const ParsedManifest parsed = ParseManifest(text, "f");
  EXPECT_EQ(parsed.manifest.has_value(), parsed.mistakes.empty());
  std::vector<std::string> lines;
  for (const Mistake& mistake : parsed.mistakes) {
    lines.push_back(FormatMistake("f", mistake));
  }
  return lines;
}

TEST(ManifestParse, TheSmallestManifestGrantsNothing) {
  const Manifest m = MustParse(kSmallest);
  EXPECT_EQ(m.tool.name, "x");
  EXPECT_EQ(m.tool.effect, Effect::kIrreversible);
  EXPECT_FALSE(m.tool.effect_declared);
  EXPECT_EQ(m.input_schema, R"({"type":"object","additionalProperties":false})");
  EXPECT_EQ(m.isolation.level, Level::kContainer);
  EXPECT_TRUE(m.isolation.floor.empty());
  EXPECT_EQ(m.limits, Limits());
  EXPECT_EQ(m.workspace, Workspace::kFresh);
  EXPECT_THAT(m.mounts, IsEmpty());
  EXPECT_THAT(m.network, IsEmpty());
  EXPECT_THAT(m.credentials, IsEmpty());
  EXPECT_EQ(m.connections, 0U);
  EXPECT_TRUE(m.AsksForApproval());
  EXPECT_THAT(m.dangers, IsEmpty());
  EXPECT_EQ(m.run.cwd, "/workspace");
}

TEST(ManifestParse, ReadsEveryField) {
  const Manifest m = MustParse(kEverything);
  EXPECT_EQ(m.tool.version, "1.2.0");
  EXPECT_EQ(m.tool.owner, "billing-platform");
  EXPECT_EQ(m.tool.effect, Effect::kReversible);
  EXPECT_THAT(m.input_schema, HasSubstr("\"maxLength\":65536"));
  EXPECT_EQ(m.run.runtime, "python3");
  ASSERT_THAT(m.run.argv, SizeIs(5));
  EXPECT_TRUE(m.run.argv[2].group);
  EXPECT_EQ(m.run.argv[2].words[1].text, "lines");
  EXPECT_EQ(m.run.argv[4].words[0].kind, WordKind::kParameter);
  ASSERT_THAT(m.run.env, SizeIs(2));
  EXPECT_EQ(m.run.env[0].first, "LANG");
  EXPECT_EQ(m.run.env[1].second.kind, WordKind::kParameter);
  EXPECT_EQ(m.run.stdin_word->text, "code");
  EXPECT_EQ(m.run.cwd, "/data");
  ASSERT_THAT(m.run.paths, SizeIs(1));
  EXPECT_EQ(m.run.paths[0].mount, "/data");
  EXPECT_TRUE(m.isolation.floor.Has(Layer::kCgroupMemory));
  EXPECT_EQ(m.isolation.syscalls, SyscallProfile::kStrict);
  EXPECT_EQ(m.limits.cpu, Nanos(std::chrono::seconds(11)));
  EXPECT_EQ(m.limits.memory, 300ULL << 20);
  EXPECT_EQ(m.limits.inodes, 77U);
  EXPECT_EQ(m.connections, 16U);
  EXPECT_EQ(m.workspace, Workspace::kSessionRead);
  ASSERT_THAT(m.mounts, SizeIs(2));
  EXPECT_EQ(m.mounts[1].mode, MountMode::kStaged);
  EXPECT_EQ(m.host_paths().front().first, "/srv/invoices");
  ASSERT_THAT(m.network, SizeIs(1));
  EXPECT_EQ(m.network[0].ports.front(), (PortRange{443, 443}));
  EXPECT_EQ(m.network[0].rate->count, 10U);
  EXPECT_EQ(m.credentials[0].header, "Authorization: Bearer {}");
  EXPECT_EQ(m.approval.when, ApprovalWhen::kDiff);
  EXPECT_EQ(m.approval.quorum, 2U);
  EXPECT_EQ(m.approval.window, Nanos(0));
  EXPECT_EQ(m.output_schema, R"({"type":"object"})");
  EXPECT_THAT(m.rate.calls, ElementsAre(RateRule{10, std::chrono::seconds(1)}));
  EXPECT_EQ(m.rate.concurrency, 4U);
  EXPECT_EQ(m.allow_examples[0].args, R"({"code":"1","file":"a.txt"})");
  EXPECT_EQ(m.deny_examples[0].why, "nothing to run");
  EXPECT_EQ(m.PlaceOf("/tool/name"), (Position{2, 1}));
  EXPECT_EQ(m.PlaceOf("/tool/nothing/here"), (Position{1, 2}));
  EXPECT_EQ(m.PlaceOf("/nothing"), (Position{1, 1}));
}

TEST(ManifestParse, WhatIsInsideConnections) {
  const auto rule = [](const std::string& text) {
    return MustParse(std::string(kSmallest) + "[[network.allow]]\nhost = \"a.example.com\"\n" +
                     text)
        .network.front();
  };
  EXPECT_EQ(rule("paths = [\"/**\"]\n").tls, TlsMode::kIntercept);
  const NetworkRule spliced = rule(
      "tls = \"splice\"\nbytes_out = \"1MiB\"\nbytes_in = \"2GiB\"\nask = true\n"
      "connections = 2\ntime = \"90s\"\n");
  EXPECT_EQ(spliced.tls, TlsMode::kSplice);
  EXPECT_THAT(spliced.methods, IsEmpty()) << "every method";
  EXPECT_EQ(spliced.bytes_out, 1ULL << 20);
  EXPECT_EQ(spliced.bytes_in, 2ULL << 30);
  EXPECT_TRUE(spliced.ask);
  EXPECT_EQ(spliced.connections, 2U);
  EXPECT_EQ(spliced.time, std::chrono::seconds(90));
  EXPECT_EQ(rule("tls = \"plain\"\npaths = [\"/**\"]\n").ports.front(), (PortRange{80, 80}));
  EXPECT_EQ(rule("tls = \"none\"\nports = [22]\n").tls, TlsMode::kNone);
}

// Each line is appended to, or replaces, a part of the smallest manifest; the text starts with position and message.
TEST(ManifestParse, EveryMistakeHasItsPlaceAndAWayOut) {
  struct Case {
    const char* text;  // after kSmallest, which has 6 lines
    const char* expected;
  };
  const Case cases[] = {
      {"[limts]\n", "f:7:2: the file has no table \"limts\": did you mean limits?"},
      {"[limits]\nmemroy = \"1GiB\"\n",
       "f:8:1: [limits] has no key \"memroy\": did you mean memory?"},
      {"[limits]\nmemory = 5\n",
       "f:8:10: limits.memory: a string is wanted, not a whole number: write it in quotes"},
      {"[limits]\nmemory = \"lots\"\n",
       "f:8:10: limits.memory: \"lots\" is not a size: write a whole number with"},
      {"[limits]\nmemory = \"0\"\n", "f:8:10: limits.memory: \"0\" is not a size"},
      {"[limits]\nprocesses = \"5\"\n",
       "f:8:13: limits.processes: a whole number is wanted, not a string"},
      {"[limits]\nprocesses = 0\n",
       "f:8:13: limits.processes: 0 is out of range: write a whole number from 1 to 1000000"},
      {"[limits]\nprocesses = -9223372036854775808\n",
       "f:8:13: limits.processes: -9223372036854775808 is out of range"},
      {"[limits]\ncpu = \"\"\n", "f:8:7: limits.cpu: an empty string"},
      {"[limits]\ncpu = \"-1s\"\n", "f:8:7: limits.cpu: \"-1s\" is not a duration"},
      {"limits = 3\n", "f:7:1: [run] has no key \"limits\""},
      {"[isolation]\nlevel = \"vm\"\n",
       "f:8:9: isolation.level: the level vm does not exist in this version"},
      {"[isolation]\nlevel = \"jail\"\n", "f:8:9: isolation.level: there is no level \"jail\""},
      {"[isolation]\nfloor = []\n", "f:8:9: isolation.floor: an empty list"},
      {"[isolation]\nfloor = [\"netns\", \"wall\"]\n",
       "f:8:19: isolation.floor: there is no layer \"wall\""},
      {"[isolation]\nfloor = [\"netns\", \"netns\"]\n", "f:8:19: isolation.floor: \"netns\" twice"},
      {"[isolation]\nsyscalls = \"none\"\n",
       "f:8:12: isolation.syscalls: \"none\" is not one of strict, default, compat"},
      {"[files]\nworkspace = \"shared\"\n",
       "f:8:13: files.workspace: \"shared\" is not one of fresh, session-read, session-write"},
      {"[files]\nmount = []\n", "f:8:9: files.mount: an empty list"},
      {"[files]\nexports = []\n", "f:8:11: files.exports: an empty list"},
      {"[files]\nexports = [\"a/**\", \"../b\"]\n",
       "f:8:20: files.exports: \"../b\" is not a path in /workspace"},
      {"[files]\nmount = \"/srv/x\"\n",
       "f:8:9: files.mount: an array is wanted, not a string: write [[files.mount]] above each"},
      {"[[files.mount]]\nat = \"/data\"\n",
       "f:7:1: files.mount.host is missing: write host = \"/srv/invoices\""},
      {"[[files.mount]]\nhost = \"/srv/x\"\n", "f:7:1: files.mount.at is missing"},
      {"[[files.mount]]\nhost = \"/srv/x\"\nat = \"/etc/x\"\n",
       "f:9:6: files.mount.at: /etc/x is a place the boundary makes itself"},
      {"[[files.mount]]\nhost = \"/srv/x\"\nat = \"data\"\n",
       "f:9:6: files.mount.at: \"data\" is not an absolute path"},
      {"[[files.mount]]\nhost = \"/srv/x\"\nat = \"/data\"\nmode = \"rw\"\n",
       "f:10:8: files.mount.mode: \"rw\" is not one of read, staged, write"},
      {"[[files.mount]]\nhost = \"/srv/x\"\nat = \"/d\"\n[[files.mount]]\nhost = \"/srv/y\"\nat = "
       "\"/d/e\"\n",
       "f:12:6: files.mount.at: /d and /d/e overlap"},
      {"[network]\n", "f:7:1: [network] allows nothing"},
      {"[network]\nallow = []\n", "f:8:9: network.allow: an empty list"},
      {"[[network.allow]]\nhost = \"a.example.com\"\n", "f:7:1: network.allow.paths is missing"},
      {"[[network.allow]]\nhost = \"a.example.com\"\npaths = [\"/**\"]\nports = \"1-1024\"\n",
       "f:10:9: network.allow.ports: a list of single ports is wanted"},
      {"[[network.allow]]\nhost = \"a.example.com\"\npaths = [\"/**\"]\nports = [443, "
       "\"8000-9000\"]\n",
       "f:10:15: network.allow.ports: not a port"},
      {"[[network.allow]]\nhost = \"a.example.com\"\npaths = [\"/**\"]\nports = [0]\n",
       "f:10:10: network.allow.ports: not a port"},
      {"[[network.allow]]\nhost = \"a.example.com\"\npaths = [\"/a**\"]\n",
       "f:9:10: network.allow.paths: \"/a**\": a star is a whole part"},
      {"[[network.allow]]\nhost = \"a.example.com\"\npaths = [\"/a/../b\"]\n",
       "f:9:10: network.allow.paths: \"/a/../b\" has a"},
      {"[[network.allow]]\nhost = \"a.example.com\"\npaths = [\"/**\"]\nmethods = [\"get\"]\n",
       "f:10:12: network.allow.methods: no method \"get\""},
      {"[[network.allow]]\nhost = \"a.example.com\"\npaths = [\"/**\"]\nrate = \"fast\"\n",
       "f:10:8: network.allow.rate: \"fast\" is not a rate"},
      {"[[network.allow]]\nhost = \"a.example.com\"\npaths = [\"/**\"]\ntls = \"off\"\n",
       "f:10:7: network.allow.tls: \"off\" is not one of splice, intercept, plain, none"},
      {"[[network.allow]]\nhost = \"a.example.com\"\npaths = [\"/**\"]\ntls = \"splice\"\n",
       "f:9:9: network.allow.paths: cannot be judged with tls = \"splice\""},
      {"[[network.allow]]\nhost = \"a.example.com\"\nmethods = [\"GET\"]\ntls = \"none\"\nports = "
       "[22]\n",
       "f:9:11: network.allow.methods: cannot be judged with tls = \"none\""},
      {"[[network.allow]]\nhost = \"a.example.com\"\ntls = \"none\"\n",
       "f:9:7: network.allow.tls: \"none\" needs the port"},
      {"[[network.allow]]\nhost = \"a.example.com\"\ntls = \"splice\"\nbytes_out = \"many\"\n",
       "f:10:13: network.allow.bytes_out: \"many\" is not a size"},
      {"[[network.allow]]\nhost = \"a.example.com\"\ntls = \"splice\"\nbytes_in = 5\n",
       "f:10:12: network.allow.bytes_in: a string is wanted"},
      {"[[network.allow]]\nhost = \"a.example.com\"\ntls = \"splice\"\nconnections = 0\n",
       "f:10:15: network.allow.connections: 0 is out of range"},
      {"[[network.allow]]\nhost = \"a.example.com\"\ntls = \"splice\"\ntime = \"5\"\n",
       "f:10:8: network.allow.time: \"5\" has no unit"},
      {"[[network.allow]]\nhost = \"a.example.com\"\ntls = \"splice\"\ntime = \"0s\"\n",
       "f:10:8: network.allow.time: \"0s\" is not a duration"},
      {"[[network.allow]]\nhost = \"a.example.com\"\ntls = \"splice\"\nask = \"yes\"\n",
       "f:10:7: network.allow.ask: true or false is wanted"},
      {"[[credentials]]\nname = \"b\"\nscope = \"s\"\nhosts = [\"api.example.com\"]\nheader = \"A: "
       "{}\"\n",
       "f:10:10: credentials.hosts: api.example.com is in no [[network.allow]]"},
      {"credentials = 1\n", "f:7:1: [run] has no key \"credentials\""},
      {"[approval]\n", "f:7:1: approval.when is missing"},
      {"[approval]\nwhen = \"allways\"\n",
       "f:8:8: approval.when: \"allways\" is not one of never, flagged, irreversible, diff, "
       "always: did you mean always?"},
      {"[approval]\nwhen = \"always\"\napprovers = [\"me\"]\n",
       "f:9:13: approval.approvers: \"me\" names no approver"},
      {"[approval]\nwhen = \"always\"\nquorum = 0\n", "f:9:10: approval.quorum: 0 is out of range"},
      {"[output]\nschema = \"x\"\n", "f:8:10: output.schema: a table is wanted, not a string"},
      {"[rate]\ncalls = [\"10/s\", \"x\"]\n", "f:8:18: rate.calls: \"x\" is not a rate"},
      {"[rate]\nburst = 0\n", "f:8:9: rate.burst: 0 is out of range"},
      {"[[examples.allow]]\nargs = {}\n", "f:7:1: examples.allow.why is missing"},
      {"[[examples.deny]]\nwhy = \"x\"\n", "f:7:1: examples.deny.args is missing"},
      {"[[examples.deny]]\nwhy = \"x\"\nargs = { a = 1979-05-27 }\n",
       "f:9:14: a date has no JSON form"},
      {"[[examples.deny]]\nwhy = \"x\"\nargs = { a = nan }\n",
       "f:9:14: inf and nan have no JSON form"},
      {"[input]\n", "f:7:1: input.schema is missing"},
      {"[input]\nschema = { type = \"string\" }\n",
       "f:8:10: input.schema: arguments are an object"},
      {"[input]\nschema = true\n", "f:8:10: input.schema: a table is wanted, not true or false"},
  };
  for (const Case& c : cases) {
    const std::vector<std::string> lines = Mistakes(SmallestText() + c.text);
    ASSERT_THAT(lines, SizeIs(1)) << c.text << testing::PrintToString(lines);
    EXPECT_THAT(lines[0], StartsWith(c.expected)) << c.text;
  }
}

TEST(ManifestParse, MistakesOfToolAndRun) {
  struct Case {
    const char* tool;
    const char* run;
    const char* expected;
  };
  const char* const tool = "name = \"x\"\nversion = \"1\"\n";
  const char* const run = "runtime = \"sh\"\nargv = [\"cat\"]\n";
  const Case cases[] = {
      {"version = \"1\"\n", run, "f:1:1: tool.name is missing: write name = \"my-tool\""},
      {"name = \"X\"\nversion = \"1\"\n", run, "f:2:8: tool.name: \"X\" is not a tool's name"},
      {"name = \"a b\"\nversion = \"1\"\n", run, "f:2:8: tool.name: \"a b\" is not a tool's name"},
      {"name = \"a/../b\"\nversion = \"1\"\n", run, "f:2:8: tool.name:"},
      {"name = \"x\"\n", run, "f:1:1: tool.version is missing"},
      {"name = \"x\"\nversion = \"1 beta\"\n", run,
       "f:3:11: tool.version: \"1 beta\" is not a version"},
      {"name = \"x\"\nversion = 1.0\n", run,
       "f:3:11: tool.version: a string is wanted, not a number with a fraction"},
      {"name = \"x\"\nversion = \"1\"\neffect = \"readonly\"\n", run,
       "f:4:10: tool.effect: \"readonly\" is not one of read-only, reversible, irreversible, "
       "privileged: did you mean read-only?"},
      {"name = \"x\"\nversion = \"1\"\nsummary = \"a\\nb\"\n", run,
       "f:4:11: tool.summary: more than one line"},
      {tool, "argv = [\"cat\"]\n", "f:4:1: run.runtime is missing"},
      {tool, "runtime = \"host-usr\"\nargv = [\"cat\"]\n",
       "f:5:11: run.runtime: host-usr makes every program"},
      {tool, "runtime = \"../x\"\nargv = [\"cat\"]\n",
       "f:5:11: run.runtime: \"../x\" is not a runtime's name"},
      {tool, "runtime = \"sh\"\n", "f:4:1: run.argv: a list of words is wanted"},
      {tool, "runtime = \"sh\"\nargv = []\n", "f:6:8: run.argv: a list of words is wanted"},
      {tool, "runtime = \"sh\"\nargv = \"cat x\"\n", "f:6:8: run.argv: a list of words is wanted"},
      {tool, "runtime = \"sh\"\nargv = [\"cat\", 1]\n",
       "f:6:16: run.argv: a string is wanted, not a whole number"},
      {tool, "runtime = \"sh\"\nargv = [\"cat\", \"{nme}\"]\n",
       "f:6:16: run.argv: there is no parameter \"nme\": did you mean name?"},
      {tool, "runtime = \"sh\"\nargv = [\"cat\", \"--f={name}\"]\n",
       "f:6:16: run.argv: \"--f={name}\" puts a parameter inside a longer word"},
      {tool, "runtime = \"sh\"\nargv = [\"cat\", \"{\"]\n", "f:6:16: run.argv: a single brace in"},
      {tool, "runtime = \"sh\"\nargv = [\"{name}\"]\n",
       "f:6:9: run.argv: the program cannot be a parameter"},
      {tool, "runtime = \"sh\"\nargv = [[\"cat\", \"{name}\"]]\n",
       "f:6:9: run.argv: the program cannot be a parameter"},
      {tool, "runtime = \"sh\"\nargv = [\"cat\", [\"-x\"]]\n",
       "f:6:16: run.argv: a group without a parameter"},
      {tool, "runtime = \"sh\"\nargv = [\"cat\", \"-n\", \"{opt}\"]\n",
       "f:6:22: run.argv: opt may be missing, and would leave \"-n\" alone: group them: [\"-n\", "
       "\"{opt}\"]"},
      {tool, "runtime = \"sh\"\nargv = [\"cat\", \"{list}\"]\n",
       "f:6:16: run.argv: list is not a single value: write \"{list...}\""},
      {tool, "runtime = \"sh\"\nargv = [\"cat\", \"{name...}\"]\n",
       "f:6:16: run.argv: name is not an array of strings"},
      {tool, "runtime = \"sh\"\nargv = [\"cat\", \"{@args}\"]\n",
       "f:6:16: run.argv: {@args} is for stdin only"},
      {tool, "runtime = \"sh\"\nargv = [\"cat\"]\nstdin = \"{list...}\"\n",
       "f:7:9: run.stdin: {list...} is for argv only"},
      {tool, "runtime = \"sh\"\nargv = [\"cat\"]\nenv = { LD_PRELOAD = \"{name}\" }\n",
       "f:7:22: run.env: LD_PRELOAD decides which code runs"},
      {tool, "runtime = \"sh\"\nargv = [\"cat\"]\nenv = { \"A B\" = \"x\" }\n",
       "f:7:9: run.env: \"A B\" is not a variable's name"},
      {tool, "runtime = \"sh\"\nargv = [\"cat\"]\nenv = { A = 1 }\n",
       "f:7:13: run.env: a string is wanted"},
      {tool, "runtime = \"sh\"\nargv = [\"cat\"]\ncwd = \"/usr\"\n",
       "f:7:7: run.cwd: \"/usr\" is not a directory of this tool"},
      {tool, "runtime = \"sh\"\nargv = [\"cat\"]\ncwd = \"/workspace/../etc\"\n",
       "f:7:7: run.cwd:"},
      {tool, "runtime = \"sh\"\nargv = [\"cat\"]\nreason = \"because I say so\"\n",
       "f:7:10: run.reason: nothing dangerous is granted here"},
      {tool,
       "runtime = \"sh\"\nargv = [\"cat\", \"{name}\"]\npaths = { nme = { mount = \"/workspace\" } "
       "}\n",
       "f:7:11: run.paths: there is no parameter \"nme\""},
      {tool,
       "runtime = \"sh\"\nargv = [\"cat\", \"{name}\"]\npaths = { opt = { mount = \"/workspace\" } "
       "}\n",
       "f:7:11: run.paths: no template uses opt"},
      {tool,
       "runtime = \"sh\"\nargv = [\"cat\", \"{name}\"]\npaths = { name = { mount = \"/data\" } }\n",
       "f:7:28: run.paths.*.mount: /data is neither /workspace nor"},
      {tool, "runtime = \"sh\"\nargv = [\"cat\", \"{name}\"]\npaths = { name = \"/data\" }\n",
       "f:7:18: run.paths: a table is wanted"},
  };
  for (const Case& c : cases) {
    const std::string text =
        std::string("[tool]\n") + c.tool + "[run]\n" + c.run +
        "[input.schema]\ntype = \"object\"\nrequired = [\"name\"]\n"
        "properties.name = { type = \"string\" }\nproperties.opt = { type = \"string\" }\n"
        "properties.list = { type = \"array\", items = { type = \"string\" } }\n";
    const std::vector<std::string> lines = Mistakes(text);
    ASSERT_THAT(lines, SizeIs(1)) << text << testing::PrintToString(lines);
    EXPECT_THAT(lines[0], StartsWith(c.expected)) << text;
  }
}

TEST(ManifestParse, AllMistakesAtOnceSortedByPlace) {
  const std::vector<std::string> lines = Mistakes(
      "[tool]\nname = \"X\"\ncolour = \"red\"\n[run]\nargv = [\"cat\", \"{x}\"]\n[limits]\ncpu = "
      "5\nwall = \"soon\"\n"
      "[[files.mount]]\nhost = \"/etc\"\nat = \"/usr\"\n");
  ASSERT_THAT(lines, SizeIs(9)) << testing::PrintToString(lines);
  EXPECT_THAT(lines[0], StartsWith("f:1:1: tool.version is missing"));
  EXPECT_THAT(lines[1], StartsWith("f:2:8: "));
  EXPECT_THAT(lines[2], StartsWith("f:3:1: "));
  EXPECT_THAT(lines[3], StartsWith("f:4:1: run.runtime is missing"));
  EXPECT_THAT(lines[4], StartsWith("f:5:16: "));
  EXPECT_THAT(lines[5], StartsWith("f:7:7: "));
  EXPECT_THAT(lines[6], StartsWith("f:8:8: "));
  EXPECT_THAT(lines[7], StartsWith("f:10:8: "));
  EXPECT_THAT(lines[8], StartsWith("f:11:6: "));
  EXPECT_THAT(Mistakes(""), ElementsAre(StartsWith("f:1:1: [run] is missing"),
                                        StartsWith("f:1:1: [tool] is missing")));
}

TEST(ManifestParse, APathParameterMayOnlyWriteWhereTheToolMay) {
  const std::string head =
      "[tool]\nname = \"x\"\nversion = \"1\"\n[run]\nruntime = \"sh\"\nargv = [\"cat\", \"{f}\"]\n"
      "[input.schema]\ntype = \"object\"\nproperties.f = { type = \"string\" }\n";
  EXPECT_THAT(Mistakes(head + "[run.paths]\nf = { mount = \"/workspace\", mode = \"write\" }\n"),
              IsEmpty());
  EXPECT_THAT(Mistakes(head + "[run.paths]\nf = { mount = \"/workspace\", mode = \"write\" "
                              "}\n[files]\nworkspace = \"session-read\"\n"),
              ElementsAre(StartsWith("f:11:36: run.paths.*.mode: /workspace is read-only")));
  EXPECT_THAT(Mistakes(head + "[run.paths]\nf = { mount = \"/d\", mode = \"write\" "
                              "}\n[[files.mount]]\nhost = \"/srv/x\"\nat = \"/d\"\n"),
              ElementsAre(StartsWith("f:11:28: run.paths.*.mode: /d is read-only")));
  EXPECT_THAT(
      Mistakes(head + "[run.paths]\nf = { mount = \"/d\", mode = \"write\" "
                      "}\n[[files.mount]]\nhost = \"/srv/x\"\nat = \"/d\"\nmode = \"write\"\n"),
      IsEmpty());
}

TEST(ManifestParse, ReadOnlyToolsHaveNoWritableMounts) {
  const std::string text =
      "[tool]\nname = \"x\"\nversion = \"1\"\neffect = \"read-only\"\n[run]\nruntime = "
      "\"sh\"\nargv = [\"cat\"]\n"
      "[[files.mount]]\nhost = \"/srv/x\"\nat = \"/d\"\nmode = \"write\"\n";
  EXPECT_THAT(Mistakes(text),
              ElementsAre(StartsWith("f:4:1: tool.effect: read-only, with a mount it may write")));
}

TEST(ManifestParse, ParametersNobodyDeclaredAreRefusedByDefault) {
  const std::string head = SmallestText() + "[input.schema]\ntype = \"object\"\n";
  EXPECT_THAT(MustParse(head).input_schema, HasSubstr("\"additionalProperties\":false"));
  EXPECT_THAT(MustParse(head + "additionalProperties = true\n").input_schema,
              HasSubstr("\"additionalProperties\":true"));
  EXPECT_THAT(MustParse(head + "\"$ref\" = \"#/$defs/a\"\n").input_schema,
              Not(HasSubstr("additionalProperties")));
}

TEST(ManifestParse, NeverAskingAboutTheIrreversibleShowsRed) {
  const Manifest m = MustParse(SmallestText() + "[approval]\nwhen = \"never\"\n");
  ASSERT_THAT(m.dangers, SizeIs(1));
  EXPECT_EQ(m.dangers[0].key, "approval.when");
  EXPECT_EQ(m.dangers[0].position, (Position{8, 1}));
  EXPECT_FALSE(m.AsksForApproval());
}

TEST(ManifestParse, NothingFromTheFileReachesTheTerminalRaw) {
  for (const std::string& line :
       Mistakes("[tool]\n\"\\u001b[31m\" = 1\nname = \"\\u001b\\n\"\nversion = "
                "\"\\u0007\"\n[run]\nruntime = "
                "\"\\u001b\"\nargv = [\"\\u001b{x\"]\n\"run\\u202e\" = 1\n[[files.mount]]\nhost = "
                "\"/\\u001b/..\"\nat = \"\\n\"\n")) {
    for (const char c : line) {
      EXPECT_GE(static_cast<unsigned char>(c), 0x20) << line;
      EXPECT_LT(static_cast<unsigned char>(c), 0x7f) << line;
    }
  }
}

}  // namespace
}  // namespace coffer::policy
