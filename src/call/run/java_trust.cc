// SPDX-License-Identifier: Apache-2.0
#include "call/run/java_trust.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "audit/log/encoding.h"

namespace coffer::call {
namespace {

constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
constexpr std::string_view kEnd = "-----END CERTIFICATE-----";
constexpr std::string_view kKind = "X.509";
constexpr uint32_t kMagic = 0xfeedfeed;
constexpr uint32_t kVersion = 2;
constexpr uint32_t kTrustedCertificate = 2;

// As DataInputStream reads it: the highest byte first.
void Append(std::string& out, uint64_t number, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out += static_cast<char>(number >> shift & 0xff);
  }
}

void AppendText(std::string& out, std::string_view text) {
  Append(out, text.size(), 2);
  out += text;
}

void AppendEntry(std::string& out, std::string_view certificate, uint32_t number) {
  Append(out, kTrustedCertificate, 4);
  AppendText(out, "coffer-" + std::to_string(number));
  Append(out, 0, 8);  // when it was added
  AppendText(out, kKind);
  Append(out, certificate.size(), 4);
  out += certificate;
}

}  // namespace

void JavaTrustStore::Add(std::string_view bundle) {
  for (size_t at = bundle.find(kBegin); at != std::string_view::npos;
       at = bundle.find(kBegin, at)) {
    at += kBegin.size();
    const size_t end = bundle.find(kEnd, at);
    if (end == std::string_view::npos) {
      break;
    }
    std::string text(bundle.substr(at, end - at));
    std::erase_if(text, [](char c) { return c == '\n' || c == '\r' || c == ' ' || c == '\t'; });
    if (const std::optional<std::string> certificate = audit::FromBase64(text)) {
      AppendEntry(entries_, *certificate, ++count_);
    }
    at = end;
  }
}

// Behind the entries a digest over a password and all before it may follow. It is read only if a password is given.
std::string JavaTrustStore::Take() const {
  std::string store;
  store.reserve(entries_.size() + 12);
  Append(store, kMagic, 4);
  Append(store, kVersion, 4);
  Append(store, count_, 4);
  return store + entries_;
}

}  // namespace coffer::call
