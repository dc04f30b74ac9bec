// SPDX-License-Identifier: Apache-2.0
//
// `coffer run --allow`: what the rules name is reached, and nothing else, whatever bytes a program inside sends to the
// proxy. The servers are on this host's loopback, made by the test; each attack has a control that reaches them.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/egress_fixture.h"
#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

// A program inside: sends `first` to the proxy and prints the first line of the answer, or what went wrong.
constexpr const char* kClient = R"(
import socket, ssl, sys
def ask(first, host=('127.0.0.1', 3128)):
    try:
        s = socket.create_connection(host, 20)
        s.settimeout(20)
        s.sendall(first if isinstance(first, bytes) else first.encode('latin-1'))
        got = b''
        while b'\n' not in got:
            more = s.recv(4096)
            if not more: break
            got += more
        return got.split(b'\r\n')[0].decode('latin-1') or 'closed'
    except OSError as e:
        return 'error %s' % e.__class__.__name__
def connect(to):
    return ask('CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n' % (to, to))
# By CONNECT, or `direct`: by the name alone. `host` is what the request says; `then` goes instead of TLS.
def tunnel(to, name, path='/', then=None, host=None, direct=False):
    try:
        place = to.split(':')
        s = socket.create_connection(place if direct else ('127.0.0.1', 3128), 20)
        s.settimeout(20)
        if not direct:
            s.sendall(('CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n' % (to, to)).encode())
            head = b''
            while not head.endswith(b'\r\n\r\n'):
                c = s.recv(1)
                if not c: return 'closed'
                head += c
            if b' 200 ' not in head: return head.split(b'\r\n')[0].decode()
        if then is not None:
            s.sendall(then)
            return 'got %r' % s.recv(100)
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        c.check_hostname = False
        c.verify_mode = ssl.CERT_NONE
        t = c.wrap_socket(s, server_hostname=name)
        t.sendall(('GET %s HTTP/1.1\r\nHost: %s\r\n\r\n' % (path, host or to)).encode())
        return t.recv(4096).split(b'\r\n')[0].decode()
    except OSError as e:
        return 'error %s' % e.__class__.__name__
)";

// What Python prints of a TLS alert: fatal, unrecognized_name.
constexpr const char* kAlert = "b'\\x15\\x03\\x01\\x00\\x02\\x02p'";

class EgressEscape : public EgressFixture {
 protected:
  Strings Python(const std::string& code) const { return {"python3", "-c", kClient + code}; }
  RunResult Inside(const Strings& flags, const std::string& code) {
    return RunWith(flags, Python(code));
  }
  // Without --resolve and the rest.
  RunResult InsideBare(const Strings& flags, const std::string& code) {
    return RunBare(flags, Python(code));
  }
  Strings Words(const Strings& flags, const std::string& code) const {
    return CofferWords(flags, Python(code));
  }
};

std::string Quoted(const std::string& text) { return "'" + text + "'"; }

TEST_F(EgressEscape, NW_01_OnlyWhatIsAllowedIsReached) {
  const std::string code = "print('allowed', tunnel('" + Api() +
                           "', 'api.test', '/a'))\n"
                           "print('other', connect('other.test:" +
                           std::to_string(tls_) +
                           "'))\n"
                           "print('direct', ask('GET / HTTP/1.0\\r\\n\\r\\n', ('127.0.0.1', " +
                           std::to_string(plain_) +
                           ")))\n"
                           "print('outside', ask('x', ('192.0.2.1', 443)))\n";
  const RunResult run = Inside({"--allow", Api()}, code);
  EXPECT_TRUE(Contains(run.out, "allowed HTTP/1.1 200")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "other HTTP/1.1 403")) << run.out;
  EXPECT_TRUE(Contains(run.out, "direct error")) << "OPEN: a server of the host was reached\n"
                                                 << run.out;
  EXPECT_TRUE(Contains(run.out, "outside error")) << run.out;
  const std::string seen = Seen();
  EXPECT_TRUE(Contains(seen, "request GET /a host=" + Api())) << "NO-CONTROL\n" << seen;
  EXPECT_FALSE(Contains(seen, "connection plain")) << "OPEN\n" << seen;
  EXPECT_TRUE(Contains(run.err, "--allow other.test:" + std::to_string(tls_))) << run.err;
  const Json receipt = Receipt();
  ASSERT_TRUE(receipt.contains("network")) << run.err;
  // Entries are in the order in which connections ended.
  size_t found = 0;
  for (const Json& use : receipt["network"]) {
    if (use["host"] == "api.test") {
      ++found;
      EXPECT_EQ(use["decision"], "allow");
      EXPECT_EQ(use["rule"], Api());
      EXPECT_GT(use["bytes_in"].get<int>(), 0);
      EXPECT_GT(use["bytes_out"].get<int>(), 0);
    } else {
      EXPECT_EQ(use["decision"], "deny") << use.dump();
    }
  }
  EXPECT_EQ(found, 1u) << receipt["network"].dump();
}

