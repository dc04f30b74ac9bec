// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "egress/proxy_context.h"

namespace coffer::egress {
namespace {

const char* StatusText(int status) {
  switch (status) {
    case 403:
      return "Forbidden";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Bad Request";
  }
}

}  // namespace

std::string AnyBytesFix(bool of_tool, const Traffic& to) {
  return of_tool ? fmt::format("[[network.allow]] host = \"{}\", ports = [{}], tls = \"none\"",
                               to.host, to.port)
                 : fmt::format("--allow tcp://{}:{}", to.host, to.port);
}

void OpenTraffic::DenyValue(size_t line) {
  Deny(fmt::format("the request holds the value of line {} of the file of never_send", line),
       context_.grants.of_tool
           ? "leave the value out of the request; what may leave is taken out of the file that "
             "never_send of [egress] names"
           : "leave the value out of the request; what may leave is taken out of the file of "
             "--never-send");
  traffic_.held_value = true;
}

std::string RefusalAnswer(int status, std::string_view code, std::string_view message,
                          std::string_view fix) {
  Json json = {{"error", code}, {"message", Printable(message)}};
  if (!fix.empty()) {
    json["fix"] = Printable(fix);
  }
  const std::string body = PrintJson(json) + "\n";
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
      "X-Coffer-Egress: {}\r\nConnection: close\r\n\r\n{}",
      status, StatusText(status), body.size(), code, body);
}

}  // namespace coffer::egress
