// SPDX-License-Identifier: Apache-2.0
#include "egress/client_hello.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "base/text.h"
#include "egress/tls_record.h"

namespace coffer::egress {
namespace {

using State = ClientHelloStep::State;

constexpr uint8_t kHelloMessage = 1;
constexpr size_t kMessageHead = 4;
constexpr size_t kMostRecordBytes = 1 << 14;  // RFC 8446 section 5.1
constexpr size_t kMostRecords = 16;
constexpr uint16_t kServerNameField = 0;
constexpr uint16_t kProtocolsField = 16;
constexpr uint16_t kEncryptedHelloField = 0xfe0d;

// Takes numbers and byte strings off the front; once something is missing, everything else is too.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}
  uint32_t Number(size_t size) {
    uint32_t value = 0;
    for (const char byte : Bytes(size)) {
      value = value << 8 | static_cast<unsigned char>(byte);
    }
    return value;
  }
  std::string_view Bytes(size_t size) {
    if (rest_.size() < size) {
      failed_ = true;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  // A byte string with its length in front.
  std::string_view Sized(size_t length_size) { return Bytes(Number(length_size)); }
  bool empty() const { return rest_.empty(); }
  bool failed() const { return failed_; }
  // Everything was there and nothing is left.
  bool finished() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

ClientHelloStep Broken(std::string_view problem) {
  ClientHelloStep step;
  step.state = State::kBroken;
  step.problem = problem;
  return step;
}

bool ReadServerName(std::string_view field, ClientHello& hello) {
  Cursor cursor(field);
  Cursor names(cursor.Sized(2));
  const uint32_t type = names.Number(1);
  const std::string_view name = names.Sized(2);
  hello.server_name = name;
  // One name, of the only type there is.
  return cursor.finished() && names.finished() && type == 0 && !name.empty();
}

bool ReadProtocols(std::string_view field, ClientHello& hello) {
  Cursor cursor(field);
  Cursor names(cursor.Sized(2));
  while (!names.empty() && !names.failed()) {
    const std::string_view name = names.Sized(1);
    if (name.empty()) {
      return false;
    }
    hello.protocols.emplace_back(name);
  }
  return cursor.finished() && names.finished() && !hello.protocols.empty();
}

bool ReadField(uint32_t type, std::string_view field, ClientHello& hello) {
  switch (type) {
    case kServerNameField:
      return ReadServerName(field, hello);
    case kProtocolsField:
      return ReadProtocols(field, hello);
    case kEncryptedHelloField:
      hello.encrypted_name = true;
      return true;
    default:
      return true;
  }
}

// The message behind its type and length (RFC 8446 section 4.1.2).
ClientHelloStep ReadMessage(std::string_view message) {
  ClientHelloStep step;
  Cursor cursor(message);
  const uint32_t version = cursor.Number(2);
  cursor.Bytes(32);  // random
  const size_t session = cursor.Sized(1).size();
  const size_t ciphers = cursor.Sized(2).size();
  const std::string_view compressions = cursor.Sized(1);
  Cursor fields(cursor.Sized(2));
  if (!cursor.finished() || version >> 8 != 3 || session > 32 || ciphers == 0 || ciphers % 2 != 0 ||
      compressions.find('\0') == std::string_view::npos) {
    return Broken("the TLS hello is malformed");
  }
  std::set<uint32_t> seen;
  while (!fields.empty()) {
    const uint32_t type = fields.Number(2);
    const std::string_view field = fields.Sized(2);
    if (fields.failed() || !seen.insert(type).second || !ReadField(type, field, step.hello)) {
      return Broken("an extension of the TLS hello is malformed or there twice");
    }
  }
  step.state = State::kDone;
  return step;
}

}  // namespace

ClientHelloStep ReadClientHello(std::string_view bytes) {
  std::string message;
  size_t at = 0;
  for (size_t records = 0; at < bytes.size(); ++records) {
    if (records == kMostRecords || at >= kMostHelloBytes) {
      return Broken("the TLS hello is too long");
    }
    Cursor head(bytes.substr(at));
    const uint32_t type = head.Number(1);
    if (type != kHandshakeRecord) {
      return Broken("this is not TLS");
    }
    const uint32_t version = head.Number(2);
    if (!head.failed() && version >> 8 != 3) {
      return Broken("this is not TLS");
    }
    const uint32_t size = head.Number(2);
    if (head.failed()) {
      return {};
    }
    if (size == 0 || size > kMostRecordBytes) {
      return Broken("a TLS record is empty or too long");
    }
    const std::string_view part = bytes.substr(at + kRecordHead, size);
    message += part;
    at += kRecordHead + size;
    if (!message.empty() && message[0] != kHelloMessage) {
      return Broken("the first message of TLS is not a client's hello");
    }
    if (message.size() >= kMessageHead) {
      Cursor cursor(message);
      cursor.Number(1);
      const size_t wanted = cursor.Number(3);
      if (wanted > kMostHelloBytes) {
        return Broken("the TLS hello is too long");
      }
      if (message.size() > kMessageHead + wanted ||
          (message.size() == kMessageHead + wanted && part.size() < size)) {
        return Broken("more than a hello in the first record of TLS");
      }
      if (message.size() == kMessageHead + wanted) {
        ClientHelloStep step = ReadMessage(std::string_view(message).substr(kMessageHead));
        step.size = at;
        return step;
      }
    }
    if (part.size() < size) {
      return {};
    }
  }
  return {};
}

std::optional<Error> CheckServerName(const ClientHello& hello, const policy::HostName& host) {
  const std::string& wanted = host.text();
  if (!hello.server_name) {
    if (host.address()) {
      return std::nullopt;
    }
    return Refused("egress.sni_missing",
                   fmt::format("the TLS hello names no server, so {} cannot be checked", wanted),
                   "use a client that sends the server name (SNI)");
  }
  const Result<policy::HostName> name = policy::HostName::Parse(*hello.server_name);
  if (!name.ok() || name->address() || *name != host) {
    return Refused("egress.authority_mismatch",
                   fmt::format("the tunnel is for {}, the TLS hello asks for {}", wanted,
                               Printable(*hello.server_name)),
                   "connect to the host that is meant");
  }
  return std::nullopt;
}

bool OffersOtherProtocolsOnly(const ClientHello& hello) {
  return !hello.protocols.empty() && std::find(hello.protocols.begin(), hello.protocols.end(),
                                               "http/1.1") == hello.protocols.end();
}

}  // namespace coffer::egress