// Without rules there is no proxy at all; a list that is empty or broken is no list.
TEST_F(EgressEscape, NW_21_NoRuleIsNoWayOut) {
  const std::string code = "print('proxy', connect('" + Api() + "'))\n";
  const RunResult control = Inside({"--allow", Api()}, code);
  EXPECT_TRUE(Contains(control.out, "proxy HTTP/1.1 200")) << "NO-CONTROL\n" << control.err;
  const RunResult none = InsideBare({}, code);
  EXPECT_TRUE(Contains(none.out, "proxy error ConnectionRefusedError")) << none.out << none.err;
  for (const char* const broken : {"", " ", "*", "*.test", "api..test", "https://", "api.test:0"}) {
    const RunResult refused = InsideBare({"--allow", broken}, code);
    EXPECT_EQ(refused.exit, 120) << broken;
    EXPECT_EQ(refused.out, "") << "OPEN: it ran with a rule that says nothing: " << broken;
  }
  const RunResult alone = InsideBare({"--dangerously-allow-address", "127.0.0.0/8"}, code);
  EXPECT_EQ(alone.exit, 120) << alone.err;
}

TEST_F(EgressEscape, NW_08_ThisHostAndPrivateNetworksAreClosed) {
  const std::string port = std::to_string(tls_);
  const std::string code = "print('name', connect('" + Api() + "'))\n";
  const RunResult closed = InsideBare({"--allow", Api(), "--resolve", "api.test=127.0.0.1"}, code);
  EXPECT_TRUE(Contains(closed.out, "name HTTP/1.1 403")) << "OPEN\n" << closed.out << closed.err;
  EXPECT_TRUE(Contains(closed.err, "--dangerously-allow-address 127.0.0.1/32")) << closed.err;
  // One private address among the answers is enough.
  const RunResult mixed =
      InsideBare({"--allow", Api(), "--resolve", "api.test=127.0.0.1", "--resolve",
                  "api.test=10.0.0.1", "--dangerously-allow-address", "127.0.0.1"},
                 code);
  EXPECT_TRUE(Contains(mixed.out, "name HTTP/1.1 403")) << "OPEN\n" << mixed.out << mixed.err;
  EXPECT_EQ(Seen(), "") << "OPEN: an address was dialled before it was looked at";
  const RunResult open = Inside({"--allow", Api()}, code);
  EXPECT_TRUE(Contains(open.out, "name HTTP/1.1 200")) << "NO-CONTROL\n" << open.out << open.err;
  EXPECT_TRUE(Contains(Seen(), "connection tls")) << "NO-CONTROL";
}

// Metadata services and this host in every spelling that some library reads as an address.
TEST_F(EgressEscape, NW_05_06_AddressesInAnySpellingAreRefused) {
  const std::string port = std::to_string(tls_);
  std::string code;
  const Strings spellings = {"169.254.169.254:80",
                             "[fd00:ec2::254]:80",
                             "100.100.100.200:80",
                             "168.63.129.16:80",
                             "metadata.google.internal:80",
                             "2852039166:80",
                             "0xA9FEA9FE:80",
                             "0251.0376.0251.0376:80",
                             "169.254.43518:80",
                             "[::ffff:a9fe:a9fe]:80",
                             "127.0.0.1:" + port,
                             "127.1:" + port,
                             "localhost:" + port,
                             "localhost.:" + port,
                             "[::1]:" + port,
                             "0:" + port,
                             "0.0.0.0:" + port,
                             "2130706433:" + port,
                             "[::ffff:127.0.0.1]:" + port,
                             "127.0.0.1%00api.test:" + port};
  for (const std::string& one : spellings) {
    code += "print(connect(" + Quoted(one) + "), " + Quoted(one) + ")\n";
  }
  code += "print('control', connect('" + Api() + "'))\n";
  const RunResult run = Inside({"--allow", Api()}, code);
  for (const std::string& line : Lines(run.out)) {
    const bool refused = line.starts_with("HTTP/1.1 403") || line.starts_with("HTTP/1.1 400");
    EXPECT_TRUE(refused || line.starts_with("control")) << "OPEN: " << line;
  }
  EXPECT_EQ(Lines(run.out).size(), spellings.size() + 1) << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "control HTTP/1.1 200")) << "NO-CONTROL\n" << run.out;
  EXPECT_EQ(Seen(), "connection tls\n") << "OPEN: the control alone may reach the server";
}

