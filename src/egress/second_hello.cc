// SPDX-License-Identifier: Apache-2.0
#include "egress/second_hello.h"

#include <string>

#include "egress/tls_record.h"

namespace coffer::egress {
namespace {

constexpr uint8_t kCipherRecord = 20;
constexpr uint8_t kAlertRecord = 21;
constexpr uint8_t kDataRecord = 23;
constexpr char kServerHello = 2;
constexpr size_t kBeforeRandom = 6;   // type, length, version
constexpr size_t kMostAnswer = 1024;  // records of one byte each would be a longer one

// The random of a server's hello that asks for another one: the SHA-256 of "HelloRetryRequest".
constexpr std::string_view kAskingRandom(
    "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
    "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c",
    32);

uint8_t TypeOf(std::string_view record) { return static_cast<uint8_t>(record[0]); }

size_t SizeOf(std::string_view record) {
  return kRecordHead + (static_cast<uint8_t>(record[3]) << 8 | static_cast<uint8_t>(record[4]));
}

bool MayComeBefore(uint8_t type) {
  return type == kCipherRecord || type == kAlertRecord || type == kDataRecord;
}

}  // namespace

ServerAnswer ReadServerAnswer(std::string_view bytes) {
  std::string message;
  std::string_view rest = bytes;
  while (!rest.empty() && message.size() < kBeforeRandom + kAskingRandom.size()) {
    if (TypeOf(rest) != kHandshakeRecord) {
      return ServerAnswer::kOther;
    }
    if (rest.size() < kRecordHead) {
      break;
    }
    const std::string_view record = rest.substr(0, SizeOf(rest));
    message += record.substr(kRecordHead);
    rest.remove_prefix(record.size());
    if (!message.empty() && message[0] != kServerHello) {
      return ServerAnswer::kOther;
    }
  }
  if (message.size() >= kBeforeRandom + kAskingRandom.size()) {
    const bool asks = message.compare(kBeforeRandom, kAskingRandom.size(), kAskingRandom) == 0;
    return asks ? ServerAnswer::kAsksAgain : ServerAnswer::kOther;
  }
  return bytes.size() < kMostAnswer ? ServerAnswer::kMore : ServerAnswer::kOther;
}

size_t SizeBeforeSecondHello(std::string_view bytes) {
  size_t size = 0;
  for (std::string_view rest = bytes; rest.size() >= kRecordHead && MayComeBefore(TypeOf(rest));
       rest = bytes.substr(size)) {
    if (rest.size() < SizeOf(rest)) {
      break;
    }
    size += SizeOf(rest);
  }
  return size;
}

bool IsSecondHelloNext(std::string_view bytes) { return !MayComeBefore(TypeOf(bytes)); }

}  // namespace coffer::egress
