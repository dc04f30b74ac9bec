// SPDX-License-Identifier: Apache-2.0
//
// Package managers and HTTP libraries do their whole job through --allow without a setting of their own: by the proxy
// variables and without them, passed through and judged request by request. Without the rule each is refused, and the
// receipt says which rule it lacked.
#include <gtest/gtest.h>

#include "tests/support/egress_fixture.h"

namespace coffer::test {
namespace {

struct Library {
  const char* name;
  const char* needs;   // a file of this host
  const char* below;   // the path that its rule covers
  const char* script;  // for sh; "URL" stands for https://api.test:PORT, "@AT@" for api.test:PORT
  const char* says;
};

// Programs that find no proxy variables use names and the redirect.
constexpr const char* kWithoutProxy =
    "unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NODE_USE_ENV_PROXY\n";

const std::vector<Library>& Libraries() {
  static const std::vector<Library> libraries = {
      {"Pip", "/usr/lib/python3/dist-packages/pip/__init__.py", "/simple",
       "/usr/bin/python3 -m pip install -q --retries 0 --disable-pip-version-check --target /tmp/t "
       "-i URL/simple/ coffer-probe && "
       "PYTHONPATH=/tmp/t /usr/bin/python3 -c 'import coffer_probe; print(coffer_probe.said)'",
       "the wheel works"},
      {"Npm", "/usr/bin/npm", "/npm",
       "cd /tmp && npm install --no-audit --no-fund --fetch-retries 0 --registry URL/npm/ "
       "coffer-probe && node -p 'require(\"coffer-probe\").said'",
       "the package works"},
      {"PythonRequests", "/usr/lib/python3/dist-packages/requests/__init__.py", "/v1",
       "/usr/bin/python3 -c 'import requests; s = requests.Session()\n"
       "print([s.get(\"URL/v1/\" + x, timeout=20).text for x in \"ab\"])'",
       "['hello /v1/a', 'hello /v1/b']"},
      {"NodeFetch", "/usr/bin/node", "/v1",
       "node -e 'fetch(\"URL/v1/x\").then(r => r.text()).then(console.log)'", "hello /v1/x"},
      {"NodeUndici", "/usr/share/nodejs/undici/package.json", "/v1",
       "NODE_PATH=/usr/share/nodejs node -e 'const u = require(\"undici\");\n"
       "if (process.env.HTTPS_PROXY) u.setGlobalDispatcher(new u.ProxyAgent("
       "process.env.HTTPS_PROXY));\n"
       "u.request(\"URL/v1/x\").then(r => r.body.text()).then(console.log)'",
       "hello /v1/x"},
      {"Go", "/usr/bin/go", "/v1",
       "cd /tmp && cat >a.go <<'END'\npackage main\nimport (\"fmt\"; \"io\"; \"net/http\")\n"
       "func main() {\n\tr, err := http.Get(\"URL/v1/x\")\n\tif err != nil { panic(err) }\n"
       "\tb, _ := io.ReadAll(r.Body)\n\tfmt.Println(r.StatusCode, string(b))\n}\nEND\n"
       "GOCACHE=/tmp/go go run a.go",
       "200 hello /v1/x"},
      {"WebSocketPython", "/usr/lib/python3/dist-packages/websocket/__init__.py", "/v1",
       "/usr/bin/python3 -c 'import os, websocket\n"
       "w = websocket.create_connection(\"wss://@AT@/v1/ws\", timeout=20, "
       "sslopt={\"ca_certs\": os.environ[\"SSL_CERT_FILE\"]})\n"
       "w.send(\"echoed\"); print(w.recv())'",
       "echoed"},
      {"Wget", "/usr/bin/wget", "/v1", "wget -q -t 1 -O - URL/v1/x", "hello /v1/x"},
  };
  return libraries;
}

std::string Filled(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

class EgressLibraries : public EgressFixture, public ::testing::WithParamInterface<Library> {
 protected:
  void SetUp() override {
    if (!Exists(GetParam().needs)) {
      GTEST_SKIP() << "this host has no " << GetParam().needs;
    }
    EgressFixture::SetUp();
  }
  RunResult Reach(const std::string& way, const std::string& rule) {
    const std::string script =
        Filled(Filled(GetParam().script, "URL", "https://@AT@"), "@AT@", Api());
    return RunWith({"--allow", rule, "--memory", "3GiB", "--processes", "256"},
                   {"sh", "-c", way + script});
  }
};

TEST_P(EgressLibraries, DoTheirWholeJobWithTheRuleAndNothingWithoutIt) {
  const std::string judged = "GET https://" + Api() + GetParam().below + "/**";
  for (const std::string way : {"", kWithoutProxy}) {
    SCOPED_TRACE(way.empty() ? "by the proxy variables" : "without a proxy");
    for (const std::string& rule : {Api(), judged}) {
      const RunResult run = Reach(way, rule);
      EXPECT_TRUE(Contains(run.out, GetParam().says)) << rule << "\n" << run.out << run.err;
      const Json receipt = Receipt();
      ASSERT_TRUE(receipt.contains("network") && !receipt["network"].empty()) << run.err;
      for (const Json& use : receipt["network"]) {
        EXPECT_EQ(use["decision"], "allow") << use.dump();
        EXPECT_EQ(use["rule"], rule) << use.dump();
      }
    }
    // The same program without the host's rule, and with one for other paths.
    for (const std::string& rule :
         {"other.test:" + std::to_string(tls_), "GET https://" + Api() + "/elsewhere/**"}) {
      Seen();
      const RunResult run = Reach(way, rule);
      EXPECT_FALSE(Contains(run.out, GetParam().says)) << "OPEN\n" << rule << "\n" << run.out;
      EXPECT_FALSE(Contains(Seen(), "request")) << "OPEN\n" << rule;
      const Json receipt = Receipt();
      ASSERT_FALSE(receipt["denials"].empty()) << run.err;
      const Json& denial = receipt["denials"][0];
      EXPECT_EQ(denial["surface"], "egress");
      // A name that was only looked up has no port yet.
      const std::string fix = denial["fix"].get<std::string>();
      EXPECT_TRUE(fix.starts_with("--allow api.test") || Contains(fix, "https://" + Api())) << fix;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(With, EgressLibraries, ::testing::ValuesIn(Libraries()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace coffer::test
