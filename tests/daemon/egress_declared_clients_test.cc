// SPDX-License-Identifier: Apache-2.0
//
// Declared tools with git, pip and npm do their whole job by [[network.allow]], in the daemon and by `coffer call`: a
// repository is cloned and pushed to, a package is installed from an index and from a registry. Without the host's rule none
// of them reaches anything, and the receipt says which rule it lacked.
#include <gtest/gtest.h>

#include "tests/daemon/egress_daemon.h"

namespace coffer::test {
namespace {

struct Client {
  const char* name;
  const char* needs;  // a file of this host
  const char* run;    // of the manifest
  const char* methods;
  const char* below;   // the path that its rule covers
  const char* script;  // for sh; "@AT@" stands for api.test:PORT
  const char* says;
};

constexpr Client kDeclaredClients[] = {
    {"git", "/usr/bin/git", "runtime = \"git\"", "[\"GET\", \"POST\"]", "/git",
     "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_TERMINAL_PROMPT=0; cd "
     "/tmp && "
     "git clone -q https://@AT@/git/repo.git one && cd one && head -1 file && echo more >> file && "
     "git -c user.name=t -c user.email=t@t.test commit -qam More && git push -q origin main && "
     "echo pushed",
     "the first line\npushed\n"},
    {"pip", "/usr/lib/python3/dist-packages/pip/__init__.py",
     "runtime = \"python3\"\nalso = [\"base\"]", "[\"GET\"]", "/simple",
     "/usr/bin/python3 -m pip install -q --retries 0 --disable-pip-version-check --target /tmp/t "
     "-i https://@AT@/simple/ coffer-probe && "
     "PYTHONPATH=/tmp/t /usr/bin/python3 -c 'import coffer_probe; print(coffer_probe.said)'",
     "the wheel works\n"},
    {"npm", "/usr/bin/npm", "runtime = \"npm\"", "[\"GET\"]", "/npm",
     "cd /tmp && npm install --silent --no-audit --no-fund --fetch-retries 0 "
     "--registry https://@AT@/npm/ coffer-probe >&2 && "
     "node -p 'require(\"/tmp/node_modules/coffer-probe\").said'",
     "the package works\n"},
};

class EgressDeclaredClients : public DaemonEgress, public ::testing::WithParamInterface<Client> {
 protected:
  void SetUp() override {
    if (!Exists(GetParam().needs)) {
      GTEST_SKIP() << "this host has no " << GetParam().needs;
    }
    DaemonEgress::SetUp();
    RunOptions options;
    options.cwd = dir_.path();
    const RunResult made = RunProgram(
        {"sh", "-ec",
         "command -v git >/dev/null || exit 0\n"
         "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null\nmkdir git\n"
         "git init -q --bare -b main git/repo.git\n"
         "git -C git/repo.git config http.receivepack true\n"
         "git init -q -b main origin\ncd origin\necho 'the first line' >file\ngit add file\n"
         "git -c user.name=t -c user.email=t@t.test commit -qm First\n"
         "git push -q ../git/repo.git main\n"},
        options);
    ASSERT_EQ(made.exit, 0) << made.Describe();
  }
  void DeclareClient(const std::string& name, const std::string& rule) const {
    std::string text = kNetworkTool;
    const auto put = [&](const std::string& from, const std::string& to) {
      const size_t at = text.find(from);
      ASSERT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    };
    put("@NAME@", name);
    put("runtime = \"bash\"\nalso = [\"python3\"]", GetParam().run);
    put("\"bash\", \"--noprofile\", \"--norc\", \"-c\"", "\"sh\", \"-c\", \"--\"");
    put("processes = 64",
        "processes = 256\nmemory = \"2GiB\"\ntmp = \"100MiB\"\nwall = \"120s\"\ncpu = \"120s\"");
    put("[[examples.allow]]", rule + "[[examples.allow]]");
    std::ofstream(daemon_.tools() + "/" + name + ".toml", std::ios::trunc) << text;
  }
  std::string Rule(const std::string& host, const std::string& rest) const {
    return "[[network.allow]]\nhost = \"" + host + "\"\nports = [" + std::to_string(tls_) + "]\n" +
           rest;
  }
  std::string Script() const {
    std::string script = GetParam().script;
    for (size_t at = 0; (at = script.find("@AT@", at)) != std::string::npos;) {
      script.replace(at, 4, Api());
    }
    return script;
  }
  std::string Head() const {
    return RunProgram({"git", "-C", dir_.path() + "/git/repo.git", "rev-parse", "main"}).out;
  }
};

TEST_P(EgressDeclaredClients, DoTheirWholeJobByTheirRule) {
  const std::string judged = std::string("methods = ") + GetParam().methods + "\npaths = [\"" +
                             GetParam().below + "/**\"]\n";
  DeclareClient("judged", Rule("api.test", judged));
  DeclareClient("spliced", Rule("api.test", "tls = \"splice\"\n"));
  DeclareClient("elsewhere", Rule("api.test", "paths = [\"/elsewhere/**\"]\n"));
  DeclareClient("stranger", Rule("other.test", "tls = \"splice\"\n"));
  ASSERT_TRUE(Start());
  const bool pushes = std::string(GetParam().name) == "git";
  for (const std::string tool : {"judged", "spliced"}) {
    const std::string before = Head();
    const HttpAnswer answer = CallForLong(tool, Script());
    EXPECT_TRUE(Out(answer).ends_with(GetParam().says)) << tool << "\n" << answer.text;
    const Json receipt = ReceiptOf(answer);
    EXPECT_FALSE(receipt["network"].empty()) << receipt.dump();
    for (const Json& use : receipt["network"]) {
      EXPECT_EQ(use["decision"], "allow") << use.dump();
      EXPECT_EQ(use["path"].is_null(), tool == "spliced") << use.dump();
    }
    EXPECT_EQ(receipt["denials"], Json::array()) << receipt.dump();
    EXPECT_EQ(Head() != before, pushes) << tool;
  }
  for (const std::string tool : {"elsewhere", "stranger"}) {
    const std::string before = Head();
    (void)Seen();
    const HttpAnswer answer = CallForLong(tool, Script());
    EXPECT_FALSE(Contains(Out(answer), GetParam().says)) << "OPEN\n" << tool << answer.text;
    EXPECT_FALSE(Contains(Seen(), "request")) << "OPEN\n" << tool;
    EXPECT_EQ(Head(), before) << "OPEN";
    const Json receipt = ReceiptOf(answer);
    ASSERT_FALSE(receipt["denials"].empty()) << receipt.dump();
    EXPECT_EQ(receipt["denials"][0]["surface"], "egress") << receipt.dump();
    EXPECT_TRUE(Contains(receipt["denials"][0]["fix"], "[[network.allow]]")) << receipt.dump();
  }
}

TEST_P(EgressDeclaredClients, DoTheSameWithoutADaemon) {
  DeclareClient("judged", Rule("api.test", std::string("methods = ") + GetParam().methods +
                                               "\npaths = [\"" + GetParam().below + "/**\"]\n"));
  DeclareClient("stranger", Rule("other.test", "tls = \"splice\"\n"));
  const auto call = [&](const std::string& tool) {
    RunOptions options;
    options.timeout = Seconds(180);
    return RunProgram(
        {CofferPath(), "call", tool, "--state", dir_ / "own", "--tools", daemon_.tools(),
         "--config", file_, "--args", Json{{"script", Script()}}.dump()},
        options);
  };
  const RunResult done = call("judged");
  EXPECT_TRUE(done.out.ends_with(GetParam().says)) << done.Describe();
  EXPECT_FALSE(Contains(done.err, "refused:")) << done.err;
  (void)Seen();
  const RunResult refused = call("stranger");
  EXPECT_FALSE(Contains(refused.out, GetParam().says)) << "OPEN\n" << refused.Describe();
  EXPECT_FALSE(Contains(Seen(), "request")) << "OPEN";
  EXPECT_TRUE(Contains(refused.err, "refused: api.test")) << refused.err;
  EXPECT_TRUE(Contains(refused.err, "[[network.allow]] host = \"api.test\"")) << refused.err;
}

INSTANTIATE_TEST_SUITE_P(With, EgressDeclaredClients, ::testing::ValuesIn(kDeclaredClients),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace coffer::test
