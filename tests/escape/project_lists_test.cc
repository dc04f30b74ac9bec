// SPDX-License-Identifier: Apache-2.0
//
// A payload that may write to a git directory tells git names: by the index, and by the list of conflicts. Git does not
// check them there. Each attack is run in a plain mount, where a person's next command of git writes or reads what the
// payload named, and in a project, where the list is not left in its place.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

std::string Big(uint32_t number, int bytes = 4) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text += static_cast<char>(number >> shift & 0xff);
  }
  return text;
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

constexpr const char* kOne = "1111111111111111111111111111111111111111";
constexpr const char* kTwo = "2222222222222222222222222222222222222222";

// An index (gitformat-index(5)) with one file for each path, all of the same content. `kept`, in version 4: how much of
// the name before is taken away, for each.
std::string Index(const std::string& blob, const Strings& paths, uint32_t version = 2,
                  const std::vector<int>& taken = {}) {
  std::string index = "DIRC" + Big(version) + Big(static_cast<uint32_t>(paths.size()));
  size_t length = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    const size_t cut = version == 4 ? static_cast<size_t>(taken.at(i)) : length;
    length = length - cut + paths[i].size();
    std::string entry = std::string(24, '\0') + Big(0100755) + std::string(12, '\0') +
                        FromHex(blob) + Big(static_cast<uint32_t>(length), 2);
    if (version == 4) {
      entry += static_cast<char>(taken.at(i));
    }
    entry += paths[i] + '\0';
    if (version != 4) {
      entry.resize((entry.size() + 7) / 8 * 8, '\0');
    }
    index += entry;
  }
  return index;
}

std::string WithHash(const std::string& index, const char* hash = kOne) {
  return index + FromHex(hash);
}

struct ListAttack {
  const char* name;
  std::string script;  // of the payload, in the project; `evil` has the lists
  const char* git;     // what a person does then
  const char* oracle;  // relative to the project: holds "evil" where it works
};

const std::string kConflict = std::string("mkdir -p .git/rr-cache/") + kOne +
                              "; echo x > .git/rr-cache/" + kOne +
                              "/preimage; printf '%s\\t%s\\0' " + kOne;
const std::string kRecorded = std::string(".git/rr-cache/") + kOne + "/postimage";

const ListAttack kListAttacks[] = {
    {"AHook", "cp evil/hook .git/index", "git checkout -q .", ".git/hooks/pre-commit"},
    {"TheConfiguration", "cp evil/config .git/index", "git restore .", ".git/config"},
    {"AFileAbove", "cp evil/above .git/index", "git restore .", "../outside"},
    {"AnAbsolutePath", "cp evil/absolute .git/index", "git restore .", "../absolute"},
    {"ANameInVersion4", "cp evil/four .git/index", "git restore .", ".git/hooks/pre-commit"},
    {"ANameInTheSharedPart",
     std::string("cp evil/split .git/index; cp evil/hook .git/sharedindex.") + kOne,
     "git restore .", ".git/hooks/pre-commit"},
    {"AnIndexThatIsReplaced", "rm -f .git/index; mv evil/hook .git/index", "git restore .",
     ".git/hooks/pre-commit"},
    {"AFileThatIsCopied", kConflict + " \"${PWD%/*}/secret\" > .git/MERGE_RR", "git commit -qm x",
     kRecorded.c_str()},
    {"AFileAboveThatIsCopied", kConflict + " ../secret > .git/MERGE_RR", "git commit -qm x",
     kRecorded.c_str()},
    {"AFileBehindALinkThatIsCopied", kConflict + " link > .git/MERGE_RR; ln -s ../secret link",
     "git commit -qm x", kRecorded.c_str()},
    {"AFileThatIsReplaced",
     std::string("mkdir -p .git/rr-cache/") + kTwo + "; cp .git/config .git/rr-cache/" + kTwo +
         "/preimage; (cat .git/config; echo '#evil') > .git/rr-cache/" + kTwo +
         "/postimage; printf '%s\\t%s\\0' " + kTwo + ".-1 .git/config > .git/MERGE_RR",
     "git commit -qm x", ".git/config"},
    {"SettingsThatAreReplaced",
     std::string("mkdir -p .git/rr-cache/") + kTwo + "; echo '{}' > .git/rr-cache/" + kTwo +
         "/preimage; echo '{\"evil\": 1}' > .git/rr-cache/" + kTwo +
         "/postimage; printf '%s\\t%s\\0' " + kTwo + ".-1 .vscode/tasks.json > .git/MERGE_RR",
     "git commit -qm x", ".vscode/tasks.json"},
};

