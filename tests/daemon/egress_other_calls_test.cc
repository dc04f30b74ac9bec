// SPDX-License-Identifier: Apache-2.0
//
// A call of the daemon is known by the listener at which its connections arrive, and by nothing that it could say. So
// nothing that belongs to another tenant's call, or that another tenant was given, opens a way out or a way in.
#include <gtest/gtest.h>

#include <thread>

#include "tests/daemon/egress_daemon.h"

namespace coffer::test {
namespace {

// Says which address its host's name has inside, and waits for the other call at the beginning and at the end.
constexpr const char* kFirstCall = R"(python3 -c "
import socket, urllib.request as u
here = socket.gethostbyname('api.test')
s = socket.create_connection((here, PORT), 20)
s.sendall(b'GET /v1/own HTTP/1.1\r\nHost: api.test:PORT\r\n\r\n')
print(here, s.recv(200).split()[1].decode())
print(u.urlopen('http://api.test:PORT/v1/meet/a').read().decode())
print(u.urlopen('http://api.test:PORT/v1/meet/b').read().decode())
")";

// Each line: what was tried, and the first line of the answer.
constexpr const char* kSecondCall = R"(python3 - <<'END'
import os, socket, urllib.request as u
meet = lambda at: print(u.urlopen('http://other.test:PORT/v1/meet/' + at).read().decode(), flush=True)
def ask(name, *fields, host='api.test', to=('127.0.0.1', 3128), method='GET'):
    target = f'{host}:PORT' if method == 'CONNECT' else f'http://{host}:PORT/v1/stolen'
    try:
        s = socket.create_connection(to, 20); s.settimeout(20)
        s.sendall('\r\n'.join((f'{method} {target} HTTP/1.1', f'Host: {host}:PORT', *fields, '', '')).encode())
        print(name, '|', s.recv(200).split(b'\r\n')[0].decode() or 'closed')
    except OSError as e: print(name, '|', type(e).__name__)
meet('a')
for method in ('GET', 'CONNECT'):
    ask(method + ' without', method=method)
    for token in TOKENS:
        for scheme in ('Bearer ', 'Basic ', ''):
            ask(method + ' token', 'Proxy-Authorization: ' + scheme + token, 'Authorization: ' + scheme + token, method=method)
        ask(method + ' names', 'X-Coffer-Call: ' + token, 'X-Tenant: one', 'Cookie: call=' + token, method=method)
for at in ['198.18.0.1'] + ['198.18.1.%d' % n for n in range(18)]:
    for port in (PORT, 3128, 443):
        ask('number', to=(at, port))
for fd in os.listdir('/proc/self/fd'):
    try: print('descriptor', fd, os.readlink('/proc/self/fd/' + fd).split(':')[0])
    except OSError: pass
for pid in filter(str.isdigit, os.listdir('/proc')):
    try: print('process', os.listdir('/proc/%s/fd' % pid) and open('/proc/%s/comm' % pid).read().strip())
    except OSError: print('process', pid, 'closed')
listening = {int(l.split()[1].split(':')[1], 16) for f in ('tcp', 'tcp6') for l in list(open('/proc/net/' + f))[1:] if l.split()[3] == '0A'}
print('listening', sorted(listening))
ask('own', 'Proxy-Authorization: Bearer nonsense', host='other.test')
meet('b')
END
)";

// By its proxy, which may dial this host's loopback, and without one.
constexpr const char* kTriesProcess = R"sh(
for host in api.test 127.0.0.1 localhost; do
  for port in PORT PLAIN; do
    exec 3<>/dev/tcp/127.0.0.1/3128
    printf 'CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\nGET /page HTTP/1.0\r\n\r\n' $host $port $host $port >&3
    echo "$host $port | $(cat <&3 | tr -d '\r' | tr '\n' ' ')"; exec 3>&-
  done
done
python3 - <<'END'
import socket
for host in ('127.0.0.1', 'localhost', 'api.test'):
    try:
        s = socket.create_connection((host, PORT), 10)
        s.settimeout(10); s.sendall(b'GET /page HTTP/1.0\r\n\r\n')
        print('direct', host, '|', s.recv(4096))
    except OSError as e: print('direct', host, '|', type(e).__name__)
END
)sh";

class DaemonEgressOtherCalls : public DaemonEgress {
 protected:
  static std::string Fill(std::string text,
                          std::initializer_list<std::pair<std::string, std::string>> values) {
    for (const auto& [from, to] : values) {
      for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
        text.replace(at, from.size(), to);
      }
    }
    return text;
  }
  static int CountOf(const std::string& text, const std::string& part) {
    int count = 0;
    for (const std::string& line : Lines(text)) {
      count += Contains(line, part) ? 1 : 0;
    }
    return count;
  }
};

