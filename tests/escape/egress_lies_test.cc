// SPDX-License-Identifier: Apache-2.0
//
// Servers that lie: answers that have no end, that can be read in two ways, that break off or never come. The program inside
// gets an error, nothing of a lie is passed on as a whole answer, and the egress process stays small and serves on.
#include <gtest/gtest.h>

#include <map>

#include "tests/support/egress_fixture.h"
#include "tests/support/host.h"

namespace coffer::test {
namespace {

constexpr const char* kClient = R"(
import http.client, json, ssl, sys
def get(path, most=1 << 20):
    c = http.client.HTTPSConnection('127.0.0.1', 3128, context=ssl.create_default_context(), timeout=60)
    c.set_tunnel('api.test', PORT)
    try:
        c.request('GET', path)
        r = c.getresponse()
        body = r.read(most)
        code = json.loads(body)['error'] if r.status >= 400 else 'whole' if r.isclosed() else 'more'
        return '%d %s' % (r.status, code)
    except (OSError, http.client.HTTPException) as e:
        return 'error %s' % e.__class__.__name__
    finally:
        c.close()
)";

class EgressLies : public EgressFixture {
 protected:
  Strings Python(std::string code) const {
    code = kClient + code;
    code.replace(code.find("PORT"), 4, std::to_string(tls_));
    return {"python3", "-c", code};
  }
  Strings Flags() const { return {"--allow", "GET https://" + Api() + "/lies/*"}; }
};

TEST_F(EgressLies, AnAnswerThatIsNotWholeIsAnErrorInside) {
  // What the program inside gets. An answer that breaks off after its head can only be cut.
  const std::map<std::string, std::string> lies = {
      {"chunk-size", "error"},
      {"chunk-huge", "error"},
      {"chunk-end", "error"},
      {"chunk-cut", "error"},
      {"two-framings", "502 upstream_broken"},
      {"not-http", "502 upstream_broken"},
      {"nothing", "502 upstream_broken"},
      {"half-head", "502 upstream_broken"},
      {"switch", "502 upstream_broken"},
      {"split", "502 upstream_broken"},
      {"endless-head", "502 upstream_broken"},
      {"endless-interim", "502 upstream_broken"},
      {"endless-body", "200 more"},
      {"slow", "200 more"},
      {"control", "200 whole"},
  };
  std::string code;
  for (const auto& [lie, expected] : lies) {
    code += "print('" + lie + "', get('/lies/" + lie + "'" + (lie == "slow" ? ", 5" : "") + "))\n";
  }
  const RunResult run = RunWith(Flags(), Python(code));
  const Strings lines = Lines(run.out);
  ASSERT_EQ(lines.size(), lies.size()) << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "control 200 whole")) << "NO-CONTROL\n" << run.out << run.err;
  size_t at = 0;
  for (const auto& [lie, expected] : lies) {
    const std::string wanted = lie + " " + expected;
    EXPECT_TRUE(lines[at].starts_with(wanted)) << "OPEN: " << lines[at] << ", not " << wanted;
    ++at;
  }
  // Each is in the receipt, and says what was wrong with the server.
  size_t broken = 0;
  const Json receipt = Receipt();
  for (const Json& use : receipt["network"]) {
    EXPECT_EQ(use["decision"], "allow") << use.dump();
    broken += use["error"].is_string() ? 1 : 0;
  }
  EXPECT_GE(broken, 12u) << receipt["network"].dump();
  // The server's endless answers ended when the program had enough, or the proxy had.
  std::string seen;
  EXPECT_TRUE(WaitUntil([&] {
    seen += Seen();
    return Contains(seen, "endless-body ended") && Contains(seen, "endless-head ended") &&
           Contains(seen, "endless-interim ended") && Contains(seen, "slow ended");
  })) << seen;
}

