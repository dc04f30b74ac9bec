// SPDX-License-Identifier: Apache-2.0
//
// `format: uri`: RFC 3986, appendix A, the production URI (with a scheme; no relative references).
#include <algorithm>
#include <string_view>

#include "base/ascii.h"
#include "policy/schema/format.h"

namespace coffer::policy {
namespace {

bool IsUnreservedOrSubDelim(char c) {
  return IsLetter(c) || IsDigit(c) ||
         std::string_view("-._~!$&'()*+,;=").find(c) != std::string_view::npos;
}

// Only unreserved characters, sub-delims, percent-encoded bytes and the `also` characters.
bool Consists(std::string_view text, std::string_view also) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size() || !IsHexDigit(text[i + 1]) || !IsHexDigit(text[i + 2])) {
        return false;
      }
      i += 2;
    } else if (!IsUnreservedOrSubDelim(text[i]) && also.find(text[i]) == also.npos) {
      return false;
    }
  }
  return true;
}

bool IsScheme(std::string_view text) {
  return !text.empty() && IsLetter(text[0]) && std::all_of(text.begin(), text.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '+' || c == '-' || c == '.';
  });
}

bool AllHex(std::string_view text) { return std::all_of(text.begin(), text.end(), IsHexDigit); }

// "v1.x": versions of addresses that are still to come.
bool IsFutureAddress(std::string_view text) {
  const size_t dot = text.find('.');
  return dot != text.npos && dot > 1 && (text[0] | 0x20) == 'v' &&
         AllHex(text.substr(1, dot - 1)) && dot + 1 < text.size() && text.find('%') == text.npos &&
         Consists(text.substr(dot + 1), ":");
}

bool IsAuthority(std::string_view text) {
  if (const size_t at = text.find('@'); at != text.npos) {
    if (!Consists(text.substr(0, at), ":")) {
      return false;
    }
    text.remove_prefix(at + 1);
  }
  std::string_view port;
  if (!text.empty() && text[0] == '[') {
    const size_t end = text.find(']');
    if (end == text.npos) {
      return false;
    }
    const std::string_view address = text.substr(1, end - 1);
    if (!FindFormat("ipv6")->check(address) && !IsFutureAddress(address)) {
      return false;
    }
    port = text.substr(end + 1);
  } else {
    const size_t colon = std::min(text.find(':'), text.size());
    if (!Consists(text.substr(0, colon), "")) {
      return false;
    }
    port = text.substr(colon);
  }
  return port.empty() || (port[0] == ':' && std::all_of(port.begin() + 1, port.end(), IsDigit));
}

}  // namespace

bool IsUri(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == text.npos || !IsScheme(text.substr(0, colon))) {
    return false;
  }
  std::string_view rest = text.substr(colon + 1);
  if (const size_t hash = rest.find('#'); hash != rest.npos) {
    if (!Consists(rest.substr(hash + 1), ":@/?")) {
      return false;
    }
    rest = rest.substr(0, hash);
  }
  if (const size_t question = rest.find('?'); question != rest.npos) {
    if (!Consists(rest.substr(question + 1), ":@/?")) {
      return false;
    }
    rest = rest.substr(0, question);
  }
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    const size_t slash = std::min(rest.find('/'), rest.size());
    if (!IsAuthority(rest.substr(0, slash))) {
      return false;
    }
    rest.remove_prefix(slash);
  }
  return Consists(rest, ":@/");
}

}  // namespace coffer::policy
