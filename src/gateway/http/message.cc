// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/message.h"

#include <strings.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/json_pieces.h"

namespace coffer::gateway {
namespace {

bool SameName(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

constexpr std::array<std::string_view, 5> kMethods = {"GET", "HEAD", "POST", "PUT", "DELETE"};

}  // namespace

std::string_view MethodName(Method method) {
  return method == Method::kOther ? "?" : kMethods[static_cast<size_t>(method)];
}

Method FindMethod(std::string_view text) {
  const auto found = std::find(kMethods.begin(), kMethods.end(), text);
  return static_cast<Method>(found - kMethods.begin());
}

const std::string* Head::Find(std::string_view name) const {
  const auto found = std::find_if(headers.begin(), headers.end(), [&](const Header& header) {
    return SameName(header.name, name);
  });
  return found == headers.end() ? nullptr : &found->value;
}

size_t Head::Count(std::string_view name) const {
  return static_cast<size_t>(
      std::count_if(headers.begin(), headers.end(),
                    [&](const Header& header) { return SameName(header.name, name); }));
}

Response ProblemResponse(const Problem& problem) {
  Response response;
  response.status = problem.status;
  response.content_type = "application/problem+json";
  response.body = FormatProblem(problem);
  response.close = problem.close;
  if (problem.retry_after.has_value()) {
    response.headers.push_back({"Retry-After", std::to_string(*problem.retry_after)});
  }
  if (!problem.allow.empty()) {
    response.headers.push_back({"Allow", problem.allow});
  }
  if (!problem.authenticate.empty()) {
    response.headers.push_back({"WWW-Authenticate", problem.authenticate});
  }
  return response;
}

Response JsonResponse(int status, std::string json_text) {
  Response response;
  response.status = status;
  response.content_type = "application/json";
  response.body = std::move(json_text);
  return response;
}

Response JsonResponse(int status, JsonPieces text) {
  Response response = JsonResponse(status, std::string());
  response.text = std::make_shared<JsonPieces>(std::move(text));
  return response;
}

size_t BodySize(const Response& response) {
  size_t size = response.body.size();
  for (const std::string& piece : response.pieces) {
    size += piece.size();
  }
  return size;
}

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

std::string HttpDate(Nanos since_epoch) {
  // Not strftime: the names of days and months must not depend on a locale.
  static constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed",
                                                       "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count();
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s, %02d %s %d %02d:%02d:%02d GMT",
                kDays[static_cast<size_t>(parts.tm_wday) % 7], parts.tm_mday,
                kMonths[static_cast<size_t>(parts.tm_mon) % 12], parts.tm_year + 1900,
                parts.tm_hour, parts.tm_min, parts.tm_sec);
  return text.data();
}

std::string FormatResponseHead(const Response& response, bool keep_alive, std::string_view date) {
  std::string text = "HTTP/1.1 ";
  text.reserve(320);
  text += std::to_string(response.status);
  text += ' ';
  text += ReasonPhrase(response.status);
  text += "\r\nDate: ";
  text += date;
  if (!response.content_type.empty()) {
    text += "\r\nContent-Type: ";
    text += response.content_type;
  }
  if (response.stream == nullptr || response.stream_size.has_value()) {
    if (response.status != 204) {
      text += "\r\nContent-Length: ";
      text +=
          std::to_string(response.stream == nullptr ? BodySize(response) : *response.stream_size);
    }
  } else if (response.chunked) {
    text += "\r\nTransfer-Encoding: chunked";
  }
  // Answers depend on the key and must not be cached; a browser must not guess at their type.
  text += "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff";
  for (const Header& header : response.headers) {
    text += "\r\n";
    text += header.name;
    text += ": ";
    text += header.value;
  }
  text += keep_alive ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n";
  return text;
}

}  // namespace coffer::gateway
