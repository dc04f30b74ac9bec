// SPDX-License-Identifier: Apache-2.0
#include "call/warden/grant_network.h"

#include <gtest/gtest.h>

#include "call/config_ceilings.h"

namespace coffer::call {
namespace {

using Texts = std::vector<std::string>;

WardenTable Table() {
  WardenTable table;
  table.ceilings = DefaultCeilings();
  table.egress.resolve = {"db.internal=10.0.0.1"};
  table.egress.addresses = {"10.0.0.0/8"};
  table.egress.upstream_ca = "PEM";
  table.egress.sets = {{"empty", {}}, {"pypi", {"pypi.org", "files.pythonhosted.org"}}};
  return table;
}

TEST(GrantNetwork, SetsAndTheOperatorsWordsComeFromTheTable) {
  RunRequest request;
  request.envelope.network = {"@pypi", "{line}"};
  request.envelope.connections = 3;
  ASSERT_TRUE(GrantNetwork(Table(), request).ok());
  EXPECT_EQ(request.egress.allow, (Texts{"pypi.org", "files.pythonhosted.org"}));
  EXPECT_EQ(request.egress.lines, Texts{"{line}"});
  EXPECT_EQ(request.egress.resolve, Texts{"db.internal=10.0.0.1"});
  EXPECT_EQ(request.egress.addresses, Texts{"10.0.0.0/8"});
  EXPECT_EQ(request.egress.upstream_ca, "PEM");
  EXPECT_EQ(request.egress.connections, 3U);
  EXPECT_TRUE(request.egress.of_tool);
}

TEST(GrantNetwork, TheOperatorsCeilingsComeFromTheTable) {
  WardenTable table = Table();
  table.egress.upstream_proxy = "http://proxy.internal:3128";
  table.egress.proxied = {"**.example.com"};
  table.egress.never_send = "a value\n";
  table.egress.deny = {"evil.example.com"};
  table.egress.connections = 8;
  table.egress.bytes_out = 1000;
  table.egress.bytes_in = 2000;
  RunRequest request;
  request.envelope.network = {"@pypi"};
  request.egress.upstream_proxy = "http://elsewhere.example.com:1";  // whatever stood there before
  ASSERT_TRUE(GrantNetwork(table, request).ok());
  EXPECT_EQ(request.egress.upstream_proxy, "http://proxy.internal:3128");
  EXPECT_EQ(request.egress.proxied, Texts{"**.example.com"});
  EXPECT_EQ(request.egress.never_send, "a value\n");
  EXPECT_EQ(request.egress.deny, Texts{"evil.example.com"});
  EXPECT_EQ(request.egress.most_bytes_out, 1000U);
  EXPECT_EQ(request.egress.most_bytes_in, 2000U);
  EXPECT_EQ(request.egress.connections, 8U) << "the manifest names none";
  request.envelope.network = {"@pypi"};
  request.envelope.connections = 3;
  ASSERT_TRUE(GrantNetwork(table, request).ok());
  EXPECT_EQ(request.egress.connections, 3U);
  request.envelope.network = {"@pypi"};
  request.envelope.connections = 9;
  ASSERT_TRUE(GrantNetwork(table, request).ok());
  EXPECT_EQ(request.egress.connections, 8U);
}

TEST(GrantNetwork, NothingIsNothing) {
  RunRequest request;
  request.egress.allow = {"evil.example.com"};  // whatever stood there before
  ASSERT_TRUE(GrantNetwork(Table(), request).ok());
  EXPECT_TRUE(request.egress.empty());
  request.envelope.network = {"@other"};
  const Status missing = GrantNetwork(Table(), request);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, "policy.egress");
  EXPECT_EQ(missing.error().hint, "write other = [\"HOST\"] under [egress.sets]");
}

TEST(GrantNetwork, TheTableKeepsItOnItsWay) {
  const Result<WardenTable> back = DecodeTable(EncodeTable(Table()));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->egress, Table().egress);
}

}  // namespace
}  // namespace coffer::call
