// SPDX-License-Identifier: Apache-2.0
//
// Calls of two tenants of one daemon at the same time: no connection, TLS session, certificate, record or socket of one is the
// other's.
#include <gtest/gtest.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <set>
#include <sstream>
#include <thread>

#include "tests/daemon/egress_daemon.h"

namespace coffer::test {
namespace {

// On one connection: which connection the server sees, a wait for the other call, and the same again. Then the certificate that
// the program was shown, the authority at the end of its bundle, and whether a second connection resumes the first one's session.
constexpr const char* kOneServer = R"(python3 -c "
import hashlib, os, re, socket, ssl
context = ssl.create_default_context()
def dial(session=None):
    s = socket.create_connection(('127.0.0.1', 3128), 90)
    s.settimeout(90)
    s.sendall(b'CONNECT api.test:PORT HTTP/1.1\r\n\r\n')
    s.recv(4096)
    return context.wrap_socket(s, server_hostname='api.test', session=session)
def get(t, path):
    t.sendall(b'GET %s HTTP/1.1\r\nHost: api.test:PORT\r\n\r\n' % path.encode())
    got = b''
    while b'\r\n\r\n' not in got: got += t.recv(4096)
    head, _, body = got.partition(b'\r\n\r\n')
    size = int(re.search(rb'Content-Length: (\d+)', head).group(1))
    while len(body) < size: body += t.recv(4096)
    return body.decode()
t = dial()
print(get(t, '/v1/peer/NAME'))
print(get(t, '/v1/meet/NAME'))
print(get(t, '/v1/peer/NAME'))
print(hashlib.sha256(t.getpeercert(True)).hexdigest())
print(hashlib.sha256(open('/etc/ssl/certs/ca-certificates.crt').read()[-1000:].encode()).hexdigest())
again = dial(t.session)
print(get(again, '/v1/peer/NAME').split()[3], again.session_reused)
")";

// Servers of a call's own, by name and by path, that it can reach itself. Its end waits for the other call.
constexpr const char* kOwnSockets = R"(python3 -c "
import socket, threading, urllib.request as u
def serve(family, at):
    s = socket.socket(family)
    s.bind(at); s.listen()
    threading.Thread(target=lambda: [s.accept()[0].sendall(b'own') for i in range(9)], daemon=True).start()
    c = socket.socket(family); c.connect(at); print(c.recv(9).decode())
serve(socket.AF_UNIX, '\0TOKEN')
serve(socket.AF_UNIX, '/tmp/TOKEN')
serve(socket.AF_INET, ('127.0.0.1', 3999))
print(u.urlopen('http://api.test:PORT/v1/meet/a').read().decode())
print(u.urlopen('http://api.test:PORT/v1/meet/b').read().decode())
")";

// Meets the first call, tries each of NAMES and the first call's port, and lets the first one end.
constexpr const char* kOtherSockets = R"(
python3 -c "
import socket, urllib.request as u
print(u.urlopen('http://api.test:PORT/v1/meet/a').read().decode())
def reach(name, family, kind, at):
    try:
        s = socket.socket(family, kind); s.settimeout(5); s.connect(at)
        print('reached', name)
    except OSError as e: print('refused', name)
for name in '''NAMES'''.split():
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
        reach(name, socket.AF_UNIX, kind, '\0' + name[1:] if name[0] == '@' else name)
reach('port', socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', 3999))
reach('proxy', socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', 3128))
print('listed', open('/proc/net/unix').read().count('TOKEN'))
print(u.urlopen('http://api.test:PORT/v1/meet/b').read().decode())
")";

// A socket of this host that listens: "@NAME" or a path.
class HostSocket {
 public:
  explicit HostSocket(const std::string& name)
      : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), name_(name) {
    const auto [address, size] = At();
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size), 0) << name;
    EXPECT_EQ(::listen(fd_, 16), 0) << name;
    if (name[0] != '@') {
      EXPECT_EQ(::chmod(name.c_str(), 0777), 0) << name;
    }
  }
  ~HostSocket() { ::close(fd_); }
  HostSocket(const HostSocket&) = delete;
  HostSocket& operator=(const HostSocket&) = delete;

