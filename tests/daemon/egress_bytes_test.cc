// SPDX-License-Identifier: Apache-2.0
//
// bytes_in, bytes_out and rate of a manifest's rule on live traffic, whichever way the rule looks at it, and on a WebSocket that goes
// on for as long as both sides like.
#include <gtest/gtest.h>

#include "tests/daemon/egress_daemon.h"

namespace coffer::test {
namespace {

// Three answers of 10,000 bytes, each on a connection of its own: the status and the bytes of the body that came.
constexpr const char* kGetBytes = R"(python3 -c "
import socket, ssl
def get():
    s = socket.create_connection(('127.0.0.1', 3128), 30)
    s.settimeout(30)
    to = 'http://api.test:PORT'
    try:
        if 'MODE' != 'plain':
            s.sendall(b'CONNECT api.test:PORT HTTP/1.1\r\n\r\n')
            said = s.recv(4096)
            if b' 200 ' not in said.split(b'\r\n')[0]: return 'refused'
            to = ''
        if 'MODE' in ('splice', 'intercept'):
            s = ssl.create_default_context().wrap_socket(s, server_hostname='api.test')
        s.sendall(b'GET %s/v1/bytes/10000 HTTP/1.1\r\nHost: api.test:PORT\r\nConnection: close\r\n\r\n' % to.encode())
    except OSError: return 'cut'
    got = b''
    try:
        for more in iter(lambda: s.recv(4096), b''): got += more
    except OSError: pass
    head, _, body = got.partition(b'\r\n\r\n')
    return '%s %d' % (head[9:12].decode() or 'cut', len(body))
for i in range(3): print(get())
")";

// Frames of 20,000 bytes to a server that echoes them: the status of the upgrade, and how many came back whole.
constexpr const char* kEchoFrames = R"(python3 -c "
import socket, ssl, struct
def echo():
    s = socket.create_connection(('127.0.0.1', 3128), 30)
    s.settimeout(30)
    s.sendall(b'CONNECT api.test:PORT HTTP/1.1\r\n\r\n')
    s.recv(4096)
    t = ssl.create_default_context().wrap_socket(s, server_hostname='api.test')
    t.sendall(b'GET /v1/ws HTTP/1.1\r\nHost: api.test:PORT\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
              b'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n')
    f = t.makefile('rb')
    status = f.readline().split()[1].decode()
    while f.readline().strip(): pass
    whole = 0
    try:
        while status == '101' and whole < 5:
            t.sendall(b'\x82\xfe' + struct.pack('>H', 20000) + b'\0\0\0\0' + bytes(20000))
            if len(f.read(20004)) < 20004: break
            whole += 1
    except OSError: pass
    return '%s %d' % (status, whole)
print(echo())
print(echo())
")";

// Requests, each on a connection of its own, and how many had which status; then uploads, and the status of each.
constexpr const char* kGetsAndPosts = R"(python3 -c "
import collections, socket, ssl
trust = ssl.create_default_context()
def ask(method, size):
    s = socket.create_connection(('127.0.0.1', 3128), 30)
    s.settimeout(60)
    to = 'http://api.test:PORT'
    try:
        if 'MODE' != 'plain':
            s.sendall(b'CONNECT api.test:PORT HTTP/1.1\r\n\r\n')
            said = s.recv(4096)
            if b' 200 ' not in said.split(b'\r\n')[0]: return said[9:12].decode()
            to = ''
        if 'MODE' in ('splice', 'intercept'): s = trust.wrap_socket(s, server_hostname='api.test')
        s.sendall(b'%s %s/v1/x HTTP/1.1\r\nHost: api.test:PORT\r\nContent-Length: %d\r\n\r\n' % (method, to.encode(), size))
        s.sendall(bytes(size))
        return s.recv(4096)[9:12].decode() or 'cut'
    except OSError: return 'cut'
for status, count in sorted(collections.Counter(ask(b'GET', 0) for i in range(GETS)).items()): print(status, count)
for size in (SIZES): print(ask(b'POST', size))
")";

class DaemonEgressBytes : public DaemonEgress {
 protected:
  std::string With(std::string text, int port, const std::string& mode) const {
    for (const auto& [from, to] :
         {std::pair<std::string, std::string>{"PORT", std::to_string(port)}, {"MODE", mode}}) {
      for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
        text.replace(at, from.size(), to);
      }
    }
    return text;
  }
  std::string Rule(const std::string& mode, const std::string& more) const {
    return "[[network.allow]]\nhost = \"api.test\"\ntls = \"" + mode + "\"\nports = [" +
           std::to_string(PortOf(mode)) + "]\n" +
           (mode == "plain" || mode == "intercept" ? "paths = [\"/v1/**\"]\n" : "") + more;
  }
  int PortOf(const std::string& mode) const {
    return mode == "splice" || mode == "intercept" ? tls_ : plain_;
  }
  std::string Flood(const std::string& mode, int gets, const std::string& sizes) const {
    std::string text = With(kGetsAndPosts, PortOf(mode), mode);
    text.replace(text.find("GETS"), 4, std::to_string(gets));
    text.replace(text.find("SIZES"), 5, sizes);
    return text;
  }
  static size_t Count(const std::string& text, const std::string& part) {
    size_t count = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) {
      ++count;
    }
    return count;
  }
  static long BodyOf(const std::string& line) {
    const size_t space = line.find(' ');
    return space == std::string::npos ? 0 : std::stol(line.substr(space));
  }
};

