// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/hex.h"
#include "base/json.h"
#include "base/utf8.h"

namespace coffer {
namespace {

constexpr unsigned char kFirstPrinted = 0x20;

// RFC 8259 section 7: the short form where there is one.
void AppendEscaped(char c, std::string* out) {
  static constexpr std::string_view kShort = "\"\\\b\f\n\r\t";
  static constexpr std::string_view kLetter = "\"\\bfnrt";
  if (const size_t known = kShort.find(c); known != std::string_view::npos) {
    const char escaped[] = {'\\', kLetter[known]};
    out->append(escaped, sizeof(escaped));
    return;
  }
  const auto byte = static_cast<unsigned char>(c);
  const char escaped[] = {'\\', 'u', '0', '0', kHexDigits[byte >> 4], kHexDigits[byte & 0xf]};
  out->append(escaped, sizeof(escaped));
}

bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

// Bytes that are not UTF-8, up to the next ASCII character, where every reader begins anew. The library knows how many
// characters stand for them.
void AppendReplaced(std::string_view run, std::string* out) {
  static constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
  if (run.size() == 1) {
    *out += kReplacement;
    return;
  }
  const std::string printed = PrintJson(Json(run));
  out->append(printed, 1, printed.size() - 2);
}

}  // namespace

void AppendJsonText(std::string_view text, std::string* out) {
  *out += '"';
  size_t plain = 0;  // where what can be copied as it is begins
  size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    size_t taken = IsAscii(c) ? 1 : Utf8Length(text.substr(at));
    if (taken > 0 && c != '"' && c != '\\' && static_cast<unsigned char>(c) >= kFirstPrinted) {
      at += taken;
      continue;
    }
    out->append(text, plain, at - plain);
    if (taken > 0) {
      AppendEscaped(c, out);
    } else {
      const auto* const end = std::find_if(text.begin() + at, text.end(), IsAscii);
      taken = static_cast<size_t>(end - text.begin()) - at;
      AppendReplaced(text.substr(at, taken), out);
    }
    at += taken;
    plain = at;
  }
  out->append(text, plain, text.size() - plain);
  *out += '"';
}

}  // namespace coffer
