// SPDX-License-Identifier: Apache-2.0
//
// Datagrams to the address of a host that may be reached (QUIC): they meet a closed port, and the receipt and stderr say how
// many there were. Questions about names and what a program sends to itself are not among them.
#include <gtest/gtest.h>

#include "tests/support/egress_fixture.h"

namespace coffer::test {
namespace {

// What a program does, with `name`, `port` and `family`.
constexpr const char* kQuic = R"(
to = socket.getaddrinfo(name, port, family, socket.SOCK_DGRAM)[0][4]
s = socket.socket(family, socket.SOCK_DGRAM)
for i in range(3):
    s.sendto(b'initial', to)
c = socket.socket(family, socket.SOCK_DGRAM)
c.connect(to)
c.send(b'initial')
try: print(c.recv(10))
except ConnectionRefusedError: print('closed')
)";
constexpr const char* kTcp = R"(
for i in range(20):
    to = socket.getaddrinfo(name, port, family, socket.SOCK_STREAM)[0][4]
s = socket.socket(family)
s.connect(to)
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.bind(('127.0.0.1', 0))
own.sendto(b'x', own.getsockname())
own.sendto(b'x', ('127.0.0.1', 9))
print(own.recv(10).decode())
)";

class EgressDatagrams : public EgressFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  RunResult Program(const std::string& does) {
    const std::string setup = "import socket\nname, port = 'api.test', " + std::to_string(tls_) +
                              "\nfamily = socket." + GetParam() + "\n";
    return RunWith({"--allow", Api()}, {"python3", "-c", setup + does});
  }
};

TEST_P(EgressDatagrams, ToAHostThatMayBeReachedAreADenial) {
  const RunResult quic = Program(kQuic);
  EXPECT_EQ(quic.out, "closed\n") << quic.Describe();
  const Json receipt = Receipt();
  ASSERT_EQ(receipt["denials"].size(), 1U) << receipt["denials"].dump();
  const Json denial = receipt["denials"][0];
  EXPECT_EQ(denial["surface"], "egress");
  EXPECT_EQ(denial["operation"], "send");
  EXPECT_EQ(denial["rule"], "egress.datagram");
  EXPECT_EQ(denial["count"], 4) << denial.dump();
  EXPECT_TRUE(Contains(denial["fix"], "TCP")) << denial.dump();
  EXPECT_EQ(receipt["incidents"], Json::array());
  EXPECT_TRUE(Contains(quic.err, "datagrams (UDP, such as QUIC) are not carried")) << quic.err;
}

// The control: the same host over TCP, after many questions about its name, and datagrams to itself.
TEST_P(EgressDatagrams, NothingElseIsCountedAsOne) {
  const RunResult tcp = Program(kTcp);
  EXPECT_EQ(tcp.out, "x\n") << "NO-CONTROL\n" << tcp.Describe();
  EXPECT_EQ(Receipt()["denials"], Json::array());
  EXPECT_FALSE(Contains(tcp.err, "refused")) << tcp.err;
}

INSTANTIATE_TEST_SUITE_P(Over, EgressDatagrams, ::testing::Values("AF_INET", "AF_INET6"));

}  // namespace
}  // namespace coffer::test
