// SPDX-License-Identifier: Apache-2.0
#include "egress/dns_message.h"

#include <algorithm>

namespace coffer::egress {
namespace {

constexpr size_t kHeader = 12;
constexpr size_t kLongestDnsQuery = 512 + 64;
constexpr uint16_t kInternet = 1;
constexpr uint16_t kOpt = 41;

Error MalformedQuery(std::string_view what) {
  return Refused("egress.dns", "a malformed DNS query: " + std::string(what));
}

uint16_t Word(std::string_view bytes, size_t at) {
  return static_cast<uint16_t>(static_cast<unsigned char>(bytes[at]) << 8 |
                               static_cast<unsigned char>(bytes[at + 1]));
}

void Put(std::string& out, uint32_t value, size_t size) {
  for (size_t i = size; i > 0; --i) {
    out += static_cast<char>(value >> (8 * (i - 1)) & 0xff);
  }
}

struct WireName {
  std::string text;   // with dots; what is inside a label may be any byte
  size_t end = 0;     // behind the name
  bool plain = true;  // no label has a dot in it
};

Result<WireName> ReadName(std::string_view message, size_t at) {
  WireName name;
  size_t length = 0;
  while (true) {
    if (at >= message.size()) {
      return MalformedQuery("the name does not end");
    }
    const auto size = static_cast<unsigned char>(message[at]);
    if (size > 63) {
      return MalformedQuery("a compressed name in a question");
    }
    ++at;
    length += 1U + size;
    if (length > 255 || at + size > message.size()) {
      return MalformedQuery("the name is too long");
    }
    if (size == 0) {
      name.end = at;
      return name;
    }
    const std::string_view label = message.substr(at, size);
    name.plain = name.plain && label.find('.') == std::string_view::npos;
    name.text += name.text.empty() ? "" : ".";
    name.text += label;
    at += size;
  }
}

// One OPT record (RFC 6891) is what a query may have behind its question.
bool IsOptOnly(std::string_view rest) {
  if (rest.size() < 11 || rest[0] != 0 || Word(rest, 1) != kOpt) {
    return false;
  }
  return rest.size() == 11U + Word(rest, 9);
}

std::string Head(const DnsQuestion& question, uint16_t code, uint16_t answers) {
  std::string out;
  Put(out, question.id, 2);
  // Response, recursion available, and the query's own "recursion desired" bit.
  Put(out, 0x8080U | (question.recursion_desired ? 0x0100U : 0U) | code, 2);
  Put(out, 1, 2);
  Put(out, answers, 2);
  Put(out, 0, 4);
  return out + question.wire;
}

}  // namespace

Result<DnsQuestion> ParseDnsQuery(std::string_view message) {
  if (message.size() < kHeader || message.size() > kLongestDnsQuery) {
    return MalformedQuery("its size");
  }
  DnsQuestion question;
  question.id = Word(message, 0);
  const uint16_t flags = Word(message, 2);
  question.recursion_desired = (flags & 0x0100) != 0;
  if ((flags & 0xf800) != 0) {
    return MalformedQuery("it is not a standard query");
  }
  const uint16_t more = Word(message, 10);
  if (Word(message, 4) != 1 || Word(message, 6) != 0 || Word(message, 8) != 0 || more > 1) {
    return MalformedQuery("it has other than one question");
  }
  TRY_ASSIGN(const WireName name, ReadName(message, kHeader));
  if (message.size() < name.end + 4) {
    return MalformedQuery("the question does not end");
  }
  const uint16_t type = Word(message, name.end);
  const bool internet = Word(message, name.end + 2) == kInternet;
  const std::string_view rest = message.substr(name.end + 4);
  if (more == 1 ? !IsOptOnly(rest) : !rest.empty()) {
    return MalformedQuery("bytes behind the question");
  }
  question.wire = message.substr(kHeader, name.end + 4 - kHeader);
  if (internet && (type == 1 || type == 28)) {
    question.type = static_cast<DnsQuestion::Type>(type);
  }
  if (Result<policy::HostName> host = policy::HostName::Parse(name.text);
      name.plain && host.ok() && !host->address()) {
    question.name = *std::move(host);
  }
  return question;
}

std::string MakeDnsAnswer(const DnsQuestion& question, DnsAnswer answer) {
  switch (answer) {
    case DnsAnswer::kNoData:
      return Head(question, 0, 0);
    case DnsAnswer::kNoName:
      return Head(question, 3, 0);
    case DnsAnswer::kRefused:
      break;
  }
  return Head(question, 5, 0);
}

std::string MakeDnsAnswer(const DnsQuestion& question, const policy::IpAddress& address,
                          uint32_t seconds) {
  std::string out = Head(question, 0, 1);
  Put(out, 0xc000U | kHeader, 2);  // the name of the question
  Put(out, address.is_v6() ? 28 : 1, 2);
  Put(out, kInternet, 2);
  Put(out, seconds, 4);
  Put(out, static_cast<uint32_t>(address.size()), 2);
  out.append(reinterpret_cast<const char*>(address.data()), address.size());
  return out;
}

}  // namespace coffer::egress
