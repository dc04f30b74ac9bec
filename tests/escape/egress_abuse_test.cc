// SPDX-License-Identifier: Apache-2.0
//
// Programs inside that abuse their proxy: half-open, slow, oversized and pipelined requests. Each costs its own connection for
// a bounded time; what comes after is served, and what is refused ends what stood behind it.
#include <gtest/gtest.h>
#include <string.h>

#include <map>

#include "tests/support/egress_fixture.h"
#include "tests/support/host.h"

namespace coffer::test {
namespace {

constexpr const char* kClient = R"(
import os, socket, sys, threading, time
def proxy(timeout=60):
    s = socket.create_connection(('127.0.0.1', 3128), timeout)
    s.settimeout(timeout)
    return s
def request(path, more=''):
    return ('GET http://api.test:PORT%s HTTP/1.1\r\nHost: api.test:PORT\r\n%s\r\n' % (path, more)).encode()
def line(s):
    try: return s.recv(4096).split(b'\r\n')[0].decode('latin-1') or 'closed'
    except OSError as e: return 'error ' + e.__class__.__name__
def ask(path='/v1/after'):
    with proxy() as s:
        s.sendall(request(path, 'Connection: close\r\n'))
        return line(s)
def everything(s):
    got = b''
    while True:
        try: more = s.recv(65536)
        except OSError: return got
        if not more: return got
        got += more
)";

class EgressAbuse : public EgressFixture {
 protected:
  RunResult Inside(const std::string& code, const Strings& more = {}) {
    std::string whole = kClient + code;
    for (size_t at = 0; (at = whole.find("PORT", at)) != std::string::npos;) {
      whole.replace(at, 4, std::to_string(plain_));
    }
    Strings flags = {"--allow", Url("api.test", "/v1/**"), "--open-files", "1000"};
    flags.insert(flags.end(), more.begin(), more.end());
    return RunWith(flags, {"python3", "-c", whole});
  }
};

// All places are taken by connections that say nothing, half of a head, or a byte each second. None of them gets more than the
// time for a head, however little it sends; then others are served.
TEST_F(EgressAbuse, ABoundaryFullOfStuckConnectionsRecovers) {
  const RunResult run = Inside(R"(
began = time.monotonic()
kinds = [b'', b'GET http://api', b'\x05', b'\x05\x01\x00\x05\x01']
stuck = [proxy() for _ in range(64)]
for i, s in enumerate(stuck): s.sendall(kinds[i % 4] if i < 48 else b'')
def drip():
    head = request('/v1/slow', 'X-Slow: ' + 'x' * 1000 + '\r\n')
    for at in range(len(head)):
        for s in stuck[48:]:
            try: s.sendall(head[at:at + 1])
            except OSError: pass
        time.sleep(1)
threading.Thread(target=drip, daemon=True).start()
print('after', ask())
print('waited', time.monotonic() - began > 5)
sys.stdout.flush()
os._exit(0)
)");
  EXPECT_TRUE(Contains(run.out, "after HTTP/1.1 200")) << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "waited True")) << "NO-CONTROL: there was a free place\n"
                                                << run.out;
  const std::string seen = Seen();
  EXPECT_TRUE(Contains(seen, "GET /v1/after")) << seen;
  EXPECT_FALSE(Contains(seen, "/v1/slow")) << "OPEN\n" << seen;
}

// Requests that come before the answers of others are answered one after the other; a refused one ends what is behind it.
TEST_F(EgressAbuse, PipelinedRequestsAreJudgedOneByOne) {
  const RunResult run = Inside(R"(
s = proxy()
many = 3000
threading.Thread(target=lambda: s.sendall(b''.join(request('/v1/%d' % i, 'Connection: close\r\n' if i == many - 1 else '')
                                                   for i in range(many))), daemon=True).start()
got = everything(s)
print('many', got.count(b'HTTP/1.1 200'), [int(p.split(b'HTTP')[0]) for p in got.split(b'hello /v1/')[1:]] == list(range(many)))
s = proxy()
s.sendall(request('/v1/first') + request('/v2/secret') + request('/v1/behind'))
got = everything(s)
print('mixed', got.count(b'HTTP/1.1 200'), got.count(b'HTTP/1.1 403'))
s = proxy()
s.sendall(b'CONNECT other.test:PORT HTTP/1.1\r\n\r\n' + request('/v1/behind'))
print('tunnel', everything(s).count(b'HTTP/1.1'))
)");
  EXPECT_TRUE(Contains(run.out, "many 3000 True")) << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "mixed 1 1")) << "OPEN\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "tunnel 1")) << "OPEN\n" << run.out;
  const std::string seen = Seen();
  EXPECT_TRUE(Contains(seen, "GET /v1/first")) << "NO-CONTROL";
  EXPECT_FALSE(Contains(seen, "secret") || Contains(seen, "behind")) << "OPEN";
}