TEST_F(EgressEscape, NW_14_NamesThatOnlyLookAllowed) {
  const std::string port = ":" + std::to_string(tls_);
  std::string code;
  const Strings names = {"api.test.evil.test" + port,   "evilapi.test" + port,
                         "api.test%2eevil.test" + port, "api.test@other.test" + port,
                         "other.test#api.test" + port,  "api.test/.other.test" + port,
                         "sub.api.test" + port,         "[api.test]" + port};
  for (const std::string& name : names) {
    code += "print(connect(" + Quoted(name) + "))\n";
  }
  code += "print('upper', connect('API.TEST" + port + "'))\n";
  const RunResult run =
      Inside({"--allow", Api(), "--resolve", "evilapi.test=127.0.0.1", "--resolve",
              "api.test.evil.test=127.0.0.1", "--resolve", "sub.api.test=127.0.0.1"},
             code);
  for (const std::string& line : Lines(run.out)) {
    EXPECT_TRUE(line.starts_with("HTTP/1.1 40") || line.starts_with("upper")) << "OPEN: " << line;
  }
  EXPECT_TRUE(Contains(run.out, "upper HTTP/1.1 200")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_EQ(Seen(), "connection tls\n");
}

// A name in SOCKS has a length; a NUL in it ends nothing.
TEST_F(EgressEscape, NW_12_NamesInSocksAreTakenWhole) {
  const std::string port = std::to_string(tls_);
  const RunResult run = Inside({"--allow", Api()}, R"(
def socks(name, port=)" + port + R"():
    s = socket.create_connection(('127.0.0.1', 3128), 20)
    s.settimeout(20)
    s.sendall(b'\x05\x01\x00')
    if s.recv(2) != b'\x05\x00': return 'no greeting'
    s.sendall(b'\x05\x01\x00\x03' + bytes([len(name)]) + name + port.to_bytes(2, 'big'))
    return 'reply %d' % (s.recv(10) + b'\xff\xff')[1]
print('allowed', socks(b'api.test'))
print('nul', socks(b'127.0.0.1\x00.api.test'))
print('nul2', socks(b'other.test\x00api.test'))
print('other', socks(b'other.test'))
print('address', socks(b'127.0.0.1'))
print('port', socks(b'api.test', 22))
)");
  EXPECT_TRUE(Contains(run.out, "allowed reply 0")) << "NO-CONTROL\n" << run.out << run.err;
  for (const char* const bad :
       {"nul reply 0", "nul2 reply 0", "other reply 0", "address reply 0", "port reply 0"}) {
    EXPECT_FALSE(Contains(run.out, bad)) << "OPEN\n" << run.out;
  }
  EXPECT_TRUE(Contains(run.out, "port reply")) << run.out << run.err;
  EXPECT_EQ(Seen(), "connection tls\n") << "OPEN";
}

TEST_F(EgressEscape, NW_15_TheServerNameIsTheHostThatWasAskedFor) {
  const RunResult run =
      Inside({"--allow", Api()},
             "print('same', tunnel('" + Api() +
                 "', 'api.test', '/same'))\n"
                 "print('fronted', tunnel('" +
                 Api() +
                 "', 'other.test', '/fronted'))\n"
                 "print('nameless', tunnel('" +
                 Api() +
                 "', None, '/nameless'))\n"
                 "print('ssh', tunnel('" +
                 Api() +
                 "', None, then=b'SSH-2.0-x\\r\\n\\r\\n'))\n"
                 "print('http', tunnel('" +
                 Api() + "', None, then=b'GET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n'))\n");
  EXPECT_TRUE(Contains(run.out, "same HTTP/1.1 200")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_FALSE(Contains(run.out, "fronted HTTP")) << "OPEN\n" << run.out;
  EXPECT_FALSE(Contains(run.out, "nameless HTTP")) << "OPEN\n" << run.out;
  // What is not TLS is answered with an alert of TLS, and with nothing of the server's.
  for (const char* const line : {"ssh ", "http "}) {
    EXPECT_TRUE(Contains(run.out, line + (std::string("got ") + kAlert))) << "OPEN\n" << run.out;
  }
  const Json receipt = Receipt();
  const std::string denials = receipt["denials"].dump();
  EXPECT_TRUE(Contains(denials, "the TLS hello asks for other.test")) << denials;
  EXPECT_TRUE(Contains(denials, "the TLS hello names no server")) << denials;
  EXPECT_TRUE(Contains(denials, "only TLS may go to this host")) << denials;
  const std::string seen = Seen();
  EXPECT_TRUE(Contains(seen, "/same")) << "NO-CONTROL\n" << seen;
  EXPECT_FALSE(Contains(seen, "/fronted")) << "OPEN\n" << seen;
  EXPECT_FALSE(Contains(seen, "/nameless")) << "OPEN\n" << seen;
  EXPECT_FALSE(Contains(seen, "other.test")) << "OPEN\n" << seen;
}

// Each of the three names is allowed by itself. Only where all of them are one does a request leave.
TEST_F(EgressEscape, NW_15_WhereRequestsAreJudgedTheThreeNamesAreOne) {
  const std::string port = std::to_string(tls_);
  const std::string code = R"(
import itertools
for direct in (False, True):
    for to, sni, host in itertools.product(('api', 'other'), ('api', 'other', None), ('api', 'other')):
        said = tunnel('%s.test:PORT' % to, sni and sni + '.test', '/%s-%s-%s' % (to, sni, host),
                      host='%s.test:PORT' % host, direct=direct)
        print('direct' if direct else 'connect', to, sni, host, said)
)";
  const auto with_port = [&](std::string text) {
    for (size_t at = 0; (at = text.find("PORT", at)) != std::string::npos; at += port.size()) {
      text.replace(at, 4, port);
    }
    return text;
  };
  const auto rules = [&](const std::string& before, const std::string& after) {
    return Strings{"--allow", before + "api.test:" + port + after, "--allow",
                   before + "other.test:" + port + after};
  };
  const RunResult run = Inside(rules("GET https://", "/**"), with_port(code));
  const Strings lines = Lines(run.out);
  ASSERT_EQ(lines.size(), 24u) << run.out << run.err;
  for (const std::string& line : lines) {
    std::istringstream words(line);
    std::string way, to, name, host;
    words >> way >> to >> name >> host;
    // A wrong server name ends the handshake, a wrong Host is answered.
    const bool named = to == name;
    const bool same = named && to == host;
    EXPECT_EQ(Contains(line, "HTTP/1.1 200"), same) << "OPEN, or NO-CONTROL: " << line;
    EXPECT_EQ(Contains(line, "HTTP/1.1 403"), named && !same) << line;
    EXPECT_EQ(Contains(line, "error SSLError"), !named) << line;
  }
  size_t requests = 0;
  for (const std::string& line : Lines(Seen())) {
    requests += line.starts_with("request") ? 1 : 0;
    EXPECT_TRUE(!line.starts_with("request") || Contains(line, "/api-api-api host=api.test") ||
                Contains(line, "/other-other-other host=other.test"))
        << "OPEN: " << line;
  }
  EXPECT_EQ(requests, 4u) << "NO-CONTROL, or OPEN";
  const Json receipt = Receipt();
  const std::string denials = receipt["denials"].dump();
  for (const char* const reason :
       {"the tunnel is for api.test, the TLS hello asks for other.test",
        "the tunnel is for other.test, the TLS hello asks for api.test",
        "the TLS hello names no server", "Host is not the host of the tunnel"}) {
    EXPECT_TRUE(Contains(denials, reason)) << reason << "\n" << denials;
  }
  // Passed through, only the first two are compared; any bytes, none of them.
  const RunResult spliced = Inside(rules("", ""), with_port(code));
  EXPECT_TRUE(Contains(spliced.out, "connect api api other HTTP/1.1 200")) << "NO-CONTROL\n"
                                                                           << spliced.out;
  EXPECT_FALSE(Contains(spliced.out, "connect api other other HTTP")) << "OPEN\n" << spliced.out;
  const RunResult any = Inside(rules("tcp://", ""), with_port(code));
  for (const char* const way : {"connect", "direct"}) {
    EXPECT_TRUE(Contains(any.out, way + std::string(" api other other HTTP/1.1 200")))
        << "NO-CONTROL\n"
        << any.out << any.err;
  }
}

// A judged request is one of HTTP/1.1. A client that offers HTTP/2 as well gets HTTP/1.1; one that offers nothing else is told.
TEST_F(EgressEscape, AClientOfHttp2AloneIsToldWhy) {
  const auto ask = [&](const std::string& protocols) {
    return RunWith({"--allow", "GET https://" + Api() + "/**"},
                   {"python3", "-c",
                    "import socket, ssl\n"
                    "context = ssl.create_default_context()\n"
                    "context.set_alpn_protocols([" +
                        protocols +
                        "])\n"
                        "plain = socket.create_connection(('api.test', " +
                        std::to_string(tls_) +
                        "), 30)\n"
                        "tls = context.wrap_socket(plain, server_hostname='api.test')\n"
                        "tls.sendall(b'GET /asked HTTP/1.1\\r\\nHost: " +
                        Api() +
                        "\\r\\nConnection: close\\r\\n\\r\\n')\n"
                        "print(tls.selected_alpn_protocol(), tls.recv(12).decode())\n"});
  };
  const RunResult both = ask("'h2', 'http/1.1'");
  EXPECT_TRUE(Contains(both.out, "http/1.1 HTTP/1.1 200")) << "NO-CONTROL\n"
                                                           << both.out << both.err;
  const Json answered = Receipt();
  for (const Json& use : answered["network"]) {
    EXPECT_GT(use["duration_ms"].get<double>(), 0) << use.dump();
  }
  EXPECT_EQ(answered["network"].size(), 1u) << answered["network"].dump();
  EXPECT_TRUE(Contains(Seen(), "/asked")) << "NO-CONTROL";

  const RunResult alone = ask("'h2'");
  EXPECT_NE(alone.exit, 0) << alone.out;
  EXPECT_TRUE(Contains(alone.err, "no application protocol")) << alone.err;
  EXPECT_FALSE(Contains(Seen(), "/asked")) << "OPEN";
  const Json refused = Receipt();
  ASSERT_EQ(refused["denials"].size(), 1u) << refused["denials"].dump();
  EXPECT_EQ(refused["denials"][0]["surface"], "egress");
  EXPECT_TRUE(Contains(refused["denials"][0]["reason"].get<std::string>(), "HTTP/1.1"))
      << refused["denials"].dump();
}

TEST_F(EgressEscape, NW_18_OtherPortsAreClosed) {
  const RunResult run =
      Inside({"--allow", Api()}, "for port in (22, 25, 6379, " + std::to_string(plain_) + ", " +
                                     std::to_string(mute_) +
                                     "):\n"
                                     "    print(connect('api.test:%d' % port))\n"
                                     "print('control', connect('" +
                                     Api() + "'))\n");
  const Strings lines = Lines(run.out);
  ASSERT_EQ(lines.size(), 6u) << run.out << run.err;
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(lines[i].starts_with("HTTP/1.1 403")) << "OPEN: " << lines[i];
  }
  EXPECT_TRUE(Contains(run.out, "control HTTP/1.1 200")) << "NO-CONTROL";
  EXPECT_FALSE(Contains(Seen(), "plain")) << "OPEN";
}

