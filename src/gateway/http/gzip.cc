// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/gzip.h"

#include <strings.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "gateway/http/deflate.h"

namespace coffer::gateway {
namespace {

std::string_view TrimBlanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool SameWord(std::string_view text, std::string_view word) {
  return text.size() == word.size() && ::strncasecmp(text.data(), word.data(), word.size()) == 0;
}

// "q=0", "q=0.0", "q=0.000": never. Anything else that is a weight is more than that.
std::optional<bool> ReadWeight(std::string_view text) {
  text = TrimBlanks(text);
  if (text.size() < 3 || (text[0] != 'q' && text[0] != 'Q') || text[1] != '=') {
    return std::nullopt;
  }
  text.remove_prefix(2);
  const bool one = text[0] == '1';
  if (text.size() > 5 || (!one && text[0] != '0') || (text.size() > 1 && text[1] != '.')) {
    return std::nullopt;
  }
  const std::string_view digits = text.size() > 1 ? text.substr(2) : std::string_view{};
  if (digits.find_first_not_of(one ? "0" : "0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  return one || digits.find_first_not_of('0') != std::string_view::npos;
}

bool IsText(std::string_view type) {
  return type.starts_with("application/json") || type.starts_with("application/problem+json") ||
         (type.starts_with("text/") && !type.starts_with("text/event-stream"));
}

}  // namespace

bool AcceptsGzip(const Head& head) {
  std::optional<bool> named;
  std::optional<bool> any;
  for (const Header& header : head.headers) {
    if (!SameWord(header.name, "Accept-Encoding")) {
      continue;
    }
    std::string_view rest = header.value;
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      std::string_view coding = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      const size_t mark = coding.find(';');
      std::optional<bool> wanted = true;
      if (mark != std::string_view::npos) {
        wanted = ReadWeight(coding.substr(mark + 1));
        coding = coding.substr(0, mark);
      }
      coding = TrimBlanks(coding);
      if (SameWord(coding, "gzip") || SameWord(coding, "x-gzip")) {
        named = wanted.value_or(false);
      } else if (coding == "*") {
        any = wanted.value_or(false);
      }
    }
  }
  return named.value_or(any.value_or(false));
}

void CompressBody(bool accepted, const std::function<bool()>& gone, Response* response) {
  if (response->stream != nullptr || !IsText(response->content_type) ||
      BodySize(*response) < kCompressedBytes) {
    return;
  }
  response->headers.push_back({"Vary", "Accept-Encoding"});
  Deflate deflate;
  if (!accepted || !deflate.ready()) {
    return;
  }
  if (response->pieces.empty()) {
    for (size_t at = 0; at < response->body.size() && !gone(); at += Deflate::kPieceBytes) {
      deflate.Add(std::string_view(response->body).substr(at, Deflate::kPieceBytes),
                  /*last=*/false);
    }
    response->body = {};
  }
  while (!response->pieces.empty() && !gone()) {
    deflate.Add(response->pieces.front(), /*last=*/false);
    response->pieces.pop_front();
  }
  deflate.Add({}, /*last=*/true);
  response->pieces = deflate.Take();
  response->headers.push_back({"Content-Encoding", "gzip"});
}

}  // namespace coffer::gateway
