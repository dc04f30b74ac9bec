// SPDX-License-Identifier: Apache-2.0
//
// Ordinary mistakes: flags, files and words as people get them wrong. Each gets one error, in the form
// `coffer: class: message` and a hint, with the right exit status, and it names what is wrong and what to write.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/support/host.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

struct Mistake {
  const char* name;
  Strings words;  // after coffer; "DIR" stands for the test's directory
  int exit;
  Strings must_name;
};

Strings RunTrue(Strings flags) {
  flags.insert(flags.begin(), "run");
  flags.insert(flags.end(), {"--", "true"});
  return flags;
}

const std::vector<Mistake>& Mistakes() {
  static const std::vector<Mistake> mistakes = {
      // Values.
      {"MemoryWithoutAUnit",
       RunTrue({"--memory", "512"}),
       120,
       {"512B", "the least is 1MiB", "--memory 512MiB"}},
      {"MemoryInAnUnknownUnit", RunTrue({"--memory", "1XB"}), 120, {"--memory", "1XB", "256MiB"}},
      {"NoWallTime", RunTrue({"--wall", "0"}), 120, {"--wall", "10s"}},
      {"AWallTimeThatIsMissing", RunTrue({"--wall"}), 120, {"--wall needs a value"}},
      {"CpuInAnUnknownUnit", RunTrue({"--cpu", "10x"}), 120, {"--cpu", "10x", "10s"}},
      {"ProcessesInWords", RunTrue({"--processes", "many"}), 120, {"--processes", "many"}},
      {"TooFewOpenFiles", RunTrue({"--open-files", "2"}), 120, {"--open-files 4"}},
      {"AUidBelowZero", RunTrue({"--uid", "-1"}), 120, {"--uid", "65535"}},
      {"AVariableWithoutAValue", RunTrue({"--env", "X"}), 120, {"--env", "NAME=VALUE"}},
      {"AValueForASwitch", RunTrue({"--tty=1"}), 120, {"--tty takes no value"}},
      // Names.
      {"AFlagThatIsMisspelt",
       RunTrue({"--memroy", "1GiB"}),
       120,
       {"--memroy", "did you mean --memory?"}},
      {"AnotherFlag", RunTrue({"--quite"}), 120, {"did you mean --quiet?"}},
      {"AFlagFromAnotherProgram",
       RunTrue({"--volume", "x"}),
       120,
       {"--volume", "--ro PATH[:AT] or --rw PATH[:AT]"}},
      {"ATimeInShort", RunTrue({"--time", "5s"}), 120, {"--time", "--wall TIME"}},
      {"ATimeFromAnotherProgram", RunTrue({"--timeout", "5s"}), 120, {"--timeout", "--wall TIME"}},
      {"AReadOnlyPlaceFromAnotherProgram",
       RunTrue({"--readonly", "x"}),
       120,
       {"--readonly", "did you mean --ro PATH[:AT]?"}},
      {"RemovalFromAnotherProgram", RunTrue({"--rm"}), 120, {"--rm", "nothing of a call stays"}},
      {"ADryRun", RunTrue({"--dry-run"}), 120, {"--dry-run", "coffer doctor"}},
      {"NoNetworkAsElsewhere", RunTrue({"--no-network"}), 120, {"--no-network", "the default"}},
      {"AVerbThatIsMisspelt", {"rnu"}, 120, {"rnu", "did you mean coffer run?"}},
      {"AnotherVerb", {"toosl", "list"}, 120, {"did you mean coffer tools?"}},
      {"AVerbThatIsNone", {"frobnicate"}, 120, {"frobnicate", "coffer --help"}},
      {"ARuntimeThatIsMisspelt", RunTrue({"--runtime", "pyhton3"}), 120, {"did you mean python3?"}},
      {"ARuntimeThatIsUnknown", RunTrue({"--runtime", "cobol"}), 120, {"cobol", "host-usr"}},
      {"ALayerThatIsMisspelt",
       RunTrue({"--floor", "netnss"}),
       120,
       {"netnss", "did you mean netns?"}},
      {"ALevelThatIsUnknown", RunTrue({"--level", "vm2"}), 120, {"vm2", "container"}},
      {"ASeccompProfileThatIsMisspelt", RunTrue({"--seccomp", "strct"}), 120, {"strct", "strict"}},
      {"AProfileThatIsUnknown", RunTrue({"--profile", "nope"}), 120, {"nope", "run.toml"}},
      {"ACacheThatIsMisspelt",
       RunTrue({"--project", "DIR/project", "--cache", "pipp"}),
       120,
       {"did you mean pip?"}},
      // Commands.
      {"NoCommand", {"run"}, 120, {"coffer run FILE"}},
      {"NoCommandAfterTheDashes", {"run", "--"}, 120, {"coffer run -- CMD"}},
      {"AScriptThatIsNotThere",
       {"run", "DIR/missing.py"},
       127,
       {"missing.py", "coffer run -- CMD"}},
      {"ACommandInAProjectWithoutTheDashes",
       {"run", "--project", "DIR/project", "DIR/project/npm", "test"},
       127,
       {"npm", "coffer run -- CMD"}},
      {"ACommandThatIsNotThere", {"run", "--", "nosuchprogram"}, 127, {"nosuchprogram", "PATH"}},
      {"ACommandInOneWord", {"run", "--", "ls -la"}, 127, {"words of their own", "-- ls -la"}},
      {"AFileThatNothingRuns", {"run", "DIR/notes.txt"}, 120, {"notes.txt", "#!/usr/bin/env"}},
      {"AScriptFromWindows",
       {"run", "--", "DIR/windows"},
       126,
       {"carriage return", "sed -i 's/\\r$//' "}},
      {"AScriptWithoutAFirstLine",
       {"run", "--ro", "DIR/scripts:/scripts", "--", "/scripts/plain"},
       126,
       {"Exec format error", "#!/bin/sh"}},
      {"AScriptFromWindowsInAMount",
       {"run", "--project", "DIR/project", "--", "DIR/project/windows"},
       126,
       {"carriage return", "sed -i"}},
      {"AWordOfTheShell", {"run", "--", "cd", "/tmp"}, 127, {"sh -c 'cd ...'", "--cwd PATH"}},
      {"AProgramOfAnotherLanguage",
       {"run", "DIR/Main.java"},
       120,
       {"--in DIR/Main.java -- java Main.java"}},
      {"AVariableBeforeTheCommand", {"run", "--", "FOO=1", "env"}, 127, {"--env FOO=1"}},
      {"AScriptFromWindowsAsAFile", {"run", "DIR/windows"}, 126, {"carriage return", "sed -i"}},
      {"ADirectoryInsteadOfAScript",
       {"run", "DIR/project"},
       120,
       {"project", "directory", "coffer run --project . -- CMD"}},
      {"AScriptOnStdinThatNothingRuns", {"run", "-"}, 120, {"stdin", "--runtime python3 -"}},
      // Paths.
      {"AMountThatIsNotThere",
       RunTrue({"--ro", "DIR/missing"}),
       120,
       {"missing", "does not exist"}},
      {"AWholeSystem", RunTrue({"--ro", "/"}), 120, {"too broad"}},
      {"AReceiptInPlaceOfAnotherFile",
       RunTrue({"--receipt", "DIR/notes.txt"}),
       120,
       {"notes.txt", "holds something else", "name another file"}},
      {"AFileInsteadOfADirectory",
       RunTrue({"--rw", "DIR/notes.txt"}),
       120,
       {"notes.txt", "not a directory"}},
      {"ATargetThatIsNotAbsolute", RunTrue({"--ro", "DIR/project:data"}), 120, {"data", "/data"}},
      {"ATargetThatIsTaken", RunTrue({"--ro", "DIR/project:/etc/x"}), 120, {"/etc/x"}},
      {"TwoMountsAtOnePlace",
       RunTrue({"--ro", "DIR/project:/x", "--ro", "DIR/other:/x"}),
       120,
       {"overlap"}},
      {"AnOutputBelowADirectoryThatIsNotThere",
       RunTrue({"--out", "DIR/missing/out"}),
       120,
       {"missing/out", "No such file or directory", "mkdir -p "}},
      {"AnOutputWithAPlaceInside",
       RunTrue({"--out", "DIR/project:/out"}),
       120,
       {"without a colon", "--rw DIR:AT"}},
      {"TwoOutputs", RunTrue({"--out", "DIR/a", "--out", "DIR/b"}), 120, {"--out was given twice"}},
      {"AWorkingDirectoryOfTheHost", RunTrue({"--cwd", "data"}), 120, {"--cwd", "/workspace"}},
      {"AWorkingDirectoryThatIsNotThere", RunTrue({"--cwd", "/nope"}), 120, {"/nope", "--cwd"}},
      {"AnInputThatIsADirectory", RunTrue({"--in", "DIR/project"}), 120, {"project", "--ro"}},
      {"AReceiptNowhere",
       RunTrue({"--receipt", "DIR/missing/r"}),
       120,
       {"missing/r", "nothing was run"}},
      // The network.
      {"AHostThatIsNone", RunTrue({"--allow", "api..test"}), 120, {"--allow", "api..test"}},
      {"AllowingEverything", RunTrue({"--allow", "*"}), 120, {"--allow"}},
      {"AnAddressWithoutAHost",
       RunTrue({"--dangerously-allow-address", "10.0.0.0/8"}),
       120,
       {"--dangerously-allow-address", "--allow api.example.com"}},
      {"AnAddressThatIsNone",
       RunTrue({"--allow", "api.example.com", "--dangerously-allow-address", "10.0.0.1/8"}),
       120,
       {"--dangerously-allow-address", "10.0.0.1/8"}},
      {"ANameWithoutAnAddress",
       RunTrue({"--allow", "api.example.com", "--resolve", "api.example.com"}),
       120,
       {"--resolve", "NAME=ADDRESS"}},
      {"CertificatesThatAreNone",
       RunTrue({"--allow", "GET https://api.example.com/**", "--upstream-ca", "DIR/notes.txt"}),
       120,
       {"--upstream-ca", "BEGIN CERTIFICATE"}},
      {"TheNetworkAtTheProcessLevel",
       RunTrue({"--level", "process", "--allow", "api.example.com"}),
       120,
       {"network needs the container level"}},
      // Projects.
      {"AProjectThatIsNotThere", RunTrue({"--project", "DIR/missing"}), 120, {"missing"}},
      {"AProjectThatIsAFile",
       RunTrue({"--project", "DIR/notes.txt"}),
       120,
       {"not a directory", "--project takes a directory"}},
      {"TwoProjects",
       RunTrue({"--project", "DIR/project", "--project", "DIR/other"}),
       120,
       {"--rw"}},
      {"KeepingWithoutAProject",
       RunTrue({"--keep-planted"}),
       120,
       {"--keep-planted needs --project"}},
      {"ACacheWithoutAProject", RunTrue({"--cache", "pip"}), 120, {"--cache needs --project"}},
      {"AProjectWithoutMounts",
       RunTrue({"--project", "DIR/project", "--level", "process"}),
       120,
       {"--level container"}},
      {"AProjectFileThatWidens",
       RunTrue({"--project", "DIR/wide"}),
       120,
       {".coffer.toml", "only lower"}},
      // Tools and the rest.
      {"AToolThatIsMisspelt", {"tools", "show", "pyhton"}, 120, {"did you mean python?"}},
      {"DisablingAToolThatIsNone",
       {"tools", "disable", "bsh", "--reason", "x", "--state", "DIR/state"},
       120,
       {"bsh", "did you mean bash?"}},
      {"DisablingWithoutAReason",
       {"tools", "disable", "bash", "--state", "DIR/state"},
       120,
       {"--reason"}},
      {"AnActionThatIsMisspelt",
       {"tools", "shwo", "python"},
       120,
       {"did you mean coffer tools show?"}},
      {"AToolThatIsThereAlready", {"tools", "new", "taken"}, 120, {"already", "another name"}},
      {"AKeyThatIsNotThere",
       {"audit", "verify", "--key", "DIR/missing", "--state", "DIR/state"},
       120,
       {"missing", "coffer audit key"}},
      {"AReceiptToVerifyThatIsNotThere",
       {"audit", "verify-receipt", "DIR/missing", "--key", "DIR/notes.txt"},
       120,
       {"missing", "--receipt FILE"}},
      {"ARecordThatIsMisspelt",
       {"audit", "lst", "--state", "DIR/state"},
       120,
       {"did you mean coffer audit list?"}},
      {"CallingAToolThatIsMisspelt",
       {"call", "pyhton", "--state", "DIR/state"},
       120,
       {"did you mean python?"}},
      {"ArgumentsThatAreNotJson",
       {"call", "python", "--args", "{", "--state", "DIR/state"},
       120,
       {"JSON object"}},
      {"ArgumentsThatDoNotFit",
       {"call", "python", "--args", "{\"cod\": 1}", "--state", "DIR/state"},
       120,
       {"code"}},
      {"EveryMistakeOfTheArguments",
       {"call", "python", "--args", "{\"cod\": 1, \"x\": 2}", "--state", "DIR/state"},
       120,
       {"must have a member \"code\"", "/cod is not allowed here; did you mean code?",
        "/x is not"}},
      {"StoppingAToolThatIsMisspelt",
       {"switch", "on", "tool", "bsh", "--reason", "x", "--state", "DIR/state"},
       120,
       {"bsh", "did you mean bash?"}},
      {"AFileInsteadOfAVerb", {"DIR/notes.txt"}, 120, {"did you mean coffer run DIR/notes.txt?"}},
      {"AVerbOfAnotherProgram", {"exec", "ls"}, 120, {"did you mean coffer run -- CMD"}},
      {"ASwitchThatIsMisspelt", {"swich", "list"}, 120, {"did you mean coffer switch?"}},
      {"AScopeThatIsMisspelt",
       {"switch", "on", "tol", "bash", "--reason", "x", "--state", "DIR/state"},
       120,
       {"tol", "did you mean tool?"}},
      {"AnActionOfSwitchesThatIsMisspelt",
       {"switch", "onn", "--state", "DIR/state"},
       120,
       {"did you mean coffer switch on?"}},
      {"HelpAboutNothing", {"help", "manifst"}, 120, {"did you mean coffer help manifest?"}},
      // Sessions.
      {"ASessionThatIsNot",
       {"run", "--session", "nope", "--state", "DIR/state", "--", "true"},
       120,
       {"nope", "coffer sessions new"}},
      {"ACallInASessionThatIsNot",
       {"call", "bash", "--session", "nope", "--args", "{\"command\": \"true\"}", "--state",
        "DIR/state"},
       120,
       {"policy.session", "coffer sessions new"}},
      {"ASessionForTooLong",
       {"sessions", "new", "--lifetime", "300d", "--state", "DIR/state"},
       120,
       {"--lifetime", "30d"}},
      {"ASessionThatIsTooLarge",
       {"sessions", "new", "--size", "1TiB", "--state", "DIR/state"},
       120,
       {"--size", "100MiB"}},
      {"AnActionOfSessionsThatIsMisspelt",
       {"sessions", "nwe", "--state", "DIR/state"},
       120,
       {"did you mean coffer sessions new?"}},
      {"AProcessWithoutASession",
       {"sessions", "start", "--port", "8000", "--", "true"},
       120,
       {"needs a session", "coffer sessions start ID --port 8000"}},
      {"AProcessInASessionThatIsNot",
       {"sessions", "start", "nope", "--state", "DIR/state", "--", "true"},
       120,
       {"nope", "coffer sessions new"}},
      {"APortThatIsMisspelt",
       {"sessions", "start", "nope", "--prot", "8000", "--", "true"},
       120,
       {"--prot", "did you mean --port?"}},
      {"APortThatIsTooLow",
       {"sessions", "start", "nope", "--port", "80", "--", "true"},
       120,
       {"--port", "80", "1024"}},
      {"APortOfARun", RunTrue({"--port", "8000"}), 120, {"coffer sessions start", "--publish"}},
      {"AProcessWithATerminal",
       {"sessions", "start", "nope", "--tty", "--", "true"},
       120,
       {"--tty", "coffer sessions --help"}},
      {"PruningWithoutAnAge",
       {"audit", "prune", "--state", "DIR/state"},
       120,
       {"how old", "--older-than 30d"}},
      // Configuration.
      {"AConfigurationWithAnUnknownKey",
       {"call", "bash", "--config", "DIR/unknown.toml", "--state", "DIR/state"},
       120,
       {"unknown.toml:2:1", "conccurrency", "concurrency"}},
      {"AConfigurationWithoutAUnit",
       {"call", "bash", "--config", "DIR/unit.toml", "--state", "DIR/state"},
       120,
       {"unit.toml:2:", "\"30\" has no unit", "30s"}},
      {"AConfigurationThatIsNotThere",
       {"call", "bash", "--config", "DIR/none.toml", "--state", "DIR/state"},
       120,
       {"none.toml"}},
      {"AConfigurationThatIsNotToml",
       {"call", "bash", "--config", "DIR/notes.txt", "--state", "DIR/state"},
       120,
       {"notes.txt:1:"}},
      {"ACacheToClearThatIsNone", {"cache", "clear", "foo"}, 120, {"foo", "pip, npm or ccache"}},
      {"AFlagOfRuntimes", {"runtimes", "--xml"}, 120, {"--xml", "--json"}},
  };
  return mistakes;
}

class MistakeTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(MistakeTest, IsNamedWithWhatToWrite) {
  const Mistake& mistake = GetParam();
  const TempDir dir;
  dir.MakeDir("project");
  dir.MakeDir("other");
  dir.MakeDir("wide");
  dir.MakeDir("home");
  dir.Write("notes.txt", "nothing to run\n");
  dir.Write("windows", "#!/bin/sh\r\necho hello\r\n", 0755);
  dir.Write("project/windows", "#!/bin/sh\r\necho hello\r\n", 0755);
  dir.Write("Main.java", "class Main {}\n");
  dir.Write("scripts/plain", "echo hello\n", 0755);
  dir.Write("taken.toml", "");
  dir.Write("wide/.coffer.toml", "network = true\n");
  dir.Write("unknown.toml", "[quotas.tenant]\nconccurrency = 3\n");
  dir.Write("unit.toml", "[ceilings]\ncpu = \"30\"\n");
  Strings words = {CofferPath()};
  for (std::string word : mistake.words) {
    if (const size_t at = word.find("DIR"); at != std::string::npos) {
      word.replace(at, 3, dir.path());
    }
    words.push_back(std::move(word));
  }
  RunOptions options;
  options.cwd = dir.path();
  options.environment = {{"HOME=" + (dir / "home"), "PATH=/usr/bin:/bin"}};
  const RunResult result = RunProgram(words, options);
  EXPECT_EQ(result.exit, mistake.exit) << result.Describe();
  EXPECT_TRUE(result.out.empty()) << result.Describe();
  const Strings lines = Lines(result.err);
  ASSERT_FALSE(lines.empty());
  EXPECT_TRUE(lines.front().starts_with("coffer: ")) << result.err;
  EXPECT_LE(lines.size(), 2U) << "one error and its hint: " << result.err;
  if (lines.size() == 2) {
    EXPECT_TRUE(lines.back().starts_with("  hint: ")) << result.err;
  }
  for (std::string part : mistake.must_name) {
    if (const size_t at = part.find("DIR/"); at != std::string::npos) {
      part.replace(at, 3, dir.path());
    }
    EXPECT_TRUE(Contains(result.err, part)) << part << "\n" << result.err;
  }
}

