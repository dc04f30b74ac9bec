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
};

const Override kOverrides[] = {
    {"GitInsteadOf", "git",
     "printf '[url \"https://THERE/\"]\\n\\tinsteadOf = https://HERE/\\n' >.gitconfig\n"
     "git ls-remote https://HERE/v1/repo.git"},
    {"PipConf", "pip3",
     "mkdir -p .config/pip\nprintf '[global]\\nindex-url = https://THERE/simple\\n' "
     ">.config/pip/pip.conf\n"
     "pip3 download --no-cache-dir --retries 0 --no-deps some-package"},
    {"Npmrc", "npm",
     "printf 'registry=https://THERE/\\nfetch-retries=0\\n' >.npmrc\nnpm view some-package"},
};

class EgressSettings : public EgressFixture, public ::testing::WithParamInterface<Override> {};

TEST_P(EgressSettings, NW_28_AnotherRegistryIsAnotherHost) {
  if (!Exists(std::string("/usr/bin/") + GetParam().program)) {
    GTEST_SKIP() << "this host has no " << GetParam().program;
  }
  const std::string there = "other.test:" + std::to_string(tls_);
  std::string script = "cd /tmp; export HOME=/tmp\n" + std::string(GetParam().script);
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"THERE", there}, {"HERE", Api()}}) {
    for (size_t at = 0; (at = script.find(from, at)) != std::string::npos; at += to.size()) {
      script.replace(at, from.size(), to);
    }
  }
  const auto run = [&](const std::string& host) {
    return RunWith({"--allow", host, "--memory", "1GiB", "--processes", "64"},
                   {"/bin/sh", "-c", script});
  };
  const RunResult control = run(there);
  ASSERT_TRUE(Contains(Seen(), "host=" + there)) << "NO-CONTROL: the setting leads nowhere\n"
                                                 << control.Describe();
  const RunResult refused = run(Api());
  EXPECT_FALSE(Contains(Seen(), "host=" + there)) << "OPEN\n" << refused.Describe();
  EXPECT_TRUE(Contains(refused.err, "refused: other.test")) << refused.Describe();
}

INSTANTIATE_TEST_SUITE_P(With, EgressSettings, ::testing::ValuesIn(kOverrides),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace coffer::test
