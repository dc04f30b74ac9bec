// SPDX-License-Identifier: Apache-2.0
//
// Ordinary programs reach what --allow names without a setting of their own, both where the connection is passed through
// and where every request is judged.
#include <gtest/gtest.h>

#include "tests/support/egress_fixture.h"

namespace coffer::test {
namespace {

struct Client {
  const char* name;
  const char* program;
  Strings command;  // "URL" stands for https://api.test:PORT, "PORT" for its port
  const char* says;
};

const std::vector<Client>& Clients() {
  static const std::vector<Client> clients = {
      {"Curl", "curl", {"curl", "-sS", "URL/v1/x"}, "hello /v1/x"},
      {"Wget", "wget", {"wget", "-q", "-O", "-", "URL/v1/x"}, "hello /v1/x"},
      {"PythonUrllib",
       "python3",
       {"python3", "-c", "import urllib.request as u; print(u.urlopen('URL/v1/x').read())"},
       "hello /v1/x"},
      {"Git", "git", {"git", "ls-remote", "URL/v1/repo.git"}, "refs/heads/"},
      {"Openssl",
       "openssl",
       {"sh", "-c",
        "printf 'GET /v1/x HTTP/1.1\\r\\nHost: api.test:PORT\\r\\nConnection: close\\r\\n\\r\\n' | "
        "openssl s_client "
        "-quiet -verify_return_error -proxy 127.0.0.1:3128 -servername api.test "
        "-connect api.test:PORT 2>/dev/null"},
       "hello /v1/x"},
      {"NodeTunnel",
       "node",
       {"node", "-e",
        "const http=require('http'),tls=require('tls');"
        "http.request({host:'127.0.0.1',port:3128,method:'CONNECT',path:'api.test:PORT',"
        "headers:{host:'api.test:PORT'}})"
        ".on('connect',(r,s)=>{const t=tls.connect({socket:s,servername:'api.test'},()=>"
        "t.write('GET /v1/x HTTP/1.1\\r\\nHost: api.test:PORT\\r\\nConnection: "
        "close\\r\\n\\r\\n'));"
        "t.on('data',d=>process.stdout.write(d));}).end();"},
       "hello /v1/x"},
  };
  return clients;
}

std::string Filled(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

class EgressClients : public EgressFixture, public ::testing::WithParamInterface<Client> {
 protected:
  RunResult Reach(const std::string& rule) {
    Strings command;
    for (const std::string& word : GetParam().command) {
      command.push_back(
          Filled(Filled(word, "URL", "https://" + Api()), "PORT", std::to_string(tls_)));
    }
    // Node reserves address space for its heap, and git starts helpers.
    return RunWith({"--allow", rule, "--memory", "1GiB", "--processes", "64"}, command);
  }
};

TEST_P(EgressClients, ReachWhatIsAllowedAndNothingElse) {
  if (!Exists(std::string("/usr/bin/") + GetParam().program)) {
    GTEST_SKIP() << "this host has no " << GetParam().program;
  }
  const std::string intercepted = "GET,HEAD https://" + Api() + "/v1/**";
  for (const std::string& rule : {Api(), intercepted}) {
    const RunResult run = Reach(rule);
    EXPECT_TRUE(Contains(run.out, GetParam().says)) << rule << "\n" << run.out << run.err;
    const Json receipt = Receipt();
    ASSERT_TRUE(receipt.contains("network") && !receipt["network"].empty()) << run.err;
    EXPECT_EQ(receipt["network"][0]["decision"], "allow") << receipt["network"].dump();
  }
  for (const std::string& rule :
       {std::string("other.test:") + std::to_string(tls_), "GET https://" + Api() + "/v2/**"}) {
    Seen();
    const RunResult run = Reach(rule);
    EXPECT_FALSE(Contains(run.out, GetParam().says)) << "OPEN\n" << rule << "\n" << run.out;
    EXPECT_FALSE(Contains(Seen(), "request")) << "OPEN\n" << rule;
    EXPECT_TRUE(Contains(run.err, "refused: ")) << run.err;
  }
}

INSTANTIATE_TEST_SUITE_P(With, EgressClients, ::testing::ValuesIn(Clients()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace coffer::test
