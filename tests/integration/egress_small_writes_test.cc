// SPDX-License-Identifier: Apache-2.0
//
// A client whose kernel joins small writes (Nagle, the default of a socket) sends its request when the end of its handshake is
// acknowledged. Where requests are judged the proxy acknowledges it at once, and not after the 40 ms that the kernel may wait.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/egress_fixture.h"

namespace coffer::test {
namespace {

// Microseconds of the fastest of 15 requests, each on a connection of its own: without TCP_NODELAY, and with it.
constexpr const char* kFastest = R"(
import socket, ssl, sys, time
host, port = sys.argv[1].split(':')
trust = ssl.create_default_context()
def ask(nodelay):
    began = time.monotonic()
    s = socket.create_connection(('127.0.0.1', 3128), 30)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)
    s.sendall(b'CONNECT %s:%s HTTP/1.1\r\n\r\n' % (host.encode(), port.encode()))
    s.recv(4096)
    t = trust.wrap_socket(s, server_hostname=host)
    t.sendall(b'GET /v1/x HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n\r\n' % (host.encode(), port.encode()))
    got = b''
    while more := t.recv(4096): got += more
    assert got.startswith(b'HTTP/1.1 200'), got
    return time.monotonic() - began
joined, apart = [], []
for i in range(15):
    joined.append(ask(0))
    apart.append(ask(1))
print(int(min(joined) * 1e6), int(min(apart) * 1e6))
)";

using EgressSmallWrites = EgressFixture;

TEST_F(EgressSmallWrites, AClientThatJoinsThemIsNotSlowerWhereRequestsAreJudged) {
  const RunResult result =
      RunWith({"--allow", "GET https://" + Api() + "/v1/**"}, {"python3", "-c", kFastest, Api()});
  ASSERT_EQ(result.exit, 0) << result.Describe();
  std::istringstream out(result.out);
  long joined = 0, apart = 0;
  ASSERT_TRUE(out >> joined >> apart) << result.Describe();
  EXPECT_LT(joined, apart * 5 / 2) << "microseconds: " << result.out;
}

}  // namespace
}  // namespace coffer::test
