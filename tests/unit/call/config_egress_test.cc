// SPDX-License-Identifier: Apache-2.0
#include "call/config_egress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "call/config_file.h"
#include "tests/support/temp_dir.h"

namespace coffer::call {
namespace {

using ::testing::HasSubstr;

std::string MistakeOf(const std::string& text) {
  const Result<FileConfig> config = ReadConfigText(text, "f");
  return config.ok() ? "" : config.error().message;
}

TEST(ConfigEgress, EverythingThatCanBeSaid) {
  const Result<FileConfig> config = ReadConfigText(R"(
[egress]
resolve = ["db.internal=10.1.2.3"]
dangerously_addresses = ["10.1.0.0/16"]
upstream_ca = "/etc/coffer/ca.pem"
never_send = "/etc/coffer/never-send"
upstream_proxy = "http://proxy.internal:3128"
proxied = ["**.example.com"]
deny = ["**.example.net", "files.example.com:22", "*:25"]
max_connections = 8
max_bytes_out = "1MiB"
max_bytes_in = "2MiB"
hold_time = "30s"
[egress.sets]
pypi = ["packages.example.com", "GET https://files.example.com/packages/**"]
db = ["tcp://db.internal:5432"]
)",
                                                   "f");
  ASSERT_TRUE(config.ok()) << config.error().message;
  const policy::EgressConfig& egress = config->egress.egress;
  EXPECT_EQ(egress.resolve, std::vector<std::string>{"db.internal=10.1.2.3"});
  EXPECT_EQ(egress.addresses, std::vector<std::string>{"10.1.0.0/16"});
  EXPECT_EQ(config->egress.upstream_ca_file, "/etc/coffer/ca.pem");
  EXPECT_EQ(config->egress.never_send_file, "/etc/coffer/never-send");
  EXPECT_EQ(egress.upstream_proxy, "http://proxy.internal:3128");
  EXPECT_EQ(egress.proxied, std::vector<std::string>{"**.example.com"});
  EXPECT_EQ(egress.deny.size(), 3U);
  EXPECT_EQ(egress.connections, 8U);
  EXPECT_EQ(egress.bytes_out, 1U << 20);
  EXPECT_EQ(egress.bytes_in, 2U << 20);
  EXPECT_EQ(egress.hold_seconds, 30U);
  ASSERT_EQ(egress.sets.size(), 2U);
  EXPECT_EQ(egress.sets[0].first, "db");
  EXPECT_EQ(egress.sets[1].second.size(), 2U);
  EXPECT_EQ(ReadConfigText("", "f")->egress.egress, policy::EgressConfig{});
}

TEST(ConfigEgress, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(MistakeOf("[egress]\nallow = []\n"), HasSubstr("f:2:1"));
  EXPECT_THAT(MistakeOf("[egress]\nresolve = [\"db.internal\"]\n"),
              HasSubstr("f:2:12: egress.resolve: \"db.internal\" is not NAME=ADDRESS"));
  EXPECT_THAT(MistakeOf("[egress]\nresolve = [\"1.2.3.4=1.2.3.4\"]\n"),
              HasSubstr("egress.resolve"));
  EXPECT_THAT(MistakeOf("[egress]\ndangerously_addresses = [\"0.0.0.0/0\"]\n"),
              HasSubstr("covers more than one kind of network"));
  EXPECT_THAT(MistakeOf("[egress]\ndangerously_addresses = [\"ten\"]\n"),
              HasSubstr("egress.dangerously_addresses"));
  EXPECT_THAT(MistakeOf("[egress]\nupstream_ca = \"ca.pem\"\n"), HasSubstr("not an absolute path"));
  EXPECT_THAT(MistakeOf("[egress]\nnever_send = \"values\"\n"),
              HasSubstr("f:2:14: egress.never_send: not an absolute path"));
  EXPECT_THAT(MistakeOf("[egress]\nupstream_proxy = \"proxy:3128\"\n"),
              HasSubstr("egress.upstream_proxy"));
  const std::string secret =
      MistakeOf("[egress]\nupstream_proxy = \"http://u:hunter2@p.test:1\"\n");
  EXPECT_THAT(secret, HasSubstr("user name or password"));
  EXPECT_THAT(secret, ::testing::Not(HasSubstr("hunter2")));
  EXPECT_THAT(MistakeOf("[egress]\nproxied = [\"a.test\"]\n"), HasSubstr("hosts without a proxy"));
  EXPECT_THAT(MistakeOf("[egress]\ndeny = [\"a..test\"]\n"), HasSubstr("egress.deny"));
  EXPECT_THAT(MistakeOf("[egress]\ndeny = [\"a.test:0\"]\n"), HasSubstr("has no port"));
  EXPECT_THAT(MistakeOf("[egress]\nmax_connections = 0\n"), HasSubstr("egress.max_connections"));
  EXPECT_THAT(MistakeOf("[egress]\nhold_time = \"2h\"\n"), HasSubstr("not from 1s to 1h"));
  EXPECT_THAT(MistakeOf("[egress.sets]\nPypi = [\"pypi.org\"]\n"),
              HasSubstr("not the name of a set"));
  EXPECT_THAT(MistakeOf("[egress.sets]\npypi = [\"*\"]\n"), HasSubstr("egress.sets.pypi"));
  EXPECT_THAT(MistakeOf("[egress.sets]\npypi = [\"*.com\"]\n"), HasSubstr("top-level domain"));
  EXPECT_THAT(MistakeOf("[egress.sets]\npypi = \"pypi.org\"\n"), HasSubstr("egress.sets.pypi"));
}

TEST(ConfigEgress, TheFileOfCertificatesIsTheOperatorsAlone) {
  const test::TempDir dir;
  ::chmod(dir.path().c_str(), 0755);
  EgressFileConfig config;
  EXPECT_EQ(LoadEgressConfig(config, ::geteuid())->upstream_ca, "");
  config.upstream_ca_file = dir.path() + "/ca.pem";
  EXPECT_FALSE(LoadEgressConfig(config, ::geteuid()).ok()) << "it is not there";
  std::ofstream(config.upstream_ca_file) << "-----BEGIN CERTIFICATE-----\n";
  ::chmod(config.upstream_ca_file.c_str(), 0644);
  EXPECT_EQ(LoadEgressConfig(config, ::geteuid())->upstream_ca, "-----BEGIN CERTIFICATE-----\n");
  ::chmod(config.upstream_ca_file.c_str(), 0666);
  EXPECT_FALSE(LoadEgressConfig(config, ::geteuid()).ok()) << "others can change it";
  EXPECT_TRUE(LoadEgressConfig(config, std::nullopt).ok()) << "the caller's own word";
  ::chmod(config.upstream_ca_file.c_str(), 0644);
  std::ofstream(config.upstream_ca_file) << "no certificate\n";
  EXPECT_THAT(LoadEgressConfig(config, ::geteuid()).error().message,
              HasSubstr("holds no certificate"));
}

TEST(ConfigEgress, TheFileOfValuesIsTheOperatorsAloneAndSecret) {
  const test::TempDir dir;
  ::chmod(dir.path().c_str(), 0755);
  EgressFileConfig config;
  EXPECT_EQ(LoadNeverSend(config, ::geteuid()).value(), "");
  config.never_send_file = dir.path() + "/values";
  EXPECT_FALSE(LoadNeverSend(config, ::geteuid()).ok()) << "it is not there";
  const auto write = [&](const std::string& text, mode_t mode) {
    std::ofstream(config.never_send_file, std::ios::trunc) << text;
    ::chmod(config.never_send_file.c_str(), mode);
  };
  for (const std::optional<uid_t> uid : {std::optional(::geteuid()), std::optional<uid_t>()}) {
    write("qqqqqqqq\n", 0600);
    EXPECT_EQ(LoadNeverSend(config, uid).value(), "qqqqqqqq\n");
    for (const mode_t mode : {0604, 0620, 0602, 0666}) {
      write("qqqqqqqq\n", mode);
      EXPECT_FALSE(LoadNeverSend(config, uid).ok()) << mode;
    }
    write("qqqqqqqq\nqqqqqqq\n", 0600);
    const Result<std::string> mistake = LoadNeverSend(config, uid);
    ASSERT_FALSE(mistake.ok());
    EXPECT_THAT(mistake.error().message, HasSubstr("egress.never_send: "));
    EXPECT_THAT(mistake.error().message, HasSubstr("line 2 has 7 bytes"));
    EXPECT_THAT(mistake.error().message + mistake.error().hint, ::testing::Not(HasSubstr("qqq")));
    write(std::string(70000, '\n') + "qqqqqqqq\n", 0600);
    const Result<std::string> large = LoadNeverSend(config, uid);
    ASSERT_FALSE(large.ok()) << "a part of it would not be looked for";
    EXPECT_THAT(large.error().message, HasSubstr("/values has 70009 bytes"));
    // A call may be shown it under another name. Control: without that name it is read.
    write("qqqqqqqq\n", 0600);
    const std::string other = dir.path() + "/other";
    ASSERT_EQ(::link(config.never_send_file.c_str(), other.c_str()), 0);
    const Result<std::string> linked = LoadNeverSend(config, uid);
    ASSERT_FALSE(linked.ok());
    EXPECT_THAT(linked.error().message, HasSubstr("hard links"));
    ASSERT_EQ(::unlink(other.c_str()), 0);
    EXPECT_TRUE(LoadNeverSend(config, uid).ok()) << "NO-CONTROL";
  }
}

}  // namespace
}  // namespace coffer::call
