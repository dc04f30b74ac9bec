// SPDX-License-Identifier: Apache-2.0
#include "daemon/receivers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "call/config_file.h"
#include "egress/deliver_receiver.h"
#include "egress/dial.h"
#include "egress/secrets.h"
#include "policy/egress_grants.h"
#include "tests/support/run.h"

namespace coffer::daemon {
namespace {

const egress::AddressGuard kStrict;

Result<std::vector<egress::Receiver>> Webhook(const std::string& url) {
  call::FileConfig config;
  config.webhooks.push_back({url, "", {}});
  return egress::ReceiversOf(config.webhooks, config.otlp, kStrict);
}

std::string Bracketed(const std::string& address) {
  return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

TEST(DeliverReceiver, UrlsAreTakenApart) {
  struct UrlCase {
    const char* url;
    bool tls;
    const char* host;
    uint16_t port;
    const char* target;
    bool this_host;
  };
  for (const UrlCase& one :
       {UrlCase{"https://hooks.example.com/a/b?c=d", true, "hooks.example.com", 443, "/a/b?c=d",
                false},
        UrlCase{"https://hooks.example.com", true, "hooks.example.com", 443, "/", false},
        UrlCase{"https://hooks.example.com:8443?x", true, "hooks.example.com", 8443, "/?x", false},
        UrlCase{"http://127.0.0.1:80/x", false, "127.0.0.1", 80, "/x", true},
        UrlCase{"http://127.8.9.1:1/x", false, "127.8.9.1", 1, "/x", true},
        UrlCase{"http://localhost:4318/", false, "localhost", 4318, "/", true},
        UrlCase{"http://[::1]:99/x", false, "::1", 99, "/x", true},
        UrlCase{"https://[2001:db8::1]/x", true, "2001:db8::1", 443, "/x", false},
        UrlCase{"https://10.0.0.1/x", true, "10.0.0.1", 443, "/x", false}}) {
    const Result<std::vector<egress::Receiver>> made = Webhook(one.url);
    ASSERT_TRUE(made.ok()) << one.url;
    const egress::Receiver& receiver = made->front();
    EXPECT_EQ(receiver.tls, one.tls) << one.url;
    EXPECT_EQ(receiver.host, one.host);
    EXPECT_EQ(receiver.port, one.port) << one.url;
    EXPECT_EQ(receiver.target, one.target);
    EXPECT_EQ(receiver.this_host, one.this_host) << one.url;
    EXPECT_EQ(receiver.shown().find(one.target == std::string("/") ? "//x" : one.target),
              std::string::npos)
        << "a path may hold a token";
  }
}

TEST(DeliverReceiver, UrlsThatCannotBeMeantAreRefused) {
  for (const std::string& url : std::vector<std::string>{"",
                                                         "ftp://x/",
                                                         "https://",
                                                         "https:///x",
                                                         "https://u:p@host/",
                                                         "https://u@host/",
                                                         "https://host:0/",
                                                         "https://host:65536/",
                                                         "https://host:x/",
                                                         "https://host:1x/",
                                                         "https://ho st/",
                                                         "https://host/a b",
                                                         "https://host/a\r\nX: y",
                                                         "https://host/\x7f",
                                                         "https://h\xc3\xb6st/",
                                                         "https://host/#part",
                                                         "https://[::1/x",
                                                         "https://[x]/",
                                                         "https://a/" + std::string(3000, 'x'),
                                                         "http://example.com/",
                                                         "http://10.0.0.1/",
                                                         "http://127.0.0.1.example.com/",
                                                         "http://localhost.example.com/"}) {
    const Result<std::vector<egress::Receiver>> made = Webhook(url);
    ASSERT_FALSE(made.ok()) << url;
    EXPECT_EQ(made.error().kind, ErrorKind::kRefused);
    EXPECT_FALSE(test::Contains(made.error().message, "p@host"));
  }
}

TEST(DeliverReceiver, NamesAreStableAndSayNothing) {
  const egress::Receiver one = Webhook("https://hooks.example.com/token").value().front();
  EXPECT_EQ(one.name, Webhook("https://hooks.example.com/token").value().front().name);
  EXPECT_NE(one.name, Webhook("https://hooks.example.com/other").value().front().name);
  EXPECT_FALSE(test::Contains(one.name, "token"));
  EXPECT_FALSE(test::Contains(one.name, "example"));
  call::FileConfig twice;
  twice.webhooks = {{"https://a.example/", "", {}}, {"https://a.example/", "", {}}};
  EXPECT_FALSE(egress::ReceiversOf(twice.webhooks, twice.otlp, kStrict).ok());
}

TEST(DeliverReceiver, ACollectorGetsItsPathAndKeepsItsSecretsOffTheWire) {
  call::FileConfig config;
  config.otlp.endpoint = "http://collector.example:4318";
  EXPECT_EQ(egress::ReceiversOf(config.webhooks, config.otlp, kStrict).value().front().target,
            "/v1/traces");
  config.otlp.endpoint = "http://collector.example:4318/otlp/v1/traces";
  EXPECT_EQ(egress::ReceiversOf(config.webhooks, config.otlp, kStrict).value().front().target,
            "/otlp/v1/traces");
  config.otlp.headers_file = "/etc/coffer/headers";
  EXPECT_FALSE(egress::ReceiversOf(config.webhooks, config.otlp, kStrict).ok());
  config.otlp.endpoint = "https://collector.example:4318";
  EXPECT_TRUE(egress::ReceiversOf(config.webhooks, config.otlp, kStrict).ok());
}

TEST(DeliverReceiver, EventsAreChosenByPattern) {
  egress::Receiver hook;
  EXPECT_TRUE(hook.Wants("call.finished"));
  EXPECT_TRUE(hook.Wants("alert.rate"));
  hook.events = {"call.denied", "alert.*"};
  EXPECT_TRUE(hook.Wants("call.denied"));
  EXPECT_TRUE(hook.Wants("alert.rate"));
  EXPECT_FALSE(hook.Wants("call.finished"));
  EXPECT_FALSE(hook.Wants("alertx.rate"));
  EXPECT_FALSE(hook.Wants("alert"));
  hook.events = {"*"};
  EXPECT_TRUE(hook.Wants("switch.on"));
  egress::Receiver collector;
  collector.kind = egress::Receiver::Kind::kOtlp;
  EXPECT_TRUE(collector.Wants("call.finished"));
  EXPECT_FALSE(collector.Wants("switch.on"));
}

// Which addresses the daemon dials for the receiver of this URL.
class ReceiverAddresses : public ::testing::Test {
 protected:
  bool May(const std::string& host, const std::string& address) const {
    egress::Receiver receiver;
    receiver.host = host;
    receiver.this_host = host == "localhost" || host == "127.0.0.1";
    return egress::MayDial(receiver, guard_, policy::IpAddress::Parse(address).value());
  }
  // The daemon's answer at its start: "" if the URL is taken.
  std::string Said(const std::string& url) const {
    const std::vector<egress::WebhookConfig> hooks = {{url, "", {}}};
    const auto made = egress::ReceiversOf(hooks, {}, guard_);
    return made.ok() ? "" : made.error().message + "; " + made.error().hint;
  }
  std::string SaidOfCollector(const std::string& url) const {
    const auto made = egress::ReceiversOf({}, {url, ""}, guard_);
    return made.ok() ? "" : made.error().message;
  }
  void Open(const std::vector<std::string>& ranges,
            egress::AddressGuard::IsOwn is_own_now = nullptr) {
    std::vector<policy::AddressRange> open;
    for (const std::string& range : ranges) {
      open.push_back(policy::ParseOpenRange(range).value());
    }
    guard_ = egress::AddressGuard(open, {}, is_own_now);
  }

  egress::AddressGuard guard_;
};

constexpr const char* kHooks = "hooks.example.com";

TEST_F(ReceiverAddresses, ANameLeadsToTheInternetAndNowhereElse) {
  for (const char* const good : {"93.184.216.34", "2606:2800::1"}) {
    EXPECT_TRUE(May(kHooks, good)) << good;
  }
  for (const char* const bad :
       {"10.1.2.3", "192.168.1.1", "100.64.0.1", "fd00::1", "::ffff:10.1.2.3", "127.0.0.1",
        "127.9.9.9", "::1", "::ffff:127.0.0.1", "169.254.169.254", "::ffff:169.254.169.254",
        "fe80::1", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "0.1.2.3"}) {
    EXPECT_FALSE(May(kHooks, bad)) << bad;
  }
  EXPECT_TRUE(May("localhost", "127.0.0.1"));
  EXPECT_TRUE(May("localhost", "::1"));
  EXPECT_FALSE(May("localhost", "169.254.169.254"));
}

TEST_F(ReceiverAddresses, WritingAnAddressOpensItButForTheCloudAndTheLink) {
  for (const char* const good :
       {"127.0.0.1", "10.1.2.3", "192.168.1.1", "100.64.0.1", "fd00::1", "93.184.216.34"}) {
    EXPECT_TRUE(May(good, good)) << good;
    EXPECT_EQ(Said(fmt::format("https://{}/", Bracketed(good))), "") << good;
  }
  for (const char* const bad :
       {"169.254.169.254", "169.254.170.2", "169.254.1.1", "100.100.100.200", "168.63.129.16",
        "fe80::1", "fd00:ec2::254", "fd20:ce::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1", "0.0.0.0", "224.0.0.1", "255.255.255.255"}) {
    EXPECT_FALSE(May(bad, bad)) << bad;
    EXPECT_NE(Said(fmt::format("https://{}/", Bracketed(bad))), "") << bad;
    EXPECT_NE(SaidOfCollector(fmt::format("http://{}:4318", Bracketed(bad))), "") << bad;
  }
  EXPECT_EQ(Said("https://169.254.169.254/latest"),
            "the URL of webhook 1 leads to 169.254.169.254, which is the metadata service of a "
            "cloud; if it is meant, write dangerously_addresses = [\"169.254.169.254/32\"] in "
            "[egress]");
}

TEST_F(ReceiverAddresses, NamesOfMetadataServicesAreRefusedHoweverTheyAreWritten) {
  for (const char* const name : {"metadata.google.internal", "Metadata.Google.Internal",
                                 "metadata.google.internal.", "instance-data", "metadata.goog"}) {
    EXPECT_NE(Said(fmt::format("https://{}/", name)), "") << name;
    EXPECT_NE(SaidOfCollector(fmt::format("http://{}:4318", name)), "") << name;
  }
  EXPECT_EQ(Said("https://metadata.example.com/"), "") << "the control";
}

TEST_F(ReceiverAddresses, WhatTheOperatorOpensIsOpen) {
  Open({"10.1.0.0/16"});
  EXPECT_TRUE(May(kHooks, "10.1.2.3"));
  EXPECT_FALSE(May(kHooks, "10.2.2.3"));
  EXPECT_FALSE(May(kHooks, "192.168.1.1"));
  // A wider block leaves the metadata service closed.
  Open({"169.254.0.0/16"});
  EXPECT_TRUE(May("169.254.1.1", "169.254.1.1"));
  EXPECT_EQ(Said("https://169.254.1.1/"), "");
  EXPECT_FALSE(May("169.254.169.254", "169.254.169.254"));
  EXPECT_NE(Said("https://169.254.169.254/"), "");
  Open({"169.254.169.254/32"});
  EXPECT_TRUE(May("169.254.169.254", "169.254.169.254"));
  EXPECT_EQ(Said("https://169.254.169.254/"), "");
}

TEST_F(ReceiverAddresses, AnAddressOfThisHostNeedsARangeOfItsOwn) {
  Open({"10.1.0.0/16"}, [](const policy::IpAddress& address) {
    return address == policy::IpAddress::Parse("10.1.2.3");
  });
  EXPECT_FALSE(May(kHooks, "10.1.2.3"));
  EXPECT_TRUE(May(kHooks, "10.1.2.4"));
}

TEST(DeliverReceiver, RetryAfterIsReadInBothForms) {
  EXPECT_EQ(egress::ParseRetryAfter("120", 0), 120U);
  EXPECT_EQ(egress::ParseRetryAfter("0", 0), 0U);
  EXPECT_EQ(egress::ParseRetryAfter("-5", 0), 0U);
  EXPECT_EQ(egress::ParseRetryAfter("", 0), 0U);
  EXPECT_EQ(egress::ParseRetryAfter("soon", 0), 0U);
  EXPECT_EQ(egress::ParseRetryAfter("12s", 0), 0U);
  EXPECT_EQ(egress::ParseRetryAfter("999999999", 0), 86400U);
  EXPECT_EQ(egress::ParseRetryAfter("99999999999999999999999", 0), 86400U);
  EXPECT_EQ(egress::ParseRetryAfter("Sun, 15 Nov 2026 09:00:30 GMT", 1794733200), 30U);
  EXPECT_EQ(egress::ParseRetryAfter("Sun, 15 Nov 2026 08:00:00 GMT", 1794733200), 0U);
}

TEST(EgressSecrets, HeadersAreReadStrictly) {
  const auto headers =
      egress::ParseHeaders("# for the collector\n\nX-Api-Key: a b\r\nAuthorization:Bearer x\n");
  ASSERT_TRUE(headers.ok());
  ASSERT_EQ(headers->size(), 2U);
  EXPECT_EQ((*headers)[0], (std::pair<std::string, std::string>("X-Api-Key", "a b")));
  EXPECT_EQ((*headers)[1].second, "Bearer x");
  for (const char* const bad : {"novalue", "name:", ": value", "a b: c", "x: a\x01z", "Host: evil",
                                "content-length: 5", "Transfer-Encoding: chunked", "x: \xc3\xb6"}) {
    EXPECT_FALSE(egress::ParseHeaders(bad).ok()) << bad;
  }
}

TEST(EgressSecrets, TheSignatureIsHmacSha256) {
  // echo -n 'evt_1.1700000000.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef
  EXPECT_EQ(
      egress::SignatureOf(egress::Secret("0123456789abcdef"), "evt_1", 1700000000, "{\"a\":1}"),
      "t=1700000000,v1=3a18b8346318c1116b2115096b5dd801bc6213274a1c3a7d6ea9674130c263ef");
}

TEST(EgressSecrets, FilesThatEverybodyReadsOrThatHoldTooLittleAreRefused) {
  const test::TempDir dir;
  const std::string secret = dir.Write("secret", "0123456789abcdef\n", 0600);
  Config config;
  config.operator_uid = ::geteuid();
  config.file = dir.Write(
      "coffer.toml",
      "[[webhook]]\nurl = \"http://127.0.0.1:1/\"\nsecret_file = \"" + secret + "\"\n", 0600);
  const auto loaded = LoadReceivers(config);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->all.front().secret.bytes(), "0123456789abcdef");
  ASSERT_EQ(::chmod(secret.c_str(), 0644), 0);
  EXPECT_FALSE(LoadReceivers(config).ok());
  dir.Write("secret", "short", 0600);
  ASSERT_EQ(::chmod(secret.c_str(), 0600), 0);
  const auto refused = LoadReceivers(config);
  ASSERT_FALSE(refused.ok());
  EXPECT_FALSE(test::Contains(refused.error().message, "short"));
  ASSERT_EQ(::unlink(secret.c_str()), 0);
  EXPECT_FALSE(LoadReceivers(config).ok());
  config.file = dir / "none.toml";
  EXPECT_EQ(LoadReceivers(config).value().all.size(), 0U);
}

}  // namespace
}  // namespace coffer::daemon
