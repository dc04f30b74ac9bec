// SPDX-License-Identifier: Apache-2.0
//
// The certificates that programs of a call are shown for hosts whose requests are judged: made once for a host, and for one boundary alone.
#include <gtest/gtest.h>

#include <set>

#include "tests/daemon/egress_daemon.h"

namespace coffer::test {
namespace {

using DaemonEgressLeaf = DaemonEgress;

// Two connections to each host, both verified; a line for each: the digest of the certificate that the program was shown.
constexpr const char* kShown = R"(python3 -c "
import hashlib, socket, ssl
trust = ssl.create_default_context()
for host in ('api.test', 'api.test', 'other.test', 'other.test'):
    s = socket.create_connection(('127.0.0.1', 3128), 60)
    s.settimeout(60)
    s.sendall(b'CONNECT %s:PORT HTTP/1.1\r\n\r\n' % host.encode())
    s.recv(4096)
    s = trust.wrap_socket(s, server_hostname=host)
    s.sendall(b'GET /v1/x HTTP/1.1\r\nHost: %s:PORT\r\n\r\n' % host.encode())
    print(s.recv(12).decode(), hashlib.sha256(s.getpeercert(True)).hexdigest())
    s.close()
")";

TEST_F(DaemonEgressLeaf, ALeafIsKeptForItsHostAndItsBoundaryAlone) {
  const std::string port = std::to_string(tls_);
  std::string rules;
  for (const char* const host : {"api.test", "other.test"}) {
    rules += "[[network.allow]]\nhost = \"" + std::string(host) + "\"\nports = [" + port +
             "]\npaths = [\"/v1/**\"]\n";
  }
  Declare("judged", rules);
  ASSERT_TRUE(Start());
  std::string script = kShown;
  for (size_t at = 0; (at = script.find("PORT", at)) != std::string::npos;) {
    script.replace(at, 4, port);
  }
  const std::string one = daemon_.NewKey("one", "agent", "a")["key"];
  const std::string two = daemon_.NewKey("two", "agent", "a")["key"];
  std::set<std::string> all;
  // Two calls of one tenant, and one of another.
  for (const std::string& key : {one, one, two}) {
    const HttpAnswer answer = Call("judged", script, kAsIs, key);
    const Strings shown = Lines(Out(answer));
    ASSERT_EQ(shown.size(), 4U) << answer.text;
    for (const std::string& line : shown) {
      EXPECT_TRUE(line.starts_with("HTTP/1.1 200 ")) << line;
      all.insert(line);
    }
    EXPECT_EQ(shown[0], shown[1]) << "the second connection paid for another leaf";
    EXPECT_EQ(shown[2], shown[3]) << "the second connection paid for another leaf";
    EXPECT_NE(shown[0], shown[2]) << "NO-CONTROL: all leaves look alike";
  }
  EXPECT_EQ(all.size(), 6U) << "OPEN: a boundary was shown the leaf of another";
}

}  // namespace
}  // namespace coffer::test