TEST_F(DaemonEgressOtherCalls, NW_20_NothingOfAnotherTenantsCallOpensItsHosts) {
  Declare("theirs", Plain("api.test"));
  Declare("ours", Plain("other.test"));
  ASSERT_TRUE(Start());
  const std::string one = daemon_.NewKey("one", "agent", "a")["key"];
  const std::string two = daemon_.NewKey("two", "agent", "a")["key"];
  const std::string port = std::to_string(plain_);
  // Both calls run at the same time: the first one has its listener, its proxy and its names while the second one tries.
  const Json body = {{"tool", "theirs"},
                     {"args", {{"script", Fill(kFirstCall, {{"PORT", port}})}}}};
  const HttpAnswer begun = daemon_.Call(one, body, kAsync);
  const std::string first = begun.At("call_id");
  ASSERT_FALSE(first.empty()) << begun.text;
  std::string seen;
  ASSERT_TRUE(WaitUntil([&] { return Contains(seen += Seen(), "GET /v1/meet/a"); }, Seconds(60)));
  const HttpAnswer second = CallForLong(
      "ours",
      Fill(kSecondCall,
           {{"TOKENS", "('" + one + "', '" + first + "', '" + two + "', 'one')"}, {"PORT", port}}),
      two);
  HttpAnswer ended;
  EXPECT_TRUE(WaitUntil(
      [&] {
        ended = daemon_.Ask("GET", "/v1/calls/" + first, one);
        return ended.At("state") == "finished";
      },
      Seconds(60)));
  const Strings said = Lines(Out(ended));
  ASSERT_EQ(said.size(), 3U) << "NO-CONTROL\n" << ended.text;
  EXPECT_EQ(said[0], "198.18.1.0 200") << "NO-CONTROL: its own name leads there\n" << ended.text;
  EXPECT_EQ(said[2], "met") << "NO-CONTROL: they were not there at the same time";

  const std::string out = Out(second);
  EXPECT_TRUE(Contains(out, "own | HTTP/1.1 200"))
      << "NO-CONTROL: a word in that field is no matter\n"
      << second.text;
  EXPECT_EQ(CountOf(out, " without | HTTP/1.1 403"), 2) << "OPEN\n" << out;
  EXPECT_EQ(CountOf(out, " token | HTTP/1.1 403"), 2 * 4 * 3) << "OPEN\n" << out;
  EXPECT_EQ(CountOf(out, " names | HTTP/1.1 403"), 2 * 4) << "OPEN\n" << out;
  // The number that the other call's name has is no name's here.
  EXPECT_EQ(CountOf(out, "number | "), 19 * 3) << "NO-CONTROL\n" << out;
  EXPECT_EQ(CountOf(out, "HTTP/1.1 200"), 1) << "OPEN\n" << out;
  EXPECT_EQ(CountOf(out, "descriptor"), CountOf(out, "descriptor 0") +
                                            CountOf(out, "descriptor 1") +
                                            CountOf(out, "descriptor 2") + CountOf(out, "/proc"))
      << "OPEN: something is inherited\n"
      << out;
  EXPECT_EQ(CountOf(out, " socket"), 0) << "OPEN: a socket is inherited\n" << out;
  EXPECT_EQ(CountOf(out, "coffer"), 0) << "OPEN: a process of coffer's is seen\n" << out;

  seen += Seen();
  EXPECT_TRUE(Contains(seen, "GET /v1/stolen host=other.test")) << "NO-CONTROL\n" << seen;
  EXPECT_FALSE(Contains(seen, "GET /v1/stolen host=api.test")) << "OPEN\n" << seen;
  const Json of_one = daemon_.Ask("GET", "/v1/calls/" + first + "/receipt", one).body;
  EXPECT_FALSE(Contains(of_one.dump(), "stolen")) << "OPEN: in the other's record\n"
                                                  << of_one.dump();
  EXPECT_EQ(of_one["denials"], Json::array()) << of_one.dump();
  const Json of_two = ReceiptOf(second, two);
  EXPECT_TRUE(Contains(of_two["denials"].dump(), "api.test")) << of_two.dump();
  EXPECT_EQ(of_two["tenant"], "two");
}

// Ports of another tenant's background process are inside its own boundaries. Not even an operator who has opened this
// host's loopback leads a proxy there.
TEST_F(DaemonEgressOtherCalls, NW_08_PortsOfAnotherTenantsProcessAreNotReached) {
  constexpr int kPort = 48731;
  const std::string port = std::to_string(kPort);
  Declare("open", "[[network.allow]]\nhost = \"api.test\"\ntls = \"none\"\nports = [" + port +
                      ", " + std::to_string(plain_) + "]\n");
  ASSERT_TRUE(Start());
  const std::string word = NewToken();
  const std::string session = daemon_.NewSession(daemon_.key());
  const HttpAnswer process =
      daemon_.Ask("POST", "/v1/sessions/" + session + "/processes", daemon_.key(),
                  Json{{"tool", "bash"},
                       {"args",
                        {{"command", "echo " + word + " > page; exec python3 -u -m http.server " +
                                         port + " --bind 127.0.0.1"}}},
                       {"ports", {kPort}}}
                      .dump());
  ASSERT_EQ(process.status, 201) << process.text;
  const auto fetch = [&] {
    return "python3 -c \"\nimport urllib.request as u\n"
           "print(u.urlopen('http://127.0.0.1:" +
           port + "/page', timeout=5).read().decode())\" # " + NewToken();
  };
  EXPECT_TRUE(WaitUntil(
      [&] { return Contains(daemon_.Call(daemon_.key(), Bash(fetch(), session)).text, word); },
      Seconds(60)))
      << "NO-CONTROL: its own session reaches it";
  const std::string stranger = daemon_.NewKey("two", "agent", "a")["key"];
  const std::string script =
      Fill(kTriesProcess, {{"PORT", port}, {"PLAIN", std::to_string(plain_)}});
  const HttpAnswer tried = Call("open", script, kAsIs, stranger);
  const std::string out = Out(tried);
  EXPECT_TRUE(Contains(out, "api.test " + std::to_string(plain_) + " | HTTP/1.1 200"))
      << "NO-CONTROL: this host's loopback is open\n"
      << tried.text;
  EXPECT_EQ(CountOf(out, " | "), 9) << tried.text;
  EXPECT_FALSE(Contains(out, word)) << "OPEN\n" << out;
  EXPECT_TRUE(Contains(out, "api.test " + port + " | HTTP/1.1 502")) << out;
}

}  // namespace
}  // namespace coffer::test
