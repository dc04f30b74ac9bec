// SPDX-License-Identifier: Apache-2.0
//
// Settings that a project or an agent can write, which lead a client to another host than the one it was told: the rules are about
// where a connection goes, not about what the command line says.
#include <gtest/gtest.h>

#include "tests/support/egress_fixture.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

struct Override {
  const char* name;
  const char* program;
  const char* script;  // HERE and THERE stand for the two hosts and their port
  bool ssh = false;    // THERE speaks SSH
};

const Override kOverrides[] = {
    {"GitInsteadOf", "git",
     "printf '[url \"https://THERE/\"]\\n\\tinsteadOf = https://HERE/\\n' >.gitconfig\n"
     "git ls-remote https://HERE/v1/repo.git"},
    {"GitInsteadOfSsh", "ssh",
     "printf '[url \"ssh://git@THERE/\"]\\n\\tinsteadOf = https://HERE/\\n' >.gitconfig\n"
     "git ls-remote https://HERE/v1/repo.git",
     /*ssh=*/true},
    {"PipConf", "pip3",
     "mkdir -p .config/pip\nprintf '[global]\\nindex-url = https://THERE/simple\\n' "
     ">.config/pip/pip.conf\n"
     "pip3 download --no-cache-dir --retries 0 --no-deps some-package"},
    {"Npmrc", "npm",
     "printf 'registry=https://THERE/\\nfetch-retries=0\\n' >.npmrc\nnpm view some-package"},
    // The file that `go env -w` writes.
    {"GoProxy", "go",
     "mkdir -p .config/go\nprintf 'GOPROXY=https://THERE/\\nGOSUMDB=off\\n' >.config/go/env\n"
     "go list -m -versions example.com/some-module"},
};

class EgressSettings : public EgressFixture, public ::testing::WithParamInterface<Override> {};

TEST_P(EgressSettings, NW_28_AnotherRegistryIsAnotherHost) {
  if (!Exists(std::string("/usr/bin/") + GetParam().program)) {
    GTEST_SKIP() << "this host has no " << GetParam().program;
  }
  const bool ssh = GetParam().ssh;
  const std::string there = "other.test:" + std::to_string(ssh ? greeter_ : tls_);
  std::string script = "cd /tmp; export HOME=/tmp\n" + std::string(GetParam().script);
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"THERE", there}, {"HERE", Api()}}) {
    for (size_t at = 0; (at = script.find(from, at)) != std::string::npos; at += to.size()) {
      script.replace(at, from.size(), to);
    }
  }
  const auto run = [&](const std::string& rule) {
    return RunWith({"--allow", rule, "--memory", "1GiB", "--processes", "64"},
                   {"/bin/sh", "-c", script});
  };
  const std::string sign = ssh ? "greeting SSH-2.0" : "host=" + there;
  const RunResult control = run(ssh ? "tcp://" + there : there);
  ASSERT_TRUE(Contains(Seen(), sign)) << "NO-CONTROL: the setting leads nowhere\n"
                                      << control.Describe();
  const RunResult refused = run(Api());
  const std::string seen = Seen();
  EXPECT_FALSE(Contains(seen, sign) || Contains(seen, "other.test")) << "OPEN\n"
                                                                     << refused.Describe();
  EXPECT_TRUE(Contains(refused.err, "refused: other.test")) << refused.Describe();
  bool written = false;
  const Json receipt = Receipt();
  for (const Json& denial : receipt.value("denials", Json::array())) {
    const std::string target = denial["target"], fix = denial["fix"];
    written = written || (denial["surface"] == "egress" && Contains(target, "other.test") &&
                          fix.starts_with("--allow other.test"));
  }
  EXPECT_TRUE(written) << receipt.dump();
}

INSTANTIATE_TEST_SUITE_P(With, EgressSettings, ::testing::ValuesIn(kOverrides),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace coffer::test