// 16 KiB are one answer with what belongs to it, and a part of a second one.
TEST_F(DaemonEgressBytes, ThatComeInAreBoundedPerCall) {
  for (const std::string mode : {"plain", "intercept", "splice", "none"}) {
    SCOPED_TRACE(mode);
    Declare("wide-" + mode, Rule(mode, ""));
    Declare("narrow-" + mode, Rule(mode, "bytes_in = \"16KiB\"\n"));
  }
  ASSERT_TRUE(Start());
  for (const std::string mode : {"plain", "intercept", "splice", "none"}) {
    SCOPED_TRACE(mode);
    const std::string script = With(kGetBytes, PortOf(mode), mode);
    HttpAnswer answer = Call("wide-" + mode, script);
    EXPECT_EQ(Lines(Out(answer)), (Strings{"200 10000", "200 10000", "200 10000"}))
        << "NO-CONTROL\n"
        << answer.text;
    (void)Seen();
    answer = Call("narrow-" + mode, script);
    const Strings got = Lines(Out(answer));
    ASSERT_EQ(got.size(), 3U) << answer.text;
    EXPECT_EQ(got[0], "200 10000") << "NO-CONTROL\n" << answer.text;
    EXPECT_LE(BodyOf(got[0]) + BodyOf(got[1]), 16 * 1024) << "OPEN\n" << answer.text;
    EXPECT_FALSE(Contains(got[2], "200")) << "OPEN\n" << answer.text;
    EXPECT_EQ(Count(Seen(), "request GET /v1/bytes"), 2U) << "OPEN: the third was asked for";
    const Json receipt = ReceiptOf(answer);
    ASSERT_FALSE(receipt["denials"].empty()) << "OPEN\n" << receipt.dump();
    for (const Json& denial : receipt["denials"]) {
      EXPECT_EQ(denial["surface"], "egress") << denial.dump();
      EXPECT_TRUE(Contains(denial["reason"], "are spent: 16KiB in")) << denial.dump();
    }
    // What came is in the receipt, also of the one that was cut.
    long in = 0;
    for (const Json& use : receipt["network"]) {
      in += use["bytes_in"].get<long>();
    }
    EXPECT_GT(in, 10000) << receipt["network"].dump();
  }
}

// A frame beyond the limit does not pass, in either direction, and the connection ends; the next upgrade is refused.
TEST_F(DaemonEgressBytes, AWebSocketIsCutAtItsLimit) {
  Declare("free", Rule("intercept", ""));
  Declare("in", Rule("intercept", "bytes_in = \"50KiB\"\n"));
  Declare("out", Rule("intercept", "bytes_out = \"50KiB\"\n"));
  ASSERT_TRUE(Start());
  const std::string script = With(kEchoFrames, tls_, "");
  HttpAnswer answer = Call("free", script);
  EXPECT_EQ(Lines(Out(answer)), (Strings{"101 5", "101 5"})) << "NO-CONTROL\n" << answer.text;
  EXPECT_EQ(Count(Seen(), "frame 2 20000"), 10U) << "NO-CONTROL";
  for (const std::string way : {"in", "out"}) {
    SCOPED_TRACE(way);
    answer = Call(way, script);
    EXPECT_EQ(Lines(Out(answer)), (Strings{"101 2", "429 0"})) << "OPEN\n" << answer.text;
    // What goes out is cut before it leaves; an answer beyond the limit was made, and is dropped.
    EXPECT_EQ(Count(Seen(), "frame 2 20000"), way == "out" ? 2U : 3U) << "OPEN";
    const Json receipt = ReceiptOf(answer);
    bool cut = false;
    for (const Json& use : receipt["network"]) {
      EXPECT_EQ(use["path"], "/v1/ws") << use.dump();
      cut = cut || (use["bytes_in"].get<long>() > 40000 && use["bytes_out"].get<long>() > 40000);
      EXPECT_LE(use["bytes_out"].get<long>(), way == "out" ? 50 * 1024 : 70 * 1000) << use.dump();
    }
    EXPECT_TRUE(cut) << "it is not metered\n" << receipt["network"].dump();
    ASSERT_EQ(receipt["denials"].size(), 1U) << receipt.dump();
    const Json& denial = receipt["denials"][0];
    EXPECT_EQ(denial["surface"], "egress") << denial.dump();
    EXPECT_EQ(denial["operation"], "request") << denial.dump();
    EXPECT_TRUE(Contains(denial["target"], "/v1/ws")) << denial.dump();
    EXPECT_TRUE(Contains(denial["reason"], "are spent: 50KiB " + way)) << denial.dump();
    EXPECT_EQ(denial["count"], 2) << "the cut and the refused upgrade\n" << denial.dump();
  }
}