INSTANTIATE_TEST_SUITE_P(All, MistakeTest, ::testing::ValuesIn(Mistakes()),
                         [](const auto& mistake) { return std::string(mistake.param.name); });

// Manifests: `coffer tools check` finds them before anything starts, with line and column.
struct ManifestMistake {
  const char* name;
  const char* key;    // "limits.cpu"
  const char* value;  // as TOML
  Strings must_name;
};

const ManifestMistake kManifestMistakes[] = {
    {"ARuntimeThatIsMissing", "run.runtime", "\"ruby\"", {"ruby", "known runtimes", "python3"}},
    {"ARuntimeThatIsMisspelt", "run.runtime", "\"pyhton3\"", {"did you mean python3?"}},
    {"AProgramThatIsNotThere", "run.argv", "[\"python9\", \"-\"]", {"python9"}},
    {"AProgramOfAnotherRuntime", "run.argv", "[\"gcc\", \"-\"]", {"gcc"}},
    {"ATimeWithoutAUnit", "limits.cpu", "\"10\"", {"limits.cpu", "has no unit", "\"10s\""}},
    {"ATimeThatIsANumber", "limits.cpu", "10", {"limits.cpu"}},
    {"MemoryThatStartsNothing", "limits.memory", "\"512\"", {"limits.memory", "512B", "\"1MiB\""}},
    {"TooFewOpenFiles", "limits.open_files", "2", {"limits.open_files", "open_files = 4"}},
    {"ASizeInWords", "limits.memory", "\"much\"", {"limits.memory", "256MiB"}},
    {"AKeyThatIsMisspelt", "limits.memroy", "\"1MiB\"", {"memroy", "memory"}},
    {"AnEffectThatIsNone", "tool.effect", "\"harmless\"", {"tool.effect", "read-only"}},
    {"ALevelThatIsNone", "isolation.level", "\"vm\"", {"isolation.level", "container"}},
    {"ALayerThatIsNone", "isolation.floor", "[\"netnss\"]", {"netnss"}},
};