// Heads, hellos and bodies without end are cut where their bound is, and the proxy holds no more than that of them.
TEST_F(EgressAbuse, OversizedInputIsCutAtItsBound) {
  Strings flags = Here();
  flags.insert(flags.end(), {"--allow", Url("api.test", "/v1/**"), "--allow", Api()});
  std::string code = kClient + std::string(R"(
def flood(first, piece, most=64 << 20):
    s, sent = proxy(), 0
    try:
        s.sendall(first)
        while sent < most:
            s.sendall(piece)
            sent += len(piece)
    except OSError: pass
    return 'cut' if sent < most else 'taken'
print('head', flood(b'GET http://api.test/ HTTP/1.1\r\n', b'X: ' + b'x' * 1000 + b'\r\n'))
print('line', flood(b'GET http://api.test/', b'a' * 1000))
print('fields', flood(b'GET http://api.test/ HTTP/1.1\r\n', b'a:\r\n' * 100))
print('socks', flood(b'\x05\xff' + b'\x00' * 255, b'\x05' * 1000))
print('hello', flood(b'CONNECT api.test:TLS HTTP/1.1\r\n\r\n', b'\x16\x03\x01\x40\x00\x01\xff\xff\xff' + b'x' * 16379))
print('chunk', flood(request('/v1/x', 'Transfer-Encoding: chunked\r\n'), b'0' * 1000))
print('names', flood(b'\x05\x01\x00\x05\x01\x00\x03\xff', b'n' * 1000))
print('body', flood(request('/v1/x', 'Content-Length: %d\r\n' % (64 << 20)).replace(b'GET', b'PUT'), bytes(1 << 20)))
print('after', ask(), flush=True)
sys.stdin.readline()
)");
  for (const auto& [name, port] : {std::pair("PORT", plain_), std::pair("TLS", tls_)}) {
    for (size_t at = 0; (at = code.find(name, at)) != std::string::npos;) {
      code.replace(at, strlen(name), std::to_string(port));
    }
  }
  RunOptions options;
  options.input = std::string(Background::kKeepOpen, 5);
  Background run(CofferWords(flags, {"python3", "-c", code}), options);
  ASSERT_TRUE(run.WaitForOutput("after HTTP/1.1 200", Seconds(90))) << run.out() << run.err();
  const pid_t egress = EgressProcessOf(run.pid());
  ASSERT_GT(egress, 0);
  EXPECT_LT(std::stol(LookAt(egress).status["VmHWM"]), 48 * 1024) << "KiB";
  EXPECT_TRUE(Contains(run.out(), "body taken")) << "NO-CONTROL\n" << run.out();
  for (const char* const kind : {"head", "line", "fields", "socks", "hello", "chunk", "names"}) {
    EXPECT_TRUE(Contains(run.out(), std::string(kind) + " cut")) << "OPEN: " << kind << run.out();
  }
  run.CloseInput();
  run.Wait();
  // One line each for what could be named; nothing of it was sent on but the request whose body was broken.
  const std::string seen = Seen();
  EXPECT_TRUE(Contains(seen, "GET /v1/after")) << seen;
}

