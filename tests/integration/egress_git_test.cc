// SPDX-License-Identifier: Apache-2.0
//
// git over HTTPS with a real repository: it is cloned, fetched from and pushed to, by the proxy variables and without them, passed
// through and judged. Where requests are judged, a rule can let git read and not write.
#include <gtest/gtest.h>

#include "tests/support/egress_fixture.h"

namespace coffer::test {
namespace {

// Longer than git's buffer of 1 MiB for a request, so that it is sent in chunks.
constexpr const char* kBigFile = "head -c 1500000 /dev/urandom";

constexpr const char* kWithoutProxy =
    "unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY\n";

class EgressGit : public EgressFixture {
 protected:
  void SetUp() override {
    const RunResult where = RunProgram({"git", "--exec-path"});
    const Strings lines = Lines(where.out);
    if (where.exit != 0 || lines.empty() || !Exists(lines[0] + "/git-http-backend")) {
      GTEST_SKIP() << "this host has no git, or no git-http-backend";
    }
    EgressFixture::SetUp();
    const RunResult made = Host(std::string("mkdir git && git init -q --bare -b main git/repo.git "
                                            "&& git -C git/repo.git config http.receivepack true "
                                            "&& git init -q -b main origin && cd origin && ") +
                                kBigFile + " >big && git add big && " + kCommit +
                                " First && git push -q ../git/repo.git main");
    ASSERT_EQ(made.exit, 0) << made.Describe();
  }
  // Outside, beside the repository.
  RunResult Host(const std::string& script) const {
    RunOptions options;
    options.cwd = dir_.path();
    return RunProgram({"sh", "-ec", kSettings + script}, options);
  }
  RunResult Inside(const Strings& rules, const std::string& script) {
    Strings flags = {"--memory", "1GiB", "--processes", "64", "--tmp", "100MiB"};
    for (const std::string& rule : rules) {
      flags.insert(flags.end(), {"--allow", rule});
    }
    return RunWith(
        flags, {"sh", "-c",
                kSettings + ("at=https://" + Api() + "/git/repo.git\n") + "cd /tmp\n" + script});
  }
  // The commit that the server's branch names.
  std::string Head() const { return Lines(Host("git -C git/repo.git rev-parse main").out).at(0); }

  static constexpr const char* kCommit = "git -c user.name=t -c user.email=t@t.test commit -qm";
  static inline const std::string kSettings =
      "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_TERMINAL_PROMPT=0\n";
  static inline const std::string kClone = "git clone -q $at one && git -C one rev-parse HEAD\n";
  static inline const std::string kPush = std::string("cd one && ") + kBigFile +
                                          " >more && git add more && " + kCommit +
                                          " More && git push -q origin main && echo pushed\n";
};

TEST_F(EgressGit, ARepositoryIsClonedFetchedAndPushed) {
  const std::string judged = "GET,POST https://" + Api() + "/git/**";
  for (const std::string way : {"", kWithoutProxy}) {
    SCOPED_TRACE(way.empty() ? "by the proxy variables" : "without a proxy");
    for (const std::string& rule : {Api(), judged}) {
      SCOPED_TRACE(rule);
      const std::string before = Head();
      const RunResult run = Inside(
          {rule}, way + "git clone -q $at two\n" + kClone + kPush +
                      "cd ../two && git fetch -q && git fsck --no-progress && git cat-file -s "
                      "origin/main:more && git rev-parse origin/main\n");
      const std::string after = Head();
      EXPECT_NE(before, after) << "the push did not arrive";
      EXPECT_EQ(Lines(run.out), (Strings{before, "pushed", "1500000", after})) << run.Describe();
      const RunResult whole = Host("git -C git/repo.git fsck --no-progress --strict");
      EXPECT_EQ(whole.exit, 0) << whole.Describe();
      long out = 0, in = 0;
      const Json receipt = Receipt();
      for (const Json& use : receipt["network"]) {
        EXPECT_EQ(use["decision"], "allow") << use.dump();
        EXPECT_EQ(use["rule"], rule) << use.dump();
        EXPECT_EQ(use["path"].is_null(), rule != judged) << use.dump();
        out += use["bytes_out"].get<long>();
        in += use["bytes_in"].get<long>();
      }
      EXPECT_GT(out, 1500000) << "the push is not metered";
      EXPECT_GT(in, 3 * 1500000) << "two clones and a fetch are not metered";
    }
  }
}

// A judged request has a method and a path, and git has one path for each of the two ways.
TEST_F(EgressGit, ARuleForReadingLetsNothingBeWritten) {
  const std::string base = "https://" + Api() + "/git/";
  const Strings reading = {"GET " + base + "**", "POST " + base + "repo.git/git-upload-pack"};
  for (const std::string way : {"", kWithoutProxy}) {
    SCOPED_TRACE(way.empty() ? "by the proxy variables" : "without a proxy");
    const std::string before = Head();
    (void)Seen();
    const RunResult run = Inside(reading, way + kClone + kPush);
    EXPECT_EQ(Lines(run.out), (Strings{before})) << "OPEN, or NO-CONTROL\n" << run.Describe();
    EXPECT_EQ(Head(), before) << "OPEN: it was pushed";
    const std::string seen = Seen();
    EXPECT_TRUE(Contains(seen, "POST /git/repo.git/git-upload-pack")) << "NO-CONTROL\n" << seen;
    EXPECT_FALSE(Contains(seen, "POST /git/repo.git/git-receive-pack")) << "OPEN\n" << seen;
    const std::string denials = Receipt()["denials"].dump();
    EXPECT_TRUE(Contains(denials, "/git/repo.git/git-receive-pack")) << denials;
  }
  const std::string before = Head();
  const RunResult control = Inside({"GET,POST " + base + "**"}, kClone + kPush);
  EXPECT_TRUE(Contains(control.out, "pushed")) << "NO-CONTROL\n" << control.Describe();
  EXPECT_NE(Head(), before) << "NO-CONTROL";
}

TEST_F(EgressGit, WithoutTheHostsRuleNothingIsCloned) {
  for (const std::string way : {"", kWithoutProxy}) {
    for (const std::string& rule : {"other.test:" + std::to_string(tls_),
                                    "GET,POST https://" + Api() + "/git/other.git/**"}) {
      SCOPED_TRACE(rule);
      (void)Seen();
      const RunResult run = Inside({rule}, way + kClone);
      EXPECT_EQ(run.out, "") << "OPEN\n" << run.Describe();
      EXPECT_FALSE(Contains(Seen(), "request")) << "OPEN";
      EXPECT_TRUE(Contains(run.err, "refused: ")) << run.err;
    }
  }
  const RunResult control = Inside({Api()}, kClone);
  EXPECT_EQ(Lines(control.out), (Strings{Head()})) << "NO-CONTROL\n" << control.Describe();
}

}  // namespace
}  // namespace coffer::test
