// SPDX-License-Identifier: Apache-2.0
//
// Ordinary programs that use no proxy reach what --allow names, and nothing else, without a setting of their own.
#include <gtest/gtest.h>

#include "tests/support/egress_fixture.h"

namespace coffer::test {
namespace {

struct DirectClient {
  const char* name;
  const char* program;
  const char* rule;  // of HOST
  Strings command;
  const char* says;  // on stdout
  const char* seen;  // by the servers
};

const std::vector<DirectClient>& Clients() {
  static const std::vector<DirectClient> clients = {
      {"Getent", "getent", "HOST:TLS", {"getent", "ahostsv4", "api.test"}, "198.18.1.0", ""},
      {"Curl",
       "curl",
       "HOST:TLS",
       {"curl", "-sS", "--noproxy", "*", "https://api.test:TLS/v1/x"},
       "hello /v1/x",
       "GET /v1/x"},
      {"CurlJudged",
       "curl",
       "GET https://HOST:TLS/v1/**",
       {"curl", "-sS", "--noproxy", "*", "https://api.test:TLS/v1/x"},
       "hello /v1/x",
       "GET /v1/x"},
      {"CurlPlain",
       "curl",
       "http://HOST:PLAIN/v1/**",
       {"curl", "-sS", "--noproxy", "*", "http://api.test:PLAIN/v1/x"},
       "hello /v1/x",
       "GET /v1/x"},
      {"PythonUrllib",
       "python3",
       "HOST:TLS",
       {"python3", "-c",
        "import urllib.request as u\n"
        "print(u.build_opener(u.ProxyHandler({})).open('https://api.test:TLS/v1/x').read())"},
       "hello /v1/x",
       "GET /v1/x"},
      {"NodeFetch",
       "node",
       "HOST:TLS",
       {"env", "-u", "NODE_USE_ENV_PROXY", "node", "-e",
        "fetch('https://api.test:TLS/v1/x').then(r=>r.text()).then(console.log)"},
       "hello /v1/x",
       "GET /v1/x"},
      {"Bash",
       "bash",
       "http://HOST:PLAIN/**",
       {"bash", "-c",
        "exec 3<>/dev/tcp/api.test/PLAIN; printf 'GET /v1/x HTTP/1.1\\r\\nHost: "
        "api.test:PLAIN\\r\\n"
        "Connection: close\\r\\n\\r\\n' >&3; cat <&3"},
       "hello /v1/x",
       "GET /v1/x"},
      {"Netcat",
       "busybox",
       "tcp://HOST:GREETER",
       {"sh", "-c", "echo hello | busybox nc api.test GREETER"},
       "SSH-2.0-greeter",
       "greeting hello"},
      {"Ssh",
       "ssh",
       "tcp://HOST:GREETER",
       {"sh", "-c", "ssh -p GREETER git@api.test; echo ended"},
       "ended",
       "greeting SSH-2.0-OpenSSH"},
      {"GitOverSsh",
       "ssh",
       "tcp://HOST:GREETER",
       {"sh", "-c", "git ls-remote ssh://git@api.test:GREETER/repo.git; echo ended"},
       "ended",
       "greeting SSH-2.0-OpenSSH"},
      {"Java",
       "javac",
       "http://HOST:PLAIN/**",
       {"sh", "-c",
        "cd /tmp && echo 'public class A { public static void main(String[] a) throws Exception { "
        "System.out.println(new String(new java.net.URL(\"http://api.test:PLAIN/v1/x\")"
        ".openStream().readAllBytes())); } }' > A.java && java -Xmx256m A.java"},
       "hello /v1/x",
       "GET /v1/x"},
      {"JavaOverTls",
       "javac",
       "GET https://HOST:TLS/v1/**",
       {"sh", "-c",
        "cd /tmp && echo 'public class A { public static void main(String[] a) throws Exception { "
        "System.out.println(new String(new java.net.URL(\"https://api.test:TLS/v1/x\")"
        ".openStream().readAllBytes())); } }' > A.java && java -Xmx256m A.java"},
       "hello /v1/x",
       "GET /v1/x"},
  };
  return clients;
}

std::string Filled(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

class EgressDirectClients : public EgressFixture,
                            public ::testing::WithParamInterface<DirectClient> {
 protected:
  std::string WithPorts(const std::string& text) const {
    return Filled(
        Filled(Filled(text, "TLS", std::to_string(tls_)), "PLAIN", std::to_string(plain_)),
        "GREETER", std::to_string(greeter_));
  }
  // The command, with the program's rule for `host`.
  RunResult Reach(const std::string& host) {
    Strings command;
    for (const std::string& word : GetParam().command) {
      command.push_back(WithPorts(word));
    }
    return RunWith({"--allow", Filled(WithPorts(GetParam().rule), "HOST", host), "--memory", "2GiB",
                    "--processes", "128"},
                   command);
  }
};

TEST_P(EgressDirectClients, ReachWhatIsAllowedAndNothingElse) {
  if (!Exists(std::string("/usr/bin/") + GetParam().program)) {
    GTEST_SKIP() << "this host has no " << GetParam().program;
  }
  const RunResult run = Reach("api.test");
  EXPECT_TRUE(Contains(run.out, GetParam().says)) << run.out << run.err;
  const std::string seen = Seen();
  EXPECT_TRUE(Contains(seen, GetParam().seen)) << seen << run.err;
  const RunResult other = Reach("other.test");
  EXPECT_TRUE(std::string(GetParam().says) == "ended" || !Contains(other.out, GetParam().says))
      << "OPEN\n"
      << other.out;
  EXPECT_EQ(Seen(), "") << "OPEN";
  EXPECT_TRUE(Contains(other.err, "refused: api.test: no rule allows api.test")) << other.err;
}

INSTANTIATE_TEST_SUITE_P(With, EgressDirectClients, ::testing::ValuesIn(Clients()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace coffer::test
