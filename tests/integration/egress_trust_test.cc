// SPDX-License-Identifier: Apache-2.0
//
// Where requests are judged, programs trust the boundary's own authority without being told: the bundle of the system has it too.
// That bundle is the boundary's alone: the host's file and other boundaries do not have it.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/egress_fixture.h"

namespace coffer::test {
namespace {

constexpr const char* kSystemBundle = "/etc/ssl/certs/ca-certificates.crt";
constexpr const char* kProxy = "http://127.0.0.1:3128";

class EgressTrust : public EgressFixture {
 protected:
  void SetUp() override {
    if (!Exists(kSystemBundle)) {
      GTEST_SKIP() << "this host has no " << kSystemBundle;
    }
    EgressFixture::SetUp();
  }
  std::string Judged() const { return "GET https://" + Api() + "/v1/**"; }
  // Without --upstream-ca: the egress process then does not trust the test's server, and the bundle has nothing of ours.
  Strings Spliced() const {
    return {"--allow",    Api(), "--resolve", "api.test=127.0.0.1", "--dangerously-allow-address",
            "127.0.0.0/8"};
  }
  std::string SystemBundle(const Strings& flags) {
    const RunResult run = RunBare(flags, {"cat", kSystemBundle});
    EXPECT_EQ(run.exit, 0) << run.err;
    return run.out;
  }
  std::string Python(const std::string& trust) const {
    return "import ssl, urllib.request as u\n"
           "h = u.HTTPSHandler(context=ssl.create_default_context(" +
           trust + "))\np = u.ProxyHandler({'https': '" + kProxy +
           "'})\nprint(u.build_opener(p, h).open('https://" + Api() + "/v1/x').read())";
  }

