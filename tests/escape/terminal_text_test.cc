// SPDX-License-Identifier: Apache-2.0
//
// What coffer itself says on a terminal holds text that others wrote: names of files in a project, its .git file, a first
// line. A terminal must not obey any of it. What the command prints is its own, and is passed on: that is the control.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/utf8.h"
#include "tests/support/host.h"
#include "tests/support/person.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

// U+009B is ESC [ in one character; U+202E turns the rest of the line around.
const std::string kSecondSet =
    "\xc2\x9b"
    "31m";
const std::string kTurned = "\xe2\x80\xae";
const std::string kPlain = "\x1b]0;title\x07";
const std::string kLetters = "gr\xc3\xbc\xc3\x9f";  // stay

// The first character on the screen that a terminal obeys beyond the ends of lines; "" if there is none.
std::string Obeyed(std::string_view screen) {
  while (!screen.empty()) {
    const size_t length = Utf8Length(screen);
    const std::string one(screen.substr(0, std::max<size_t>(length, 1)));
    screen.remove_prefix(one.size());
    const auto first = static_cast<unsigned char>(one[0]);
    const bool ends_line = one == "\n" || one == "\r" || one == "\t";
    if (length == 0 || one == kTurned || (one.size() == 1 && !ends_line && first < 0x20) ||
        one == "\x7f" || (first == 0xc2 && static_cast<unsigned char>(one[1]) < 0xa0)) {
      return one;
    }
  }
  return "";
}

class TerminalTextEscape : public HostWatchTest {
 protected:
  // What a person sees of `coffer WORDS...`.
  static std::string Screen(const Strings& words) {
    Strings argv = {CofferPath()};
    argv.insert(argv.end(), words.begin(), words.end());
    Person person(argv);
    EXPECT_GE(person.Wait(), 0) << person.screen();
    return person.screen();
  }
  void SetUp() override {
    HostWatchTest::SetUp();
    project_ = dir_.MakeDir("project");
  }
  // Of the same text, printed by the command: the first character that the terminal obeys.
  std::string ObeyedOfTheCommand() const {
    return Obeyed(Screen({"run", "--", "printf", hostile_ + kPlain}));
  }
  // Whether coffer said what it read, and in a form that is only shown.
  static void ExpectShown(const std::string& screen) {
    EXPECT_TRUE(Contains(screen, "\\u009b31m")) << "not said at all: " << screen;
    EXPECT_TRUE(Contains(screen, kLetters)) << screen;
    EXPECT_EQ(Obeyed(screen), "") << "OPEN: " << screen;
  }

  TempDir dir_;
  std::string project_;
  const std::string hostile_ = kLetters + kSecondSet + kTurned;
};

TEST_F(TerminalTextEscape, TM_01_WhatAGitFileNames) {
  EXPECT_EQ(ObeyedOfTheCommand(), "\xc2\x9b") << "NO-CONTROL";
  dir_.Write("project/.git", "gitdir: /" + hostile_ + kPlain + "\n");
  ExpectShown(Screen({"run", "--project", project_, "--", "true"}));
}

TEST_F(TerminalTextEscape, TM_01_WhatAFirstLineNames) {
  EXPECT_EQ(ObeyedOfTheCommand(), "\xc2\x9b") << "NO-CONTROL";
  ExpectShown(
      Screen({"run", dir_.Write("project/script", "#!/" + hostile_ + kPlain + "\n", 0755)}));
}

TEST_F(TerminalTextEscape, TM_01_WhatTheFileOfAProjectSays) {
  EXPECT_EQ(ObeyedOfTheCommand(), "\xc2\x9b") << "NO-CONTROL";
  dir_.Write("project/.coffer.toml", "read_only = [\"/" + hostile_ + "\"]\n");
  ExpectShown(Screen({"run", "--project", project_, "--", "true"}));
}

TEST_F(TerminalTextEscape, TM_01_NamesOfFiles) {
  EXPECT_EQ(ObeyedOfTheCommand(), "\xc2\x9b") << "NO-CONTROL";
  const std::string fifo = dir_ / ("project/" + hostile_);
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const std::string link = dir_.Link("project/link" + hostile_, "/") + "/nothing";
  ExpectShown(Screen({"run", "--ro", fifo, "--", "true"}));
  ExpectShown(Screen({"run", "--in", fifo, "--", "true"}));
  ExpectShown(Screen({"run", "--rw", link, "--", "true"}));
  ExpectShown(Screen({"run", "--receipt", link + "/receipt", "--", "true"}));
  ExpectShown(Screen({"run", "--", dir_ / hostile_}));
}

// The receipt on a terminal, the same from the record, and what a program reads in it.
TEST_F(TerminalTextEscape, TM_01_WhatACallHasPlanted) {
  EXPECT_EQ(ObeyedOfTheCommand(), "\xc2\x9b") << "NO-CONTROL";
  const std::string name = hostile_ + "/.vscode";
  const std::string code = "mkdir -p '" + name + "' && echo {} > '" + name + "/tasks.json'";
  const std::string receipt = dir_ / "receipt";
  const Strings call = {"run", "--project", project_, "--state", dir_ / "state"};
  const auto with = [&](const Strings& more) {
    Strings words = call;
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", "sh", "-c", code});
    return words;
  };
  ExpectShown(Screen(with({"--receipt", "-"})));
  EXPECT_EQ(Obeyed(Screen(with({"--receipt", receipt}))), "");
  const std::string text = ReadFile(receipt).value_or("");
  EXPECT_EQ(Obeyed(text), "") << "OPEN: " << text;
  const Json json = Json::parse(text);
  EXPECT_EQ(json["files"]["planted"][0], name) << "another name than the command chose";
  const std::string id = json["call_id"];
  ExpectShown(Screen({"audit", "show", id, "--json", "--state", dir_ / "state"}));
  EXPECT_EQ(Obeyed(Screen({"audit", "show", id, "--state", dir_ / "state"})), "");
  // To a program the record is what was sealed, byte for byte.
  const RunResult piped =
      RunProgram({CofferPath(), "audit", "show", id, "--json", "--state", dir_ / "state"});
  EXPECT_EQ(Json::parse(piped.out)["receipt"]["files"]["planted"][0], name) << piped.Describe();
}

}  // namespace
}  // namespace coffer::test