  bool Reach() const {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto [address, size] = At();
    const bool reached = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0;
    ::close(fd);
    return reached;
  }
  int Visitors() const {
    int count = 0;
    for (int fd = 0; (fd = ::accept(fd_, nullptr, nullptr)) >= 0; ++count) {
      ::close(fd);
    }
    return count;
  }

 private:
  std::pair<sockaddr_un, socklen_t> At() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ::memcpy(address.sun_path, name_.data(), name_.size());
    if (name_[0] == '@') {
      address.sun_path[0] = '\0';
    }
    return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size())};
  }

  const int fd_;
  const std::string name_;
};

class DaemonEgressTenants : public DaemonEgress {
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
  // The names of sockets of this host with `part` in them.
  static std::set<std::string> SocketsWith(const std::string& part) {
    std::set<std::string> names;
    for (const std::string& line : Lines(ReadFile("/proc/net/unix").value_or(""))) {
      const size_t at = line.find_first_of("@/");
      if (at != std::string::npos && Contains(line.substr(at), part)) {
        names.insert(line.substr(at));
      }
    }
    return names;
  }
};

TEST_F(DaemonEgressTenants, TwoCallsOfOneServerShareNothing) {
  const std::string port = std::to_string(tls_);
  Declare("judged",
          "[[network.allow]]\nhost = \"api.test\"\nports = [" + port + "]\npaths = [\"/v1/**\"]\n");
  Declare("spliced",
          "[[network.allow]]\nhost = \"api.test\"\nports = [" + port + "]\ntls = \"splice\"\n");
  ASSERT_TRUE(Start());
  const std::string one = daemon_.NewKey("one", "agent", "a")["key"];
  const std::string two = daemon_.NewKey("two", "agent", "a")["key"];
  for (const std::string tool : {"judged", "spliced"}) {
    SCOPED_TRACE(tool);
    HttpAnswer first, second;
    std::thread beside([&] {
      first = CallForLong(tool, Fill(kOneServer, {{"PORT", port}, {"NAME", "one"}}), one);
    });
    second = CallForLong(tool, Fill(kOneServer, {{"PORT", port}, {"NAME", "two"}}), two);
    beside.join();
    const Strings a = Lines(Out(first)), b = Lines(Out(second));
    ASSERT_EQ(a.size(), 6U) << first.text;
    ASSERT_EQ(b.size(), 6U) << second.text;
    EXPECT_EQ(a[1], "met") << "NO-CONTROL: not at the same time";
    EXPECT_EQ(b[1], "met") << "NO-CONTROL: not at the same time";
    EXPECT_EQ(a[0], a[2]) << "NO-CONTROL: one connection would not be told from two";
    EXPECT_EQ(b[0], b[2]) << "NO-CONTROL: one connection would not be told from two";
    EXPECT_NE(a[0], b[0]) << "OPEN: both came by one connection";
    if (tool == "judged") {
      EXPECT_NE(a[3], b[3]) << "OPEN: one leaf for two boundaries";
      EXPECT_NE(a[4], b[4]) << "OPEN: one authority for two boundaries";
      EXPECT_EQ(a[5], "False False") << "OPEN: a session is kept";
      EXPECT_EQ(b[5], "False False") << "OPEN: a session is kept";
    } else {
      EXPECT_EQ(a[3], b[3]) << "NO-CONTROL: the server's own certificate is one";
      EXPECT_EQ(a[4], b[4]) << "NO-CONTROL: the host's bundle is one";
      EXPECT_EQ(a[5], "True True") << "NO-CONTROL: a kept session would not be seen";
    }
    const Json of_one = ReceiptOf(first, one), of_two = ReceiptOf(second, two);
    EXPECT_EQ(of_one["tenant"], "one") << of_one.dump();
    EXPECT_EQ(of_two["tenant"], "two") << of_two.dump();
    if (tool == "judged") {
      EXPECT_TRUE(Contains(of_one["network"].dump(), "/v1/peer/one")) << "NO-CONTROL";
      EXPECT_TRUE(Contains(of_two["network"].dump(), "/v1/peer/two")) << "NO-CONTROL";
    }
    EXPECT_FALSE(Contains(of_one.dump(), "/v1/peer/two")) << "OPEN\n" << of_one.dump();
    EXPECT_FALSE(Contains(of_two.dump(), "/v1/peer/one")) << "OPEN\n" << of_two.dump();
    for (const Json* receipt : {&of_one, &of_two}) {
      long count = 0;
      for (const Json& use : (*receipt)["network"]) {
        count += use["count"].get<long>();
      }
      EXPECT_EQ(count, tool == "judged" ? 4 : 2) << receipt->dump();
    }
    EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + first.At("call_id") + "/receipt", two).status, 404)
        << "OPEN";
  }
}