// On a port that is open for TLS other protocols do not pass, whichever way a program comes and the rule looks.
TEST_F(EgressEscape, NW_18_OtherProtocolsDoNotPassWhereTlsMay) {
  const std::string to = "api.test:" + std::to_string(greeter_);
  const std::string code =
      "for direct in (False, True):\n"
      "    for name, first in (('ssh', b'SSH-2.0-x\\r\\n\\r\\n'), ('smtp', b'EHLO "
      "x\\r\\n\\r\\n'),\n"
      "                        ('redis', b'PING\\r\\n\\r\\n'),\n"
      "                        ('http', b'GET / HTTP/1.1\\r\\nHost: " +
      to +
      "\\r\\n\\r\\n')):\n"
      "        print('direct' if direct else 'connect', name, tunnel('" +
      to + "', None, then=first, direct=direct))\n";
  const RunResult control = Inside({"--allow", "tcp://" + to}, code);
  ASSERT_EQ(Lines(control.out).size(), 8u) << control.out << control.err;
  for (const std::string& line : Lines(control.out)) {
    EXPECT_TRUE(Contains(line, "got b'SSH-2.0-greeter")) << "NO-CONTROL: " << line;
  }
  const std::string seen = Seen();
  for (const char* const first : {"SSH-2.0-x", "EHLO x", "PING", "GET / HTTP/1.1"}) {
    EXPECT_TRUE(Contains(seen, std::string("greeting ") + first)) << "NO-CONTROL\n" << seen;
  }
  for (const std::string& rule : {to, "GET https://" + to + "/**"}) {
    SCOPED_TRACE(rule);
    const RunResult run = Inside({"--allow", rule}, code);
    ASSERT_EQ(Lines(run.out).size(), 8u) << run.out << run.err;
    for (const std::string& line : Lines(run.out)) {
      EXPECT_TRUE(Contains(line, "got ")) << line;
      EXPECT_FALSE(Contains(line, "greeter")) << "OPEN: " << line;
      EXPECT_EQ(Contains(line, kAlert), rule == to) << line;
    }
    for (const std::string& line : Lines(Seen())) {
      EXPECT_TRUE(line == "connection greeter" || line == "greeting ") << "OPEN: " << line;
    }
    const Json receipt = Receipt();
    EXPECT_FALSE(receipt["denials"].empty()) << run.err;
  }
}