// An answer without a length is whole if its server said that this is the end. Who cuts the connection could say so neither to
// the program, had it come without us.
TEST_F(EgressLies, AnEndThatTheServerDidNotSayIsNoEndInside) {
  const std::string code = R"(
import socket, ssl
def rest(s):
    got = b''
    try:
        while piece := s.recv(4096): got += piece
        return got.split(b'\r\n\r\n')[1].decode() + ' ended'
    except ssl.SSLError: return 'no close_notify'
    except OSError as e: return e.__class__.__name__
context = ssl.create_default_context()
context.options &= ~getattr(ssl, 'OP_IGNORE_UNEXPECTED_EOF', 0x80)
def tunnel(what):
    s = socket.create_connection(('127.0.0.1', 3128), 60)
    s.sendall(b'CONNECT api.test:PORT HTTP/1.1\r\nHost: api.test:PORT\r\n\r\n'); s.recv(4096)
    t = context.wrap_socket(s, server_hostname='api.test', suppress_ragged_eofs=False)
    t.sendall(b'GET /lies/%s HTTP/1.1\r\nHost: api.test:PORT\r\n\r\n' % what)
    return rest(t)
def forward(what):
    s = socket.create_connection(('127.0.0.1', 3128), 60)
    s.sendall(b'GET https://api.test:PORT/lies/%s HTTP/1.1\r\nHost: api.test:PORT\r\n\r\n' % what)
    return rest(s)
for what in (b'bare', b'bare-cut'): print(tunnel(what), '|', forward(what))
)";
  std::string filled = code;
  for (size_t at = 0; (at = filled.find("PORT", at)) != std::string::npos;) {
    filled.replace(at, 4, std::to_string(tls_));
  }
  const RunResult run = RunWith(Flags(), {"python3", "-c", filled});
  const Strings lines = Lines(run.out);
  ASSERT_EQ(lines.size(), 2U) << run.Describe();
  EXPECT_EQ(lines[0], "whole ended | whole ended") << "NO-CONTROL\n" << run.Describe();
  EXPECT_EQ(lines[1], "no close_notify | ConnectionResetError")
      << "OPEN: a part counts as the whole";
  EXPECT_TRUE(Contains(Receipt()["network"].dump(), "ended early")) << Receipt().dump();
}

// What is small on the way stays small for the proxy: it unpacks nothing. A loop is as many requests as the client makes.
TEST_F(EgressLies, BombsAndLoopsCostTheProgramAndNotTheProxy) {
  Strings flags = Here();
  flags.insert(flags.end(), {"--allow", "GET https://" + Api() + "/lies/*", "--memory", "512MiB"});
  RunOptions options;
  options.input = std::string(Background::kKeepOpen, 5);
  Background run(CofferWords(flags, {"sh", "-c",
                                     "curl -sS --compressed https://" + Api() +
                                         "/lies/bomb | wc -c; curl -sS -L --max-redirs 9 https://" +
                                         Api() + "/lies/loop; echo loop $?; read x"}),
                 options);
  ASSERT_TRUE(run.WaitForOutput("loop 47", Seconds(60))) << run.out() << run.err();
  EXPECT_TRUE(Contains(run.out(), std::to_string(64 << 20))) << "NO-CONTROL\n" << run.out();
  const pid_t egress = EgressProcessOf(run.pid());
  ASSERT_GT(egress, 0);
  const long most = std::stol(LookAt(egress).status["VmHWM"]);
  EXPECT_LT(most, 48 * 1024) << "KiB: the proxy held what it carried";
  run.CloseInput();
  run.Wait();
  size_t loops = 0;
  const Json receipt = Receipt();
  for (const Json& use : receipt["network"]) {
    if (use["path"] == "/lies/loop") {
      loops += use["count"].get<size_t>();
    } else {
      EXPECT_LT(use["bytes_in"].get<int>(), 1 << 20) << use.dump();
    }
  }
  EXPECT_EQ(loops, 10u) << receipt["network"].dump();
}

// A certificate of a trusted authority for another host, or of none.
TEST_F(EgressLies, ACertificateForAnotherHostIsRefused) {
  const std::string at = "third.test:" + std::to_string(tls_);
  const Strings command = {"curl", "-sS", "-w", "%{http_code}", "https://" + at + "/lies/control"};
  const RunResult run = RunWith(
      {"--allow", "GET https://" + at + "/**", "--resolve", "third.test=127.0.0.1"}, command);
  EXPECT_TRUE(Contains(run.out, "502")) << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "the certificate of " + at + " is not good: hostname mismatch"))
      << run.out;
  EXPECT_FALSE(Contains(Seen(), "request")) << "OPEN";
  const RunResult control =
      RunWith({"--allow", "GET https://" + Api() + "/**"},
              {"curl", "-sS", "-w", "%{http_code}", "https://" + Api() + "/lies/control"});
  EXPECT_TRUE(Contains(control.out, "200")) << "NO-CONTROL\n" << control.out << control.err;
}

}  // namespace
}  // namespace coffer::test
