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
constexpr size_t kHeadBytes = 12;

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

void AppendEntry(std::string& out, std::string_view certificate, std::string_view name) {
  Append(out, kTrustedCertificate, 4);
  AppendText(out, name);
  Append(out, 0, 8);  // when it was added
  AppendText(out, kKind);
  Append(out, certificate.size(), 4);
  out += certificate;
}

bool IsSpace(char c) { return c == '\n' || c == '\r' || c == ' ' || c == '\t'; }

// What is between the two lines of a certificate. Nearly every one has lines of base64 and nothing else.
std::optional<std::string> Decode(std::string_view lines, std::string& joined) {
  joined.clear();
  for (std::string_view rest = lines; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    joined += rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::optional<std::string> certificate = audit::FromBase64(joined);
  if (!certificate) {
    std::erase_if(joined, IsSpace);
    certificate = audit::FromBase64(joined);
  }
  return certificate;
}

}  // namespace

void JavaTrustStore::Add(std::string_view bundle) {
  if (file_.empty()) {
    file_.reserve(bundle.size());
    file_.resize(kHeadBytes);
  }
  std::string joined;
  for (size_t at = bundle.find(kBegin); at != std::string_view::npos;
       at = bundle.find(kBegin, at)) {
    at += kBegin.size();
    const size_t end = bundle.find(kEnd, at);
    if (end == std::string_view::npos) {
      break;
    }
    if (const std::optional<std::string> certificate =
            Decode(bundle.substr(at, end - at), joined)) {
      AppendEntry(file_, *certificate, "coffer-" + std::to_string(++count_));
    }
    at = end;
  }
}

// Behind the entries a digest over a password and all before it may follow. It is read only if a password is given.
std::string JavaTrustStore::Take(Then then) {
  std::string head;
  Append(head, kMagic, 4);
  Append(head, kVersion, 4);
  Append(head, count_ + (then == Then::kOneMore ? 1 : 0), 4);
  file_.replace(0, std::min(head.size(), file_.size()), head);
  return std::move(file_);
}

std::optional<std::string> JavaTrustStore::EndOf(std::string_view pem) {
  const size_t begin = pem.find(kBegin);
  const size_t end = pem.find(kEnd);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin ||
      pem.find(kBegin, end) != std::string_view::npos) {
    return std::nullopt;
  }
  const size_t lines = begin + kBegin.size();
  std::string joined;
  const std::optional<std::string> certificate = Decode(pem.substr(lines, end - lines), joined);
  if (!certificate) {
    return std::nullopt;
  }
  std::string entry;
  AppendEntry(entry, *certificate, "coffer-boundary");
  return entry;
}

}  // namespace coffer::call