// Plain HTTP goes only where a rule says http://, and its parts must agree.
TEST_F(EgressEscape, NW_16_ARequestThatCanBeReadInTwoWaysIsRefused) {
  const std::string url = Url("api.test", "/p");
  const std::string host = "Host: api.test:" + std::to_string(plain_) + "\\r\\n";
  const std::string start = "print(ask('GET " + url + " HTTP/1.1\\r\\n";
  const Strings bad = {
      start + "Host: other.test\\r\\n\\r\\n'))\n",
      start + host + host + "\\r\\n'))\n",
      start + "\\r\\n'))\n",
      start + host +
          "Content-Length: 3\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n'))\n",
      start + host + "Content-Length: 3\\r\\nContent-Length: 4\\r\\n\\r\\nabcd'))\n",
      start + host + " folded: x\\r\\n\\r\\n'))\n",
      start + host + "X : y\\r\\n\\r\\n'))\n",
      "print(ask('GET " + url + " HTTP/1.1\\n" + "Host: api.test\\n\\r\\n\\r\\n'))\n",
      "print(ask('GET " + url + " HTTP/9.9\\r\\n" + host + "\\r\\n'))\n",
      "print(ask('GET /p HTTP/1.1\\r\\n" + host + "\\r\\n'))\n",
  };
  std::string code;
  for (const std::string& one : bad) {
    code += one;
  }
  code += "print('control', ask('GET " + url + " HTTP/1.1\\r\\n" + host + "\\r\\n'))\n";
  const RunResult run = Inside({"--allow", Url("api.test", "")}, code);
  const Strings lines = Lines(run.out);
  ASSERT_EQ(lines.size(), bad.size() + 1) << run.out << run.err;
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_FALSE(lines[i].starts_with("HTTP/1.1 2")) << "OPEN: " << bad[i] << lines[i];
  }
  EXPECT_TRUE(Contains(run.out, "control HTTP/1.1 200")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_EQ(Seen(), "connection plain\nrequest GET /p host=api.test:" + std::to_string(plain_) +
                        " body=0\n")
      << "OPEN";
  // A rule for TLS does not open plain HTTP, neither to its own port nor to another.
  const RunResult secure =
      Inside({"--allow", "api.test:" + std::to_string(plain_)},
             "print('plain', ask('GET " + url + " HTTP/1.1\\r\\n" + host + "\\r\\n'))\n");
  EXPECT_TRUE(Contains(secure.out, "plain HTTP/1.1 403")) << "OPEN\n" << secure.out << secure.err;
  EXPECT_EQ(Seen(), "") << "OPEN";
}

// Every request of a kept-alive connection that is looked into is judged, and a redirect is a new request.
TEST_F(EgressEscape, NW_09_EveryRequestIsJudged) {
  const std::string rule = "GET https://" + Api() + "/v1/**";
  const RunResult run = Inside({"--allow", rule}, R"(
import http.client
c = http.client.HTTPSConnection('127.0.0.1', 3128, context=ssl.create_default_context(), timeout=20)
c.set_tunnel('api.test', )" + std::to_string(tls_) + R"()
def get(method, path, body=None, headers={}):
    try:
        c.request(method, path, body, headers)
        r = c.getresponse()
        r.read()
        return r.status
    except Exception as e:
        c.close()
        return e.__class__.__name__
print('first', get('GET', '/v1/a'))
print('second', get('GET', '/v1/b?x=1'))
print('dots', get('GET', '/v1/../v2/secret'))
print('escaped', get('GET', '/v1/%2e%2e/v2/secret'))
print('again', get('GET', '/v1/c'))
print('method', get('POST', '/v1/a', 'x'))
print('host', get('GET', '/v1/d', None, {'Host': 'other.test'}))
print('smuggled', get('GET', '/v1/e', b'0\r\n\r\nGET /v2/secret HTTP/1.1\r\nHost: api.test\r\n\r\n', {'Transfer-Encoding': 'chunked', 'Content-Length': '5'}))
print('redirect', get('GET', '/v1/redirect'))
print('last', get('GET', '/v1/f'))
)");
  EXPECT_TRUE(Contains(run.out, "first 200")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "second 200")) << "NO-CONTROL\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "again 200")) << run.out;
  EXPECT_TRUE(Contains(run.out, "last 200")) << run.out;
  for (const char* const refused :
       {"dots 200", "escaped 200", "method 200", "host 200", "smuggled 200"}) {
    EXPECT_FALSE(Contains(run.out, refused)) << "OPEN\n" << run.out;
  }
  const std::string seen = Seen();
  EXPECT_TRUE(Contains(seen, "GET /v1/b?x=1")) << "NO-CONTROL\n" << seen;
  EXPECT_FALSE(Contains(seen, "secret")) << "OPEN\n" << seen;
  EXPECT_FALSE(Contains(seen, "POST")) << "OPEN\n" << seen;
  EXPECT_FALSE(Contains(seen, "other.test")) << "OPEN\n" << seen;
  EXPECT_FALSE(Contains(seen, "/v1/e")) << "OPEN\n" << seen;
}