class ManifestMistakeTest : public ::testing::TestWithParam<ManifestMistake> {};

TEST_P(ManifestMistakeTest, IsFoundByToolsCheck) {
  const ManifestMistake& mistake = GetParam();
  const TempDir dir;
  std::map<std::string, std::map<std::string, std::string>> tables = {
      {"tool",
       {{"name", "\"mine\""},
        {"version", "\"1.0.0\""},
        {"owner", "\"me\""},
        {"summary", "\"Says something.\""},
        {"effect", "\"read-only\""}}},
      {"run", {{"runtime", "\"python3\""}, {"argv", "[\"python3\", \"-\"]"}}},
      {"isolation", {{"level", "\"container\""}}},
      {"limits", {{"memory", "\"64MiB\""}}}};
  const auto check = [&] {
    std::string text;
    for (const auto& [table, keys] : tables) {
      text += "[" + table + "]\n";
      for (const auto& [key, value] : keys) {
        text += key + " = " + value + "\n";
      }
    }
    dir.Write("mine.toml", text);
    return RunProgram({CofferPath(), "tools", "check", dir / "mine.toml"});
  };
  EXPECT_EQ(check().exit, 0) << "the control: " << check().Describe();
  const std::string key = mistake.key;
  const size_t dot = key.find('.');
  tables[key.substr(0, dot)][key.substr(dot + 1)] = mistake.value;
  const RunResult result = check();
  EXPECT_EQ(result.exit, 1) << result.Describe();
  const Strings lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 1U) << "one mistake, one line: " << result.out;
  EXPECT_TRUE(Contains(lines.front(), "mine.toml:")) << lines.front();
  for (const std::string& part : mistake.must_name) {
    EXPECT_TRUE(Contains(lines.front(), part)) << part << "\n" << lines.front();
  }
}

