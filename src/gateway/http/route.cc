// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/route.h"

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
#include "gateway/http/names.h"
#include "gateway/http/words.h"
#include "policy/manifest/manifest.h"
#include "policy/manifest/mistake.h"
#include "store/key.h"

namespace coffer::gateway {
namespace {

std::string_view TakeSegment(std::string_view* path) {
  const size_t slash = path->find('/');
  const std::string_view segment = path->substr(0, slash);
  *path = slash == std::string_view::npos ? std::string_view{} : path->substr(slash + 1);
  return segment;
}

// Both begin with a slash.
bool Matches(std::string_view pattern, std::string_view path, Values* values) {
  values->clear();
  if (path.empty() || path.front() != '/') {
    return false;
  }
  pattern.remove_prefix(1);
  path.remove_prefix(1);
  while (!pattern.empty()) {
    if (path.empty()) {
      return false;
    }
    const bool last_of_path = path.find('/') == std::string_view::npos;
    const std::string_view want = TakeSegment(&pattern);
    if (want.ends_with("*}")) {
      values->emplace_back(want.substr(1, want.size() - 3), std::string(path));
      return true;
    }
    const std::string_view got = TakeSegment(&path);
    if (want.starts_with('{')) {
      values->emplace_back(want.substr(1, want.size() - 2), std::string(got));
    } else if (want != got) {
      return false;
    }
    if (last_of_path) {
      return pattern.empty();
    }
  }
  return false;  // more path than pattern, or a slash at the end
}

// What a switch may name. An agent's name may hold what has a meaning in a URL: it is then percent-encoded.
bool IsSwitchName(std::string_view value) {
  const size_t colon = value.find(':');
  const bool pause = colon != std::string_view::npos &&  // TOOL:AGENT, which may be longer
                     policy::IsToolName(value.substr(0, colon)) &&
                     store::IsAgentName(value.substr(colon + 1));
  return pause || store::IsAgentName(value);
}

bool ValidValue(std::string_view kind, const std::string& value) {
  if (kind == "call_id" || kind == "session_id" || kind == "process_id") {
    return IsId(value);
  }
  if (kind == "tool") {
    return policy::IsToolName(value);
  }
  if (kind == "scope") {
    return FindScope(value).has_value();
  }
  if (kind == "path") {
    return IsFilePath(value);
  }
  if (kind == "hash") {
    return IsHash(value);
  }
  if (kind == "name") {
    return IsSwitchName(value);
  }
  return (kind == "key_id" || kind == "access_id") && IsName(value);
}

bool Listed(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == name) {
      return true;
    }
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
  return false;
}

}  // namespace

std::string RouteAccess::Names() const {
  std::string names;
  for (const Role role : {Role::kAgent, Role::kApprover, Role::kOperator, Role::kAuditor}) {
    if (Allows(role)) {
      names += (names.empty() ? "" : ", ") + std::string(RoleName(role));
    }
  }
  return names;
}

Match FindRoute(std::span<const Route> routes, Method method, std::string_view path) {
  const Method wanted = method == Method::kHead ? Method::kGet : method;
  Match match;
  Values values;
  for (const Route& route : routes) {
    if (!Matches(route.path, path, &values)) {
      continue;
    }
    if (route.method == wanted) {
      match.route = &route;
      match.raw = std::move(values);
      return match;
    }
    match.allow += (match.allow.empty() ? "" : ", ") + std::string(MethodName(route.method));
    if (route.method == Method::kGet) {
      match.allow += ", HEAD";
    }
  }
  return match;
}

Answer<Values> CheckValues(const Values& raw) {
  Values values;
  for (const auto& [kind, text] : raw) {
    std::optional<std::string> decoded = PercentDecode(text);
    if (!decoded.has_value() || !ValidValue(kind, *decoded)) {
      return Refusal{.kind = RefusalKind::kInvalid,
                     .code = "path.invalid",
                     .message = "the path does not hold a proper " + std::string(kind)};
    }
    values.emplace_back(kind, std::move(*decoded));
  }
  return values;
}

namespace {

// Names the parameter, and what the path takes: the table's own words.
Refusal UnknownParameter(std::string_view name, std::string_view known) {
  std::vector<std::string_view> names;
  std::string shown;
  for (std::string_view rest = known; !rest.empty();) {
    const size_t comma = rest.find(',');
    names.push_back(rest.substr(0, comma));
    shown += (shown.empty() ? "" : ", ") + std::string(names.back());
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  const std::string_view nearest = policy::NearestWord(name, names);
  Refusal refusal{.kind = RefusalKind::kInvalid, .code = "query.invalid"};
  refusal.message = name.empty() ? "a query parameter without a name"
                                 : "this path takes no query parameter " + Printable(name);
  refusal.hint = !nearest.empty() ? "did you mean " + std::string(nearest) + "?"
                 : names.empty()  ? "it takes none"
                                  : "it takes " + shown;
  return refusal;
}

}  // namespace

Answer<Values> ParseQuery(std::string_view query, std::string_view known) {
  Values values;
  const auto refused = [](std::string message) {
    return Refusal{
        .kind = RefusalKind::kInvalid, .code = "query.invalid", .message = std::move(message)};
  };
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view{} : query.substr(end + 1);
    const size_t equals = pair.find('=');
    const std::string_view name = pair.substr(0, equals);
    if (name.empty() || !Listed(known, name)) {
      return UnknownParameter(name, known);
    }
    const auto same = [&](const auto& value) { return value.first == name; };
    if (equals == std::string_view::npos || std::any_of(values.begin(), values.end(), same)) {
      return refused("the query parameter " + std::string(name) +
                     (equals == std::string_view::npos ? " has no value" : " is given twice"));
    }
    std::optional<std::string> value = PercentDecode(pair.substr(equals + 1));
    if (!value.has_value() || !IsUtf8(*value)) {
      return refused("the query parameter " + std::string(name) + " is not UTF-8");
    }
    values.emplace_back(name, std::move(*value));
  }
  return values;
}

}  // namespace coffer::gateway