// Many servers do not read the body of a GET or a DELETE, and take it for the next request on that connection: one that no rule
// was asked about. The proxy asks them to end the connection instead, also one that carried other requests before.
TEST_F(EgressEscape, NW_09_ABodyThatTheServerLeavesUnreadIsNoRequest) {
  const std::string send = R"(
def send(s, method, host):
    hidden = 'POST /admin HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n\r\n' % host
    s.settimeout(20)
    for path, body in (('/v1/first', ''), ('/v1/unread', hidden), ('/v1/last', '')):
        length = 'Content-Length: %d\r\n' % len(body) if body else ''
        s.sendall(('%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n' % (method, path, host, length)).encode() + body.encode())
        said = b''
        while b'hello ' + path.encode() not in said:
            more = s.recv(4096)
            if not more: break
            said += more
        print(method, path, said[9:12].decode())
)";
  // The control: the same bytes, sent to the server without the proxy.
  const std::string plain = std::to_string(plain_);
  const RunResult direct = RunProgram(Python(send + "send(socket.create_connection(('127.0.0.1', " +
                                             plain + "), 20), 'GET', 'api.test')"));
  EXPECT_TRUE(Contains(direct.out, "GET /v1/unread 200")) << direct.out << direct.err;
  EXPECT_TRUE(Contains(Seen(), "request POST /admin")) << "NO-CONTROL";

  const RunResult inside = Inside({"--allow", "GET,DELETE https://" + Api() + "/v1/**", "--allow",
                                   "GET,DELETE http://api.test:" + plain + "/v1/**"},
                                  send + R"(
def through(port):
    s = socket.create_connection(('127.0.0.1', 3128), 20)
    s.sendall(b'CONNECT api.test:%d HTTP/1.1\r\n\r\n' % port)
    assert b' 200 ' in s.recv(4096)
    return s
for method in ('GET', 'DELETE'):
    send(ssl.create_default_context().wrap_socket(through()" +
                                      std::to_string(tls_) +
                                      R"(), server_hostname='api.test'), method, 'api.test')
    send(through()" + plain + R"(), method, 'api.test')
)");
  for (const std::string method : {"GET", "DELETE"}) {
    for (const std::string path : {"/v1/first", "/v1/unread", "/v1/last"}) {
      EXPECT_TRUE(Contains(inside.out, method + " " + path + " 200")) << inside.out << inside.err;
    }
  }
  const std::string seen = Seen();
  EXPECT_TRUE(Contains(seen, "request GET /v1/unread")) << seen;
  EXPECT_TRUE(Contains(seen, "request DELETE /v1/last")) << seen;
  EXPECT_FALSE(Contains(seen, "POST")) << "OPEN: a body was read as a request\n" << seen;
}

// A program without TLS leaves it to the proxy. The rules and the verification are those of an intercepted connection, and a
// connection without TLS is never used for it.
TEST_F(EgressEscape, AForwardedHttpsRequestIsJudgedAndVerified) {
  const std::string tls = "api.test:" + std::to_string(tls_);
  const std::string plain = "api.test:" + std::to_string(plain_);
  const Strings rules = {"--allow", "GET https://" + tls + "/v1/**",
                         "--allow", "GET https://" + plain + "/v1/**",
                         "--allow", "GET http://" + plain + "/v1/**"};
  const std::string code = R"(
import http.client
def get(c, name, method, target):
    try:
        c.request(method, target, headers={'Host': target.split('/')[2]})
        r = c.getresponse()
        r.read()
        print(name, r.status)
    except Exception as e:
        c.close()
        print(name, e.__class__.__name__)
def fresh():
    return http.client.HTTPConnection('127.0.0.1', 3128, timeout=20)
get(fresh(), 'good', 'GET', 'https://TLS/v1/good')
get(fresh(), 'method', 'POST', 'https://TLS/v1/post')
get(fresh(), 'path', 'GET', 'https://TLS/v2/secret')
get(fresh(), 'host', 'GET', 'https://other.test:1/v1/secret')
c = fresh()
get(c, 'without', 'GET', 'http://PLAIN/v1/without')
get(c, 'downgraded', 'GET', 'https://PLAIN/v1/secret')
)";
  const auto with_ports = [&](std::string text) {
    for (const auto& [word, value] : {std::pair("TLS", tls), std::pair("PLAIN", plain)}) {
      for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
        text.replace(at, std::string(word).size(), value);
      }
    }
    return text;
  };
  const RunResult run = Inside(rules, with_ports(code));
  EXPECT_TRUE(Contains(run.out, "good 200")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "without 200")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "method 403")) << "OPEN\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "path 403")) << "OPEN\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "host 403")) << "OPEN\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "downgraded 502")) << "OPEN\n" << run.out;
  const std::string seen = Seen();
  EXPECT_TRUE(Contains(seen, "GET /v1/good")) << "NO-CONTROL\n" << seen;
  EXPECT_FALSE(Contains(seen, "secret")) << "OPEN\n" << seen;
  EXPECT_FALSE(Contains(seen, "POST")) << "OPEN\n" << seen;
  Strings untrusted = rules;
  untrusted.insert(untrusted.end(),
                   {"--resolve", "api.test=127.0.0.1", "--dangerously-allow-address", "127.0.0.1"});
  const RunResult unknown = InsideBare(untrusted, with_ports(code));
  EXPECT_TRUE(Contains(unknown.out, "good 502")) << "OPEN\n" << unknown.out;
  EXPECT_FALSE(Contains(Seen(), "/v1/good")) << "OPEN";
}

