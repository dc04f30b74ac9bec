// SPDX-License-Identifier: Apache-2.0
#include "egress/client_hello.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>

namespace coffer::egress {
namespace {

using namespace std::string_literals;
using HelloState = ClientHelloStep::State;

std::string Sized(std::string_view bytes, size_t length_size) {
  std::string out;
  for (size_t i = length_size; i > 0; --i) {
    out += static_cast<char>(bytes.size() >> (8 * (i - 1)) & 0xff);
  }
  return out + std::string(bytes);
}

std::string Field(char type, std::string_view value) { return "\0"s + type + Sized(value, 2); }
std::string NameField(std::string_view name) { return Field(0, Sized("\0"s + Sized(name, 2), 2)); }
// A message without its record, with these extensions.
std::string Message(const std::string& fields) {
  const std::string body = "\x03\x03" + std::string(32, 'r') + Sized("session", 1) +
                           Sized("\x13\x01", 2) + Sized("\0"s, 1) + Sized(fields, 2);
  return "\x01" + Sized(body, 3);
}
std::string Record(std::string_view part) { return "\x16\x03\x01"s + Sized(part, 2); }
std::string Hello(const std::string& fields) { return Record(Message(fields)); }

HelloState StateOf(const std::string& bytes) { return ReadClientHello(bytes).state; }

policy::HostName HelloHost(const char* text) { return policy::HostName::Parse(text).value(); }

// What a real client sends first.
std::string RealHello(const char* name, const std::string& protocols) {
  const std::shared_ptr<SSL_CTX> context(::SSL_CTX_new(::TLS_client_method()), ::SSL_CTX_free);
  const std::shared_ptr<SSL> ssl(::SSL_new(context.get()), ::SSL_free);
  BIO* const out = ::BIO_new(::BIO_s_mem());
  ::SSL_set_bio(ssl.get(), ::BIO_new(::BIO_s_mem()), out);
  if (name != nullptr) {
    ::SSL_set_tlsext_host_name(ssl.get(), name);
  }
  ::SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>(protocols.data()),
                        static_cast<unsigned>(protocols.size()));
  ::SSL_connect(ssl.get());
  char* data = nullptr;
  const long size = BIO_get_mem_data(out, &data);
  return {data, static_cast<size_t>(size)};
}

TEST(ClientHello, OfARealClient) {
  const std::string bytes = RealHello("api.test", "\x02h2\x08http/1.1");
  ASSERT_GT(bytes.size(), 100U);
  for (size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_EQ(StateOf(bytes.substr(0, size)), HelloState::kMore) << size;
  }
  const ClientHelloStep step = ReadClientHello(bytes);
  ASSERT_EQ(step.state, HelloState::kDone) << step.problem;
  EXPECT_EQ(step.hello.server_name, "api.test");
  EXPECT_EQ(step.hello.protocols, (std::vector<std::string>{"h2", "http/1.1"}));
  EXPECT_FALSE(CheckServerName(step.hello, HelloHost("api.test")));
  EXPECT_EQ(ReadClientHello(RealHello(nullptr, "\x02h2")).hello.server_name, std::nullopt);
}

// Reserved values (GREASE, RFC 8701) and an encrypted hello (ECH, 0xfe0d): the outer name counts, and nothing else is a name.
TEST(ClientHello, GreaseAndAnEncryptedHelloNameNothing) {
  const auto field = [](const std::string& type, std::string_view value) {
    return type + Sized(value, 2);
  };
  const std::string encrypted = field("\xfe\x0d", NameField("other.test") + std::string(200, 'e'));
  const ClientHelloStep step = ReadClientHello(
      Hello(field("\x0a\x0a", "") + NameField("api.test") + encrypted + field("\xfa\xfa", "\0"s)));
  ASSERT_EQ(step.state, HelloState::kDone) << step.problem;
  EXPECT_EQ(step.hello.server_name, "api.test");
  EXPECT_FALSE(CheckServerName(step.hello, HelloHost("api.test")));
  EXPECT_TRUE(CheckServerName(step.hello, HelloHost("other.test")));
  const ClientHelloStep alone = ReadClientHello(Hello(field("\x0a\x0a", "") + encrypted));
  ASSERT_EQ(alone.state, HelloState::kDone) << alone.problem;
  EXPECT_EQ(alone.hello.server_name, std::nullopt);
  EXPECT_TRUE(CheckServerName(alone.hello, HelloHost("api.test"))) << "OPEN";
}

TEST(ClientHello, InSeveralRecords) {
  const std::string message = Message(NameField("api.test"));
  std::string bytes;
  for (size_t at = 0; at < message.size(); at += 20) {
    bytes += Record(message.substr(at, 20));
  }
  const ClientHelloStep step = ReadClientHello(bytes);
  ASSERT_EQ(step.state, HelloState::kDone) << step.problem;
  EXPECT_EQ(step.hello.server_name, "api.test");
  std::string crumbs;
  for (const char c : message) {
    crumbs += Record(std::string(1, c));
  }
  EXPECT_EQ(StateOf(crumbs), HelloState::kBroken) << "no end to pieces";
}

TEST(ClientHello, WithoutHttp1) {
  const auto only = [](std::vector<std::string> protocols) {
    ClientHello hello;
    hello.protocols = std::move(protocols);
    return OffersOtherProtocolsOnly(hello);
  };
  EXPECT_TRUE(only({"h2"}));
  EXPECT_TRUE(only({"h2", "http/1.0"}));
  EXPECT_FALSE(only({"h2", "http/1.1"}));
  EXPECT_FALSE(only({})) << "a client without the field speaks HTTP/1.1";
}

TEST(ClientHello, WhatIsNotOne) {
  const std::string good = NameField("api.test");
  ASSERT_EQ(StateOf(Hello(good)), HelloState::kDone);
  const std::string kBad[] = {
      "SSH-2.0-x\r\n",
      "GET / HTTP/1.1\r\n\r\n",
      "\x80\x2e\x01\x00\x02",                         // SSL 2
      "\x16\x02\x01\x00\x05hello",                    // another major version
      "\x17\x03\x03\x00\x05hello",                    // application data
      "\x16\x03\x01\x00\x00"s,                        // an empty record
      "\x16\x03\x01\x40\x01" + std::string(20, 'x'),  // longer than a record may be
      Record("\x02" + Sized("x", 3)),                 // a server's hello
      Record(Message(good) + "x"),                    // bytes behind it in its record
      Record("\x01\xff\xff\xff"),                     // 16 MiB
      Hello(good + good),                             // the name twice
      Hello(NameField("")),
      Hello(Field(0, Sized("\0"s + Sized("a.test", 2) + "\0"s + Sized("b.test", 2), 2))),
      Hello(Field(0, Sized("\x01"s + Sized("a.test", 2), 2))),  // a type that does not exist
      Hello(Field(0, "\x00\x20\x00\x00\x01x"s)),                // its length lies
      Hello(Field(0, "")),
      Hello(Field(0, Sized("\0"s + Sized("a.test", 2), 2) + "x")),
      Hello(Field(16, Sized(Sized("", 1), 2))),  // a protocol without a name
      Hello(Field(16, "\x00\x05\x09h2"s)),
      Hello("\0\0\0"s),  // an extension that ends early
      Record("\x01" + Sized("\x03\x03", 3)),
      Record("\x01" + Sized("", 3)),
  };
  for (const std::string& bytes : kBad) {
    EXPECT_EQ(StateOf(bytes), HelloState::kBroken) << testing::PrintToString(bytes);
  }
}

TEST(ClientHello, NothingIsWaitedForWithoutEnd) {
  // Whatever comes, after the limit there is an answer.
  for (const std::string& bytes :
       {std::string(kMostHelloBytes + 6, '\x16'),
        Record("\x01\x00\x3f\xff") + std::string(20000, 'x'),
        Record("\x01\x00\x40\x00"s + std::string((1 << 14) - 4, 'x')) + Record("x")}) {
    EXPECT_NE(StateOf(bytes), HelloState::kMore);
  }
}

TEST(ClientHello, TheNameIsTheTunnels) {
  const auto check = [](const std::string& fields, const char* host) -> std::string {
    const ClientHelloStep step = ReadClientHello(Hello(fields));
    EXPECT_EQ(step.state, HelloState::kDone) << step.problem;
    const auto error = CheckServerName(step.hello, HelloHost(host));
    return error ? error->code : "ok";
  };
  EXPECT_EQ(check(NameField("API.Test"), "api.test"), "ok");
  EXPECT_EQ(check("", "api.test"), "egress.sni_missing");
  for (const std::string& name :
       {"evil.test"s, "api.test."s, "a.api.test"s, "api.test\0"s, "api.test\0.evil.test"s,
        "evil.test\0.api.test"s, "127.0.0.1"s, "[api.test]"s, "api.test:443"s, " api.test"s,
        "*.test"s, "\xef\xbd\x81pi.test"s}) {
    EXPECT_EQ(check(NameField(name), "api.test"), "egress.authority_mismatch") << name;
  }
  EXPECT_EQ(check("", "192.0.2.7"), "ok") << "an address has no server name";
  EXPECT_EQ(check(NameField("192.0.2.7"), "192.0.2.7"), "egress.authority_mismatch");
  EXPECT_EQ(check(NameField("evil.test"), "192.0.2.7"), "egress.authority_mismatch");
  EXPECT_TRUE(ReadClientHello(Hello(NameField("a.test") + "\xfe\x0d" + Sized("x", 2)))
                  .hello.encrypted_name);
}

}  // namespace
}  // namespace coffer::egress