// A request where requests are judged, and else a connection.
TEST_F(DaemonEgressBytes, NW_24_ManyRequestsAreCutAtTheRate) {
  for (const std::string mode : {"plain", "intercept", "splice", "none"}) {
    Declare("free-" + mode, Rule(mode, ""));
    Declare("rated-" + mode, Rule(mode, "rate = \"5/h\"\n"));
  }
  ASSERT_TRUE(Start());
  for (const std::string mode : {"plain", "intercept", "splice", "none"}) {
    SCOPED_TRACE(mode);
    const std::string script = Flood(mode, 100, "");
    HttpAnswer answer = Call("free-" + mode, script);
    EXPECT_EQ(Out(answer), "200 100\n") << "NO-CONTROL\n" << answer.text;
    (void)Seen();
    answer = Call("rated-" + mode, script);
    EXPECT_EQ(Out(answer), "200 5\n429 95\n") << "OPEN, or NO-CONTROL\n" << answer.text;
    EXPECT_EQ(Count(Seen(), "request GET /v1/x"), 5U) << "OPEN";
    const Json receipt = ReceiptOf(answer);
    long refused = 0;
    for (const Json& denial : receipt["denials"]) {
      EXPECT_EQ(denial["surface"], "egress") << denial.dump();
      EXPECT_TRUE(Contains(denial["reason"], "its rule allows 5/h")) << denial.dump();
      refused += denial["count"].get<long>();
    }
    EXPECT_EQ(refused, 95) << receipt["denials"].dump();
  }
}

// 4 MiB where 1 MiB may leave: it ends on the way, and nothing leaves after it.
TEST_F(DaemonEgressBytes, NW_24_AnUploadIsCutAtTheBytesOut) {
  constexpr long kMost = 1 << 20;
  for (const std::string mode : {"plain", "intercept", "splice", "none"}) {
    const bool judged = mode == "plain" || mode == "intercept";
    const std::string methods = judged ? "methods = [\"POST\"]\n" : "";
    Declare("free-" + mode, Rule(mode, methods));
    Declare("bounded-" + mode, Rule(mode, methods + "bytes_out = \"1MiB\"\n"));
  }
  ASSERT_TRUE(Start());
  for (const std::string mode : {"plain", "intercept", "splice", "none"}) {
    SCOPED_TRACE(mode);
    const std::string script = Flood(mode, 0, "4 << 20, 1000");
    HttpAnswer answer = Call("free-" + mode, script);
    EXPECT_EQ(Out(answer), "200\n200\n") << "NO-CONTROL\n" << answer.text;
    EXPECT_TRUE(Contains(Seen(), "body=4194304")) << "NO-CONTROL";
    answer = Call("bounded-" + mode, script);
    EXPECT_EQ(Lines(Out(answer)).size(), 2U) << answer.text;
    EXPECT_FALSE(Contains(Out(answer), "200")) << "OPEN\n" << answer.text;
    // What the server of a cut upload had read by then, if it says so.
    const std::string seen = Seen();
    const size_t body = seen.find("body=");
    EXPECT_TRUE(body == std::string::npos || std::stol(seen.substr(body + 5)) <= kMost) << seen;
    EXPECT_FALSE(Contains(seen, "body=1000")) << "OPEN\n" << seen;
    const Json receipt = ReceiptOf(answer);
    long out = 0;
    for (const Json& use : receipt["network"]) {
      out += use["bytes_out"].get<long>();
    }
    EXPECT_LE(out, kMost) << "OPEN\n" << receipt["network"].dump();
    EXPECT_GT(out, 0) << receipt["network"].dump();
    EXPECT_TRUE(Contains(receipt["denials"].dump(), "are spent: 1MiB out")) << receipt.dump();
  }
}

}  // namespace
}  // namespace coffer::test
