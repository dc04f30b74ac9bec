// SPDX-License-Identifier: Apache-2.0
#include "net/http_head.h"

#include <strings.h>

#include <algorithm>
#include <charconv>

#include "base/split.h"

namespace coffer::net {
namespace {

Error Malformed(std::string message) { return Refused("http.malformed", std::move(message)); }

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// The next line of `rest`, without its end.
Result<std::string_view> TakeLine(std::string_view& rest) {
  const size_t end = rest.find("\r\n");
  if (end == std::string_view::npos) {
    return Malformed("the head does not end");
  }
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + 2);
  const auto bad = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  };
  if (std::any_of(line.begin(), line.end(), bad)) {
    return Malformed("a control character, or a line that ends without CR LF");
  }
  return line;
}

// "Content_Length": servers that hand fields on as variables cannot tell it from the real one.
bool IsDisguised(std::string_view name) {
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return dashed != name &&
         (SameText(dashed, "Content-Length") || SameText(dashed, "Transfer-Encoding"));
}

bool IsConnection(std::string_view name) {
  return SameText(name, "Connection") || SameText(name, "Proxy-Connection");
}

Status ReadFields(std::string_view rest, HttpFields& fields) {
  size_t connection_names = 0;
  while (true) {
    TRY_ASSIGN(const std::string_view line, TakeLine(rest));
    if (line.empty()) {
      return rest.empty() ? Status() : Malformed("bytes after the head");
    }
    if (line.front() == ' ' || line.front() == '\t') {
      return Malformed("a folded field");
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
      return Malformed("a field without a name");
    }
    if (IsDisguised(line.substr(0, colon))) {
      return Malformed("a field that some servers take for another one");
    }
    if (fields.list.size() == kMostHeadFields) {
      return Refused("http.too_many_fields", "more than 128 fields");
    }
    fields.list.push_back(
        {std::string(line.substr(0, colon)), std::string(Trimmed(line.substr(colon + 1)))});
    if (const HttpField& field = fields.list.back(); IsConnection(field.name)) {
      connection_names +=
          1 + static_cast<size_t>(std::count(field.value.begin(), field.value.end(), ','));
      if (connection_names > kMostConnectionNames) {
        return Refused("http.too_many_fields", "more than 32 names in Connection");
      }
    }
  }
}

Result<int> ReadVersion(std::string_view text) {
  if (text == "HTTP/1.1") {
    return 11;
  }
  if (text == "HTTP/1.0") {
    return 10;
  }
  return Refused("http.version", "only HTTP/1.1 and HTTP/1.0 are spoken here");
}

// What the fields say about the body; kNone if they say nothing.
Result<HttpBody> ReadFraming(const HttpFields& fields, int version) {
  const size_t lengths = fields.Count("Content-Length");
  const size_t codings = fields.Count("Transfer-Encoding");
  if (lengths + codings > 1) {
    return Refused("http.framing", "the length of the body is given more than once");
  }
  HttpBody body;
  if (lengths == 1) {
    const std::string& value = *fields.Find("Content-Length");
    if (value.empty() || value.size() > 18 ||
        value.find_first_not_of("0123456789") != std::string::npos) {
      return Refused("http.framing", "Content-Length is not a number of bytes");
    }
    body.kind = HttpBody::Kind::kLength;
    std::from_chars(value.data(), value.data() + value.size(), body.length);
  }
  if (codings == 1) {
    if (version < 11 || !SameText(*fields.Find("Transfer-Encoding"), "chunked")) {
      return Refused("http.transfer_coding", "the only transfer coding is chunked, in HTTP/1.1");
    }
    body.kind = HttpBody::Kind::kChunked;
  }
  return body;
}

}  // namespace

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool SameText(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

const std::string* HttpFields::Find(std::string_view name) const {
  const auto found = std::find_if(
      list.begin(), list.end(), [&](const HttpField& field) { return SameText(field.name, name); });
  return found == list.end() ? nullptr : &found->value;
}

size_t HttpFields::Count(std::string_view name) const {
  return static_cast<size_t>(std::count_if(list.begin(), list.end(), [&](const HttpField& field) {
    return SameText(field.name, name);
  }));
}

bool HttpFields::HasMember(std::string_view name, std::string_view member) const {
  for (const HttpField& field : list) {
    if (!SameText(field.name, name)) {
      continue;
    }
    for (const std::string_view part : SplitText(field.value, ',')) {
      if (SameText(Trimmed(part), member)) {
        return true;
      }
    }
  }
  return false;
}

size_t FindHeadEnd(std::string_view bytes, size_t from) {
  const size_t end = bytes.find("\r\n\r\n", from < 3 ? 0 : from - 3);
  return end == std::string_view::npos ? 0 : end + 4;
}

Result<HttpRequestHead> ParseRequestHead(std::string_view raw) {
  HttpRequestHead head;
  TRY_ASSIGN(const std::string_view line, TakeLine(raw));
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return Malformed("the first line is not METHOD TARGET VERSION");
  }
  head.method = line.substr(0, first);
  head.target = line.substr(first + 1, last - first - 1);
  if (!IsToken(head.method) || head.target.empty() ||
      head.target.find_first_of(" \t") != std::string::npos) {
    return Malformed("the first line is not METHOD TARGET VERSION");
  }
  TRY_ASSIGN(head.version, ReadVersion(line.substr(last + 1)));
  TRY(ReadFields(raw, head.fields));
  TRY_ASSIGN(head.body, ReadFraming(head.fields, head.version));
  return head;
}

Result<HttpResponseHead> ParseResponseHead(std::string_view raw, std::string_view method) {
  HttpResponseHead head;
  TRY_ASSIGN(const std::string_view line, TakeLine(raw));
  // "HTTP/1.1 200 OK"; the reason may be empty, and its space may be missing.
  if (line.size() < 12 || line[8] != ' ' || (line.size() > 12 && line[12] != ' ')) {
    return Malformed("the first line is not VERSION STATUS REASON");
  }
  TRY_ASSIGN(head.version, ReadVersion(line.substr(0, 8)));
  const std::string_view status = line.substr(9, 3);
  if (status.find_first_not_of("0123456789") != std::string_view::npos || status[0] < '1' ||
      status[0] > '5') {
    return Malformed("the status is not a number from 100 to 599");
  }
  std::from_chars(status.data(), status.data() + 3, head.status);
  head.reason = line.size() > 13 ? line.substr(13) : "";
  TRY(ReadFields(raw, head.fields));
  TRY_ASSIGN(head.body, ReadFraming(head.fields, head.version));
  const bool empty =
      method == "HEAD" || head.status < 200 || head.status == 204 || head.status == 304;
  if (empty) {
    head.body = {};
  } else if (head.body.kind == HttpBody::Kind::kNone) {
    head.body.kind = HttpBody::Kind::kUntilClose;
  }
  return head;
}

}  // namespace coffer::net