INSTANTIATE_TEST_SUITE_P(All, ManifestMistakeTest, ::testing::ValuesIn(kManifestMistakes),
                         [](const auto& mistake) { return std::string(mistake.param.name); });

// `coffer run --rw . -- make` works in /workspace, not in the mount: what it leaves there is gone, and that is said.
TEST(LostFiles, AreToldWithTheFlagThatKeepsThem) {
  const TempDir project;
  const auto run = [&](Strings flags, const std::string& script) {
    flags.insert(flags.begin(), {"--rw", project.path()});
    return RunCoffer(flags, {"sh", "-c", script}, {.cwd = project.path()});
  };
  const std::string note = "files were left in /workspace";
  const RunResult lost = run({}, "echo x > made.txt");
  EXPECT_EQ(lost.exit, 0) << lost.Describe();
  EXPECT_TRUE(Contains(lost.err, note)) << lost.err;
  EXPECT_TRUE(Contains(lost.err, "--cwd " + project.path())) << lost.err;
  EXPECT_FALSE(Exists(project.path() + "/made.txt"));
  const RunResult kept = run({"--cwd", project.path()}, "echo x > made.txt");
  EXPECT_EQ(kept.exit, 0) << kept.Describe();
  EXPECT_FALSE(Contains(kept.err, note)) << kept.err;
  EXPECT_TRUE(Exists(project.path() + "/made.txt"));
  EXPECT_FALSE(Contains(run({}, "echo x > " + project.path() + "/there.txt").err, note));
  EXPECT_FALSE(Contains(run({"--quiet"}, "echo x > made.txt").err, note));
  const RunResult elsewhere =
      RunCoffer({"--rw", project.path()}, {"sh", "-c", "echo x > made.txt"}, {.cwd = "/"});
  EXPECT_FALSE(Contains(elsewhere.err, note)) << "the caller is not in the mount";
  const std::string input = project.Write("input", "x");
  EXPECT_FALSE(Contains(run({"--in", input}, "cat input").err, note)) << "only the copy is there";
}

// --out is at /out inside, and a command that is told a bare name writes it to /workspace.
TEST(LostFiles, BesideAnEmptyOutAreTold) {
  const TempDir dir;
  const auto run = [&](const std::string& script) {
    return RunCoffer({"--out", dir / "out"}, {"sh", "-c", script}, {.cwd = dir.path()});
  };
  const RunResult lost = run("echo x > made.txt");
  EXPECT_TRUE(Contains(lost.err, "what the command writes to /out is kept")) << lost.Describe();
  const RunResult kept = run("echo x > other.txt; echo x > /out/made.txt");
  EXPECT_FALSE(Contains(kept.err, "files were left")) << kept.Describe();
  EXPECT_TRUE(Exists(dir / "out/made.txt"));
}

}  // namespace
}  // namespace coffer::test