// A server that is not who it says, or lies about its answer, gives an error inside.
TEST_F(EgressEscape, UpstreamIsVerifiedAndItsAnswersAreWhole) {
  const std::string rule = "GET https://" + Api() + "/**";
  const std::string code = R"(
import urllib.request
for path in ('/half', '/two-lengths', '/good'):
    try:
        print(path, urllib.request.urlopen('https://)" +
                           Api() + R"(' + path, timeout=20).read())
    except Exception as e:
        print(path, 'error', e.__class__.__name__, getattr(e, 'code', ''))
)";
  const RunResult run = Inside({"--allow", rule}, code);
  EXPECT_TRUE(Contains(run.out, "/good b'hello /good'")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "/half error")) << run.out;
  EXPECT_TRUE(Contains(run.out, "/two-lengths error HTTPError 502")) << run.out;
  Seen();
  const RunResult untrusted = InsideBare({"--allow", rule, "--resolve", "api.test=127.0.0.1",
                                          "--dangerously-allow-address", "127.0.0.1"},
                                         code);
  EXPECT_FALSE(Contains(untrusted.out, "hello")) << "OPEN\n" << untrusted.out;
  EXPECT_TRUE(Contains(untrusted.out, "/good error HTTPError 502"))
      << untrusted.out << untrusted.err;
  EXPECT_FALSE(Contains(Seen(), "request"))
      << "OPEN: a request was sent to a server without a good name";
}

TEST_F(EgressEscape, NW_23_WithoutItsEgressProcessACallReachesNothing) {
  const std::string code = "print('before', connect('" + Api() +
                           "'), flush=True)\n"
                           "sys.stdin.readline()\n"
                           "print('after', connect('" +
                           Api() + "'), flush=True)\n";
  Strings flags = Here();
  flags.insert(flags.end(), {"--allow", Api()});
  RunOptions options;
  options.input = std::string(Background::kKeepOpen, 5);
  Background run(Words(flags, code), options);
  ASSERT_TRUE(run.WaitForOutput("before HTTP/1.1 200", Seconds(60))) << "NO-CONTROL\n" << run.err();
  const pid_t egress = EgressProcessOf(run.pid());
  ASSERT_GT(egress, 0);
  Seen();
  ASSERT_EQ(::kill(egress, SIGKILL), 0);
  ASSERT_TRUE(WaitUntil([&] {
    return Contains(ReadFile("/proc/" + std::to_string(egress) + "/stat").value_or(") Z"), ") Z");
  }));
  run.CloseInput();
  const RunResult end = run.Wait(Seconds(60));
  EXPECT_TRUE(Contains(end.out, "after error ConnectionRefusedError")) << "OPEN\n" << end.out;
  EXPECT_EQ(Seen(), "") << "OPEN";
  EXPECT_EQ(end.exit, 125) << end.err;
  EXPECT_TRUE(Contains(end.err, "egress.ended")) << end.err;
  EXPECT_EQ(Receipt()["error"]["class"], "egress.ended");
}

TEST_F(EgressEscape, NothingOfItIsLeftAfterASignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    Strings flags = Here();
    flags.insert(flags.end(), {"--allow", Api()});
    RunOptions options;
    options.input = std::string(Background::kKeepOpen, 5);
    Background run(
        Words(flags, "print('up', connect('" + Api() + "'), flush=True)\nsys.stdin.readline()\n"),
        options);
    ASSERT_TRUE(run.WaitForOutput("up HTTP/1.1 200", Seconds(60))) << "NO-CONTROL\n" << run.err();
    const pid_t egress = EgressProcessOf(run.pid());
    ASSERT_GT(egress, 0);
    run.Signal(signal);
    run.Wait(Seconds(60));
    EXPECT_TRUE(WaitUntil([&] { return !Exists("/proc/" + std::to_string(egress)); }, Seconds(20)))
        << "OPEN: the egress process outlived its call, signal " << signal;
  }
}

// What the process that reads hostile bytes has given up before it reads the first one.
TEST_F(EgressEscape, TheEgressProcessIsConfined) {
  Strings flags = Here();
  flags.insert(flags.end(), {"--allow", Api()});
  RunOptions options;
  options.input = std::string(Background::kKeepOpen, 5);
  Background run(
      Words(flags, "print('up', connect('" + Api() + "'), flush=True)\nsys.stdin.readline()\n"),
      options);
  ASSERT_TRUE(run.WaitForOutput("up HTTP/1.1 200", Seconds(60))) << run.err();
  const pid_t egress = EgressProcessOf(run.pid());
  ASSERT_GT(egress, 0);
  ProcessView view = LookAt(egress);
  EXPECT_EQ(view.status["Seccomp"], "2");
  EXPECT_EQ(view.status["NoNewPrivs"], "1");
  for (const char* const set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
    EXPECT_EQ(view.status[set], "0000000000000000") << set;
  }
  // The control: this process, which gave nothing up, is not filtered.
  EXPECT_NE(LookAt(run.pid()).status["Seccomp"], "2") << "NO-CONTROL: everything here is filtered";
  if (IsRoot()) {
    EXPECT_EQ(view.status["Uid"].substr(0, 10), std::to_string(0x6fff0004)) << view.status["Uid"];
    EXPECT_EQ(view.status["Groups"], "");
    size_t files = 0;
    for (const auto& fd : fs::directory_iterator("/proc/" + std::to_string(egress) + "/fd")) {
      const std::string target = fs::read_symlink(fd.path()).string();
      const bool known = target == "/dev/null" || target.starts_with("socket:") ||
                         target.starts_with("anon_inode:") ||
                         target.starts_with("/memfd:coffer-egress");
      EXPECT_TRUE(known) << "OPEN: it holds " << target;
      ++files;
    }
    EXPECT_GT(files, 5u);
  }
}