  const Strings room_ = {"--memory", "2GiB", "--processes", "128", "--output", "2MiB"};
};

TEST_F(EgressTrust, ProgramsWithoutVariablesTrustTheAuthorityOfTheirBoundary) {
  const std::string named = Python(std::string("cafile='") + kSystemBundle + "'");
  std::vector<std::pair<Strings, Strings>> cases = {
      {{}, {"env", "-i", "curl", "-sS", "-x", kProxy, "https://" + Api() + "/v1/x"}},
      {{}, {"env", "-i", "/usr/bin/python3", "-c", named}},
      {{}, {"env", "-i", "/usr/bin/python3", "-c", Python("")}},
      {{"--ro-overlay"}, {"env", "-i", "/usr/bin/python3", "-c", Python("")}},
      {{"--runtime", "python3,base"}, {"env", "-i", "/usr/bin/python3", "-c", named}},
      {{"--runtime", "python3,base"}, {"env", "-i", "/usr/bin/python3", "-c", Python("")}},
  };
  for (const auto& [flags, command] : cases) {
    SCOPED_TRACE(::testing::PrintToString(flags) + ::testing::PrintToString(command));
    Strings judged = flags;
    judged.insert(judged.end(), {"--allow", Judged()});
    RunResult run = RunWith(judged, command);
    EXPECT_TRUE(Contains(run.out, "hello /v1/x")) << run.out << run.err;
    EXPECT_EQ(Receipt()["network"][0]["path"], "/v1/x") << "it was judged";
    // The control: the same program does not trust what the bundle does not have.
    Strings spliced = flags;
    const Strings more = Spliced();
    spliced.insert(spliced.end(), more.begin(), more.end());
    run = RunBare(spliced, command);
    EXPECT_FALSE(Contains(run.out, "hello")) << run.out;
    EXPECT_TRUE(Contains(run.err, "certificate")) << run.err;
  }
}

// It brings its libraries with it, clears its environment, and reads the bundle by name.
TEST_F(EgressTrust, AStaticProgramTrustsItToo) {
  if (!Exists("/usr/bin/go")) {
    GTEST_SKIP() << "this host has no /usr/bin/go";
  }
  std::ofstream(dir_.path() + "/main.go")
      << "package main\nimport (\"fmt\"; \"io\"; \"net/http\"; \"net/url\"; \"os\")\n"
         "func main() {\n\tos.Clearenv()\n\tp, _ := url.Parse(\""
      << kProxy
      << "\")\n\tc := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(p)}}\n"
         "\tr, err := c.Get(\"https://"
      << Api()
      << "/v1/x\")\n\tif err != nil { fmt.Fprintln(os.Stderr, err); os.Exit(1) }\n"
         "\tb, _ := io.ReadAll(r.Body)\n\tfmt.Println(string(b))\n}\n";
  RunOptions options;
  options.timeout = Seconds(300);
  const RunResult built =
      RunProgram({"env", "CGO_ENABLED=0", "HOME=" + dir_.path(),
                  "GOCACHE=" + dir_.path() + "/cache", "GOFLAGS=-modcacherw", "go", "build", "-o",
                  dir_.path() + "/client", dir_.path() + "/main.go"},
                 options);
  ASSERT_EQ(built.exit, 0) << built.err;
  Strings flags = room_;
  flags.insert(flags.end(),
               {"--runtime", "base", "--ro", dir_.path() + ":/data", "--allow", Judged()});
  RunResult run = RunWith(flags, {"/data/client"});
  EXPECT_TRUE(Contains(run.out, "hello /v1/x")) << run.out << run.err;
  flags = room_;
  const Strings more = Spliced();
  flags.insert(flags.end(), {"--runtime", "base", "--ro", dir_.path() + ":/data"});
  flags.insert(flags.end(), more.begin(), more.end());
  run = RunBare(flags, {"/data/client"});
  EXPECT_TRUE(Contains(run.err, "certificate")) << "the control\n" << run.out << run.err;
}

TEST_F(EgressTrust, JavaWithoutVariablesTrustsItToo) {
  if (!Exists("/usr/bin/java") || !Exists("/etc/ssl/certs/java/cacerts")) {
    GTEST_SKIP() << "this host has no /usr/bin/java with the system's certificates";
  }
  const std::string source =
      "import java.net.*; class A { public static void main(String[] a) throws Exception { "
      "Proxy p = new Proxy(Proxy.Type.HTTP, new InetSocketAddress(\"127.0.0.1\", 3128)); "
      "System.out.println(new String(new URL(\"https://" +
      Api() + "/v1/x\").openConnection(p).getInputStream().readAllBytes())); } }";
  std::ofstream(dir_.path() + "/A.java") << source;
  const Strings command = {"env", "-i", "/usr/bin/java", "/in/A.java"};
  Strings flags = room_;
  flags.insert(flags.end(), {"--cpu", "60s", "--in", dir_.path() + "/A.java"});
  Strings judged = flags;
  judged.insert(judged.end(), {"--allow", Judged()});
  RunResult run = RunWith(judged, command);
  EXPECT_TRUE(Contains(run.out, "hello /v1/x")) << run.out << run.err;
  const Strings more = Spliced();
  flags.insert(flags.end(), more.begin(), more.end());
  run = RunBare(flags, command);
  EXPECT_FALSE(Contains(run.out, "hello")) << run.out;
  EXPECT_TRUE(Contains(run.err, "certification path")) << "the control\n" << run.err;
}

TEST_F(EgressTrust, TheBundleOfTheHostAndOfOtherBoundariesIsNotChanged) {
  const std::string host = ReadFile(kSystemBundle).value_or("");
  ASSERT_FALSE(host.empty());
  const auto with = [&](Strings flags) {
    flags.insert(flags.end(), room_.begin(), room_.end());
    return flags;
  };
  Strings judged = with({"--allow", Judged()});
  const std::string first = SystemBundle(judged);
  const std::string second = SystemBundle(judged);
  ASSERT_TRUE(first.starts_with(host) && second.starts_with(host));
  const std::string authority = first.substr(host.size());
  EXPECT_TRUE(Contains(authority, "-----BEGIN CERTIFICATE-----")) << authority;
  EXPECT_FALSE(Contains(second, authority)) << "OPEN: two boundaries share an authority";
  EXPECT_EQ(ReadFile(kSystemBundle).value_or(""), host) << "OPEN: the host's file has changed";

  // Without judged requests nothing lies over it, with network and without.
  EXPECT_EQ(SystemBundle(with({"--allow", Api()})), host);
  EXPECT_EQ(SystemBundle(room_), host);

  // It cannot be changed from inside, and is what the variables name.
  const RunResult run = RunBare(
      judged,
      {"sh", "-c",
       "cmp \"$SSL_CERT_FILE\" /etc/ssl/certs/ca-certificates.crt && echo same\n"
       "for f in \"$SSL_CERT_FILE\" /etc/ssl/certs/ca-certificates.crt; do\n"
       "chmod 666 $f && echo OPEN; echo x >>$f && echo OPEN; rm -f $f && echo OPEN\n"
       "mv $f /tmp/ && echo OPEN; done 2>/dev/null; grep -c ca-certificates.crt /proc/mounts; "
       "true"});
  EXPECT_EQ(run.out, "same\n1\n") << run.err;
  EXPECT_EQ(ReadFile(kSystemBundle).value_or(""), host) << "OPEN";
}

}  // namespace
}  // namespace coffer::test