// Refusals cost nothing, and so must hide nothing: what was reached is in the receipt whatever noise was made before.
TEST_F(EgressAbuse, NoiseDoesNotHideWhatWasReached) {
  const RunResult run = Inside(R"(
def refused(name, path='x'):
    with proxy() as s: s.sendall(b'GET http://%s/%s HTTP/1.1\r\nHost: %s\r\n\r\n' % (name, path, name)); s.recv(4096)
for i in range(600): refused(b'n%d.evil.test' % i, b'long' * 1000)
for i in range(300): refused(b'others:%d' % (i + 1), b'')
print('after', ask())
for i in range(300): ask('/v1/noise%d' % i)
print('last', ask('/v1/last'))
)");
  EXPECT_TRUE(Contains(run.out, "after HTTP/1.1 200")) << run.out << run.err;
  const Json receipt = Receipt();
  EXPECT_LT(ReadFile(dir_.path() + "/receipt")->size(), 2u << 20);
  std::map<std::string, size_t> listed;
  size_t allowed = 0;
  for (const Json& use : receipt["network"]) {
    const std::string decision = use["decision"];
    ++listed[decision];
    allowed += decision == "allow" ? use["count"].get<size_t>() : 0;
  }
  EXPECT_TRUE(Contains(receipt["network"].dump(), "/v1/after")) << "OPEN: hidden by refusals";
  EXPECT_EQ(allowed, 302u) << "each is counted with its rule";
  EXPECT_GE(listed["deny"], 100u) << "NO-CONTROL: there was no noise";
  EXPECT_LE(listed["allow"], 257u);
  EXPECT_LE(listed["deny"], 257u);
}

// The same for an incident: neither the room of the egress process nor the list of denials is full for it.
TEST_F(EgressAbuse, NoiseDoesNotHideAnIncident) {
  const std::string noise = R"(
def refused(name, path='x'):
    with proxy() as s: s.sendall(b'GET http://%s/%s HTTP/1.1\r\nHost: %s\r\n\r\n' % (name, path, name)); s.recv(4096)
for i in range(1500): refused(b'n%d.evil.test' % i, b'long' * 1000)
)";
  const RunResult noisy = Inside(noise);
  EXPECT_EQ(noisy.exit, 0) << noisy.err;
  const Json before = Receipt();
  EXPECT_EQ(before["incidents"], Json::array()) << "NO-CONTROL: noise is no incident";
  EXPECT_GE(before["denials"].size(), 256u) << "NO-CONTROL: the list was not full";
  EXPECT_TRUE(Contains(before["network"].dump(), R"("decision":"others")"))
      << "NO-CONTROL: the egress process had room left";
  const RunResult tried = Inside(noise + R"(
for i in range(3): refused(b'169.254.169.254', b'latest')
refused(b'metadata.google.internal', b'v1')
refused(b'169.254.1.1', b'')
)");
  EXPECT_EQ(tried.exit, 0) << tried.err;
  const Json after = Receipt();
  EXPECT_EQ(after["incidents"],
            Json::array({"metadata: 169.254.169.254:80 and 1 other were tried 4 times "
                         "and refused",
                         "link_local: 169.254.1.1:80 was tried once and refused"}))
      << "OPEN";
  EXPECT_LE(after["denials"].size(), 262u);
}

// The same without the proxy: connects that have no route, and denied system calls.
TEST_F(EgressAbuse, DeniedCallsHideNoIncident) {
  const std::string noise = R"(
import ctypes, socket
def tried(address):
    with socket.socket() as s:
        try: s.connect((address, 80))
        except OSError: pass
for i in range(300): tried('203.0.%d.%d' % (i // 250, i % 250 + 1))
)";
  EXPECT_EQ(RunBare({}, {"python3", "-c", noise}).exit, 0);
  const Json before = Receipt();
  EXPECT_EQ(before["incidents"], Json::array()) << "NO-CONTROL: noise is no incident";
  EXPECT_GE(before["denials"].size(), 256u) << "NO-CONTROL: the list was not full";
  const RunResult run = RunBare({}, {"python3", "-c", noise + R"(
ctypes.CDLL(None).unshare(0x10000000)
for address in '169.254.169.254', '169.254.169.254', '169.254.1.1': tried(address)
)"});
  EXPECT_EQ(run.exit, 0) << run.err;
  const Json after = Receipt();
  EXPECT_EQ(after["incidents"],
            Json::array({"namespace: unshare was tried once and denied",
                         "metadata: 169.254.169.254:80 was tried 2 times and refused",
                         "link_local: 169.254.1.1:80 was tried once and refused"}))
      << "OPEN";
  EXPECT_LE(after["denials"].size(), 262u);
}

}  // namespace
}  // namespace coffer::test
