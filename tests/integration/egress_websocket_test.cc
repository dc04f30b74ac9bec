// SPDX-License-Identifier: Apache-2.0
//
// A WebSocket through a rule that judges requests: the upgrade is a request like any other, what goes over it afterwards is
// counted, and no other protocol is switched to.
#include <gtest/gtest.h>

#include "tests/support/egress_fixture.h"

namespace coffer::test {
namespace {

// Sends an upgrade for a path, then frames of 20,000 bytes; says the status and what came back.
constexpr const char* kClient = R"(
import socket, ssl, struct
def upgrade(path, protocol='websocket', method='GET', frames=3):
    s = socket.create_connection(('127.0.0.1', 3128), 30)
    s.sendall(b'CONNECT @AT@ HTTP/1.1\r\n\r\n')
    s.recv(4096)
    t = ssl.create_default_context().wrap_socket(s, server_hostname='api.test')
    t.sendall((method + ' ' + path + ' HTTP/1.1\r\nHost: @AT@\r\nConnection: Upgrade\r\nUpgrade: ' + protocol +
               '\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n').encode())
    f = t.makefile('rb')
    status = f.readline().split()[1].decode()
    while f.readline().strip(): pass
    got = 0
    for _ in range(frames if status == '101' else 0):
        t.sendall(b'\x82\xfe' + struct.pack('>H', 20000) + b'\0\0\0\0' + bytes(20000))
        got += len(f.read(4 + 20000)) - 4
    return status + ' ' + str(got)
)";

class EgressWebSocket : public EgressFixture {
 protected:
  RunResult Inside(const std::string& rule, std::string code) {
    code = kClient + code;
    for (size_t at = 0; (at = code.find("@AT@", at)) != std::string::npos;) {
      code.replace(at, 4, Api());
    }
    return RunWith({"--allow", rule}, {"python3", "-c", code});
  }
};

TEST_F(EgressWebSocket, TheUpgradeIsJudgedAndItsBytesAreCounted) {
  const RunResult run = Inside("GET https://" + Api() + "/v1/**", R"(
print('covered', upgrade('/v1/ws'))
print('path', upgrade('/v2/ws'))
print('method', upgrade('/v1/ws', method='POST'))
print('other', upgrade('/v1/plain', 'h2c'))
)");
  EXPECT_TRUE(Contains(run.out, "covered 101 60000")) << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "path 403 0")) << "OPEN\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "method 403 0")) << "OPEN\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "other 200 0")) << "OPEN: another protocol\n" << run.out;
  const std::string seen = Seen();
  EXPECT_TRUE(Contains(seen, "GET /v1/ws") && Contains(seen, "frame 2 20000")) << seen;
  EXPECT_FALSE(Contains(seen, "/v2/ws") || Contains(seen, "POST")) << "OPEN\n" << seen;
  const Json receipt = Receipt();
  size_t found = 0;
  for (const Json& use : receipt["network"]) {
    if (use["path"] == "/v1/ws" && use["decision"] == "allow") {
      ++found;
      EXPECT_GT(use["bytes_in"].get<int>(), 60000) << use.dump();
      EXPECT_GT(use["bytes_out"].get<int>(), 60000) << use.dump();
      EXPECT_LT(use["bytes_out"].get<int>(), 62000) << use.dump();
    }
  }
  EXPECT_EQ(found, 1u) << receipt["network"].dump();
  EXPECT_TRUE(Contains(run.err, "--allow 'GET https://" + Api() + "/v2/ws'")) << run.err;
}

// Passed through, the same bytes are one connection, and nothing inside is seen.
TEST_F(EgressWebSocket, SplicedItIsOneConnection) {
  const RunResult run = Inside(Api(), "print('any', upgrade('/v2/ws'))\n");
  EXPECT_TRUE(Contains(run.out, "any 101 60000")) << run.out << run.err;
  const Json receipt = Receipt();
  ASSERT_EQ(receipt["network"].size(), 1u) << receipt["network"].dump();
  EXPECT_TRUE(receipt["network"][0]["path"].is_null());
  EXPECT_GT(receipt["network"][0]["bytes_in"].get<int>(), 60000);
}

}  // namespace
}  // namespace coffer::test
