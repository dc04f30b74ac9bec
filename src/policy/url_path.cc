// SPDX-License-Identifier: Apache-2.0
#include "policy/url_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/hex.h"
#include "base/split.h"
#include "base/text.h"
#include "base/utf8.h"

namespace coffer::policy {
namespace {

constexpr size_t kLongestPath = 8192;

Error NotAPath(std::string_view text, std::string_view why) {
  return Refused("egress.path", fmt::format("the path \"{}\" is refused: {}", Printable(text), why),
                 "send the plain path, without dots, double escapes or backslashes");
}

// The byte of an escape at the front of `text`, or nothing.
std::optional<char> Escape(std::string_view text) {
  if (text.size() < 3 || text[0] != '%' || EitherCaseHexValue(text[1]) < 0 ||
      EitherCaseHexValue(text[2]) < 0) {
    return std::nullopt;
  }
  return static_cast<char>(EitherCaseHexValue(text[1]) << 4 | EitherCaseHexValue(text[2]));
}

// What may stand in a path as it is (RFC 3986: pchar without escapes). A letter is unreserved, a mark has a meaning in
// some schemes and is left as the client wrote it.
bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}
bool IsMark(char c) { return std::string_view("!$&'()*+,;=:@").find(c) != std::string_view::npos; }

struct Part {
  std::string sent;     // with escapes
  std::string decoded;  // without
};

// One part between two slashes.
Result<Part> ReadPart(std::string_view text) {
  Part part;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    const bool escaped = c == '%';
    if (escaped) {
      const auto byte = Escape(text.substr(i));
      if (!byte) {
        return NotAPath(text, "an escape is broken");
      }
      c = *byte;
      i += 2;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\') {
      return NotAPath(text, "it has a NUL, a control character or a backslash");
    }
    if (!escaped && (c == ' ' || c == '#' || c == '?')) {
      return NotAPath(text, "it has a space, a \"#\" or a \"?\"");
    }
    part.decoded += c;
    if (IsUnreserved(c) || (!escaped && IsMark(c))) {
      part.sent += c;
    } else {
      part.sent += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  for (size_t i = 0; i < part.decoded.size(); ++i) {
    if (Escape(std::string_view(part.decoded).substr(i))) {
      return NotAPath(text, "an escape is escaped");
    }
  }
  if (!IsUtf8(part.decoded)) {
    return NotAPath(text, "it is not UTF-8");
  }
  return part;
}

bool IsDots(std::string_view part) { return part == "." || part == ".."; }
// Dots to some servers: Java's cut parameters off, and those of Windows spaces at the end.
bool MayBeDots(std::string_view part) {
  part = part.substr(0, part.find(';'));
  while (part.ends_with(' ')) {
    part.remove_suffix(1);
  }
  return IsDots(part);
}

bool PartsMatch(const std::vector<std::string>& parts, std::string_view pattern) {
  const std::vector<std::string_view> wanted = SplitText(pattern.substr(1), '/');
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == "**" && i + 1 == wanted.size()) {
      return parts.size() > i;
    }
    if (i >= parts.size() || (wanted[i] == "*" ? parts[i].empty() : wanted[i] != parts[i])) {
      return false;
    }
  }
  return parts.size() == wanted.size();
}

}  // namespace

Result<UrlPath> UrlPath::Parse(std::string_view text) {
  if (!text.starts_with('/')) {
    return NotAPath(text, "it does not begin with a slash");
  }
  if (text.size() > kLongestPath) {
    return NotAPath(text, "it is longer than 8192 bytes");
  }
  std::vector<Part> kept;
  const std::vector<std::string_view> raw = SplitText(text.substr(1), '/');
  for (size_t i = 0; i < raw.size(); ++i) {
    const bool last = i + 1 == raw.size();
    TRY_ASSIGN(Part part, ReadPart(raw[i]));
    if (part.decoded == "..") {
      if (kept.empty()) {
        return NotAPath(text, "it climbs above the root");
      }
      kept.pop_back();
    } else if (MayBeDots(part.decoded) && part.decoded != ".") {
      return NotAPath(text, "servers read dots with something behind them in two ways");
    }
    if (!IsDots(part.decoded) && !part.decoded.empty()) {
      kept.push_back(std::move(part));
    } else if (last) {
      kept.emplace_back();  // a slash at the end stays one
    }
  }
  UrlPath path;
  path.text_.clear();
  path.parts_.clear();
  path.split_parts_.clear();
  for (Part& part : kept) {
    path.text_ += '/';
    path.text_ += part.sent;
    const std::vector<std::string_view> inner = SplitText(part.decoded, '/');
    for (const std::string_view piece : inner) {
      if (inner.size() > 1 && (piece.empty() || MayBeDots(piece))) {
        return NotAPath(text, "behind an escaped slash are dots or nothing");
      }
      path.split_parts_.emplace_back(piece);
    }
    path.parts_.push_back(std::move(part.decoded));
  }
  return path;
}

bool UrlPath::Matches(std::string_view pattern) const {
  return pattern.starts_with('/') && PartsMatch(parts_, pattern) &&
         PartsMatch(split_parts_, pattern);
}

bool IsEveryPath(std::string_view pattern) { return pattern == "/**"; }

}  // namespace coffer::policy