TEST_F(DaemonEgressTenants, NW_27_SocketsOfTheHostAndOfAnotherTenantAreNotReached) {
  Declare("reader", Plain("api.test"));
  ASSERT_TRUE(Start());
  const std::string one = daemon_.NewKey("one", "agent", "a")["key"];
  const std::string two = daemon_.NewKey("two", "agent", "a")["key"];
  const std::string token = NewToken(), port = std::to_string(plain_);
  const std::string named = "@" + NewToken(), placed = dir_.path() + "/proxy";
  const HostSocket by_name(named), by_path(placed);
  EXPECT_TRUE(by_name.Reach() && by_path.Reach()) << "NO-CONTROL";
  EXPECT_EQ(by_name.Visitors() + by_path.Visitors(), 2) << "NO-CONTROL";
  HttpAnswer first, second;
  std::thread beside([&] {
    first = CallForLong("reader", Fill(kOwnSockets, {{"PORT", port}, {"TOKEN", token}}), one);
  });
  // It listens by now, and waits in its proxy for the second call.
  std::string seen;
  EXPECT_TRUE(WaitUntil([&] { return Contains(seen += Seen(), "GET /v1/meet/a"); }, Seconds(60)));
  // With those of the daemon and of the runners: what has its directory in its name.
  std::set<std::string> names = SocketsWith(daemon_.state());
  EXPECT_FALSE(names.empty()) << "NO-CONTROL: the daemon has a socket in its state directory";
  names.insert({named, placed, "@" + token, "/tmp/" + token});
  std::string all;
  for (const std::string& name : names) {
    all += name + " ";
  }
  second = CallForLong(
      "reader", Fill(kOtherSockets, {{"PORT", port}, {"TOKEN", token}, {"NAMES", all}}), two);
  beside.join();
  EXPECT_EQ(Lines(Out(first)), (Strings{"own", "own", "own", "met", "met"})) << "NO-CONTROL\n"
                                                                             << first.text;
  const Strings tried = Lines(Out(second));
  EXPECT_EQ(tried.size(), 3 * names.size() + 5) << second.text;
  for (const std::string& line : tried) {
    // The second call's own proxy is the only one at that port.
    EXPECT_TRUE(!line.starts_with("reached") || line == "reached proxy") << "OPEN: " << line;
  }
  EXPECT_TRUE(Contains(Out(second), "reached proxy")) << "NO-CONTROL\n" << second.text;
  EXPECT_FALSE(Contains(Out(second), "listed") && !Contains(Out(second), "listed 0"))
      << "OPEN: names of another boundary\n"
      << second.text;
  EXPECT_EQ(by_name.Visitors() + by_path.Visitors(), 0) << "OPEN";
}

}  // namespace
}  // namespace coffer::test