// A call without --allow has neither the process nor the listener, nor a variable of it.
TEST_F(EgressEscape, ACallWithoutRulesHasNothingOfIt) {
  const std::string code =
      "import os\nprint('proxy' if any('proxy' in k.lower() for k in os.environ) else 'bare', "
      "flush=True)\n"
      "sys.stdin.readline()\n";
  for (const bool allowed : {false, true}) {
    Strings flags = allowed ? Here() : Strings{};
    if (allowed) {
      flags.insert(flags.end(), {"--allow", Api()});
    }
    RunOptions options;
    options.input = std::string(Background::kKeepOpen, 5);
    Background run(Words(flags, code), options);
    ASSERT_TRUE(run.WaitForOutput("\n", Seconds(60))) << run.err();
    EXPECT_EQ(Lines(run.out()).front(), allowed ? "proxy" : "bare") << "NO-CONTROL";
    EXPECT_EQ(EgressProcessOf(run.pid()) > 0, allowed) << "NO-CONTROL";
    run.CloseInput();
    EXPECT_EQ(run.Wait().exit, 0);
  }
}

// Nothing runs with less than it was promised: without its process the call does not start.
TEST_F(EgressEscape, WithoutCofferdNothingRuns) {
  const std::string alone = dir_.path() + "/alone";
  fs::create_directory(alone);
  fs::copy_file(CofferPath(), alone + "/coffer");
  const std::string other = dir_.path() + "/other";
  fs::create_directory(other);
  fs::copy_file(CofferPath(), other + "/coffer");
  fs::copy_file("/bin/true", other + "/cofferd");  // ends without a word
  const RunResult control = RunProgram({alone + "/coffer", "run", "--", "echo", "ran"});
  EXPECT_EQ(control.out, "ran\n") << "NO-CONTROL\n" << control.err;
  for (const std::string& place : {alone, other}) {
    const RunResult run =
        RunProgram({place + "/coffer", "run", "--allow", "api.test", "--", "echo", "ran"});
    EXPECT_EQ(run.out, "") << "OPEN: it ran without its egress process";
    EXPECT_EQ(run.exit, 125) << run.err;
    EXPECT_TRUE(Contains(run.err, "egress.")) << run.err;
  }
}

// The certificate comes when the boundary's files are made already. What is not exactly one does not become part of them.
TEST_F(EgressEscape, WithoutOneCertificateNothingRuns) {
  const std::string place = dir_.path() + "/fake";
  fs::create_directory(place);
  fs::copy_file(CofferPath(), place + "/coffer");
  const auto run_with = [&](const std::string& certificates) {
    std::ofstream(place + "/cofferd")
        << "#!/bin/sh\nprintf %s 'K" + certificates + "' >&3\nprintf R >&3\nexec /bin/sleep 60\n";
    fs::permissions(place + "/cofferd", fs::perms(0755));
    return RunProgram({place + "/coffer", "run", "--allow", "GET https://api.test/", "--", "sh",
                       "-c", "tail -c 57 $SSL_CERT_FILE"});
  };
  const std::string one = "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n";
  EXPECT_EQ(run_with(one).out, one.substr(one.size() - 57)) << "NO-CONTROL";
  for (const std::string& other : {std::string(), std::string("x"), one + one,
                                   std::string("-----BEGIN CERTIFICATE-----\nYWJj\n")}) {
    const RunResult run = run_with(other);
    EXPECT_EQ(run.out, "") << "OPEN: it ran with " << other;
    EXPECT_EQ(run.exit, 125) << run.err;
    EXPECT_TRUE(Contains(run.err, "egress.ca")) << run.err;
  }
}

// A client that sends its request byte by byte, or opens far more connections than are served, holds up no other.
TEST_F(EgressEscape, ManyAndSlowConnectionsAreBounded) {
  const RunResult run = Inside({"--allow", Api(), "--open-files", "400"}, R"(
held = [socket.create_connection(('127.0.0.1', 3128), 20) for _ in range(60)]
for s in held[:30]: s.sendall(b'CONN')
print('beside', tunnel(')" + Api() + R"(', 'api.test', '/beside'))
big = socket.create_connection(('127.0.0.1', 3128), 20)
big.settimeout(20)
try:
    for _ in range(64): big.sendall(b'A' * 1024)
    print('long', big.recv(100).split(b'\r\n')[0])
except OSError as e:
    print('long', e.__class__.__name__)
)");
  EXPECT_TRUE(Contains(run.out, "beside HTTP/1.1 200")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "long b'HTTP/1.1 431") || Contains(run.out, "long Connection") ||
              Contains(run.out, "long Broken"))
      << run.out << run.err;
}

}  // namespace
}  // namespace coffer::test
