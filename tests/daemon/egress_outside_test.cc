// SPDX-License-Identifier: Apache-2.0
//
// What a declared tool sends to addresses outside, past its proxy or without one: nothing leaves, and its receipt says how
// often it tried.
#include <gtest/gtest.h>

#include "tests/daemon/egress_daemon.h"

namespace coffer::test {
namespace {

constexpr const char* kOutward =
    "python3 -c \"\nimport socket\n"
    "for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):\n"
    "  for family, to in ((socket.AF_INET, '192.0.2.7'), (socket.AF_INET6, '2001:db8::7')):\n"
    "    s = socket.socket(family, kind)\n"
    "    try: print(s.sendto(b'x', (to, 443)) if kind == socket.SOCK_DGRAM else s.connect((to, "
    "443)))\n"
    "    except OSError as e: print(e.errno)\n\"";
constexpr const char* kInward =
    "python3 -c \"\nimport socket\n"
    "s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())\n"
    "print('own')\n\"";

constexpr const char* kToAName =
    "python3 -c \"\nimport socket\n"
    "to = socket.getaddrinfo('api.test', 443, socket.AF_INET, socket.SOCK_DGRAM)[0][4]\n"
    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    "for i in range(5): print(s.sendto(b'x', to))\n\"";

// The warden's runner reads the count of a boundary that is another user's.
TEST_F(DaemonEgress, DatagramsToAHostOfTheManifestAreInTheReceipt) {
  ASSERT_TRUE(Start());
  const HttpAnswer sent = Call("reader", kToAName);
  EXPECT_EQ(Out(sent), "1\n1\n1\n1\n1\n") << "NO-CONTROL\n" << sent.text;
  const Json receipt = ReceiptOf(sent);
  ASSERT_EQ(receipt["denials"].size(), 1U) << receipt.dump();
  EXPECT_EQ(receipt["denials"][0]["rule"], "egress.datagram") << receipt.dump();
  EXPECT_EQ(receipt["denials"][0]["count"], 5) << receipt.dump();
}

TEST_F(DaemonEgress, SendsToAddressesOutsideAreInTheReceipt) {
  ASSERT_TRUE(Start());
  for (const std::string tool : {"reader", "mute"}) {
    SCOPED_TRACE(tool);
    const HttpAnswer tried = Call(tool, kOutward);
    EXPECT_EQ(Out(tried), "101\n101\n101\n101\n") << "OPEN, or NO-CONTROL\n" << tried.text;
    const Json receipt = ReceiptOf(tried);
    ASSERT_EQ(receipt["denials"].size(), 1U) << receipt.dump();
    const Json denial = receipt["denials"][0];
    EXPECT_EQ(denial["surface"], "egress");
    EXPECT_EQ(denial["operation"], "connect");
    EXPECT_EQ(denial["target"], "addresses outside");
    EXPECT_EQ(denial["count"], 4);
    EXPECT_TRUE(Contains(denial["fix"], "[[network.allow]]"));
    const HttpAnswer own = Call(tool, kInward);
    EXPECT_EQ(Out(own), "own\n") << "NO-CONTROL\n" << own.text;
    EXPECT_EQ(ReceiptOf(own)["denials"], Json::array()) << "told of what went nowhere outside";
  }
}

}  // namespace
}  // namespace coffer::test