class ProjectLists : public HostWatchTest {
 protected:
  void SetUp() override {
    HostWatchTest::SetUp();
    if (!Exists("/usr/bin/git")) {
      GTEST_SKIP() << "git is not installed";
    }
  }
  static RunResult Git(const std::string& root, const std::string& command) {
    RunOptions options;
    options.cwd = root;
    options.environment = Strings{"PATH=/usr/bin:/bin", "HOME=/nonexistent",
                                  "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"};
    return RunProgram({"/bin/sh", "-ec", command}, options);
  }
  // A repository with two files, one of which waits to be committed, and a directory above with a secret.
  std::string MakeRepository(const std::string& name) {
    const std::string root = dir_.MakeDir(name + "/project");
    dir_.Write(name + "/secret", "evil\n");
    dir_.Write(name + "/project/.vscode/tasks.json", "{}\n");
    const RunResult made =
        Git(root,
            "git init -q; git config user.email a@b; git config user.name n; echo a > a; "
            "git add .; git commit -qm a; echo b > b; git add b; "
            "printf '#!/bin/sh\\n#evil\\n' | git hash-object -w --stdin");
    EXPECT_EQ(made.exit, 0) << made.Describe();
    const std::string blob = made.out.substr(0, 40);
    const auto put = [&](const char* list, const std::string& bytes) {
      dir_.Write(name + "/project/evil/" + list, WithHash(bytes));
    };
    put("hook", Index(blob, {".git/hooks/pre-commit", "a"}));
    put("config", Index(blob, {".git/config", "a"}));
    put("above", Index(blob, {"../outside", "a"}));
    put("absolute", Index(blob, {dir_ / name + "/absolute", "a"}));
    put("four", Index(blob, {".git/hooks/pre", "-commit", "a"}, 4, {0, 0, 21}));
    // Nothing of the shared part is deleted or replaced: two empty bitmaps.
    const std::string none = Big(0) + Big(1) + Big(0) + Big(0) + Big(0);
    put("split", Index(blob, {}) + "link" + Big(60) + FromHex(kOne) + none + none);
    return root;
  }
  static bool IsEvil(const std::string& file) {
    return Contains(ReadFile(file).value_or(""), "evil");
  }

  TempDir dir_;
};

class ProjectListAttack : public ProjectLists, public ::testing::WithParamInterface<ListAttack> {};

TEST_P(ProjectListAttack, TellGitNoNamesElsewhere) {
  const ListAttack& attack = GetParam();
  const std::string open = MakeRepository("open");
  const RunResult control = RunCoffer({"--rw", open, "--runtime", "host-usr", "--cwd", open},
                                      {"sh", "-c", attack.script});
  const RunResult done = Git(open, attack.git);
  EXPECT_TRUE(IsEvil(open + "/" + attack.oracle))
      << "NO-CONTROL: " << control.Describe() << done.Describe();

  const std::string root = MakeRepository("closed");
  const RunResult result =
      RunCoffer({"--project", root}, {"sh", "-c", attack.script + "; echo it-ran"});
  EXPECT_TRUE(Contains(result.out, "it-ran")) << result.Describe();
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_TRUE(Contains(result.err, "set aside")) << result.Describe();
  const RunResult held = Git(root, attack.git + std::string(" || true"));
  EXPECT_FALSE(IsEvil(root + "/" + attack.oracle)) << result.Describe() << held.Describe();
}

INSTANTIATE_TEST_SUITE_P(All, ProjectListAttack, ::testing::ValuesIn(kListAttacks),
                         [](const auto& attack) { return std::string(attack.param.name); });

// Whatever git itself writes stays: all versions, offsets for threads, shared parts, directories of a sparse index,
// conflicts that wait, ids of SHA-256. `before` runs on the host, and `holds` shows that the index is of that kind.
TEST_F(ProjectLists, OfGitItselfStayWhereTheyAre) {
  const std::string root = MakeRepository("honest");
  fs::remove_all(root + "/evil");
  const std::string more =
      "git commit -qm d; for i in 1 2 3 4 5 6; do mkdir -p d$i; echo $i > d$i/f; done; ";
  const struct {
    std::string before, call, holds;
  } kSteps[] = {
      {"true", more + "git -c index.version=2 -c index.threads=3 add -A", "IEOT"},
      {"true", "git update-index --index-version 4; rm d1/f; git -c index.threads=3 add -A",
       "IEOT"},
      {"true", "git update-index --split-index; echo c > d1/g; git add -A; git commit -qm e",
       "link"},
      {"git update-index --no-split-index", "git update-index --untracked-cache; git status -s",
       "UNTR"},
      {"git sparse-checkout set --cone --sparse-index d2",
       "echo 2 > d2/g; git add -A; git status -s", "sdir"},
      {"git sparse-checkout disable; mkdir .git/rr-cache; git commit -qm f; git branch other",
       "echo mine > a; git commit -qam mine; git checkout -q other; echo other > a; git commit "
       "-qam "
       "other; git merge master >&2 || test -s .git/MERGE_RR",
       "a"},
      {"test -s .git/MERGE_RR",
       "echo both > a; git commit -qam both; test -e .git/rr-cache/*/postimage", "a"},
      {"rm -rf .git; git init -q --object-format=sha256; git config user.email a@b; "
       "git config user.name n",
       "git add -A; git commit -qm g", "d2/f"},
  };
  for (const auto& step : kSteps) {
    const RunResult before = Git(root, step.before);
    ASSERT_EQ(before.exit, 0) << step.before << before.Describe();
    const RunResult result = RunCoffer({"--project", root}, {"sh", "-ec", step.call});
    EXPECT_EQ(result.exit, 0) << step.call << result.Describe();
    EXPECT_FALSE(Contains(result.err, "set aside")) << step.call << result.Describe();
    EXPECT_TRUE(Contains(ReadFile(root + "/.git/index").value_or(""), step.holds))
        << "NO-CONTROL " << step.call;
  }
}

}  // namespace
}  // namespace coffer::test
