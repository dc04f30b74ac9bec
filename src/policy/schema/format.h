// SPDX-License-Identifier: Apache-2.0
//
// The formats that `format` asserts. Only those that can be checked exactly and by hand; every other name is refused
// when the schema is loaded, because a format that is not checked looks like one that is.
//
// Where the standard and a lenient validator differ, the standard wins: see the table in docs/SCHEMA.md.
#pragma once

#include <string_view>

namespace coffer::policy {

using FormatCheck = bool (*)(std::string_view);

struct Format {
  std::string_view name;
  FormatCheck check;
  std::string_view example;
};

const Format* FindFormat(std::string_view name);
bool IsUri(std::string_view text);  // RFC 3986
// "date, date-time, ...", for an error message.
std::string_view FormatNames();

}  // namespace coffer::policy
