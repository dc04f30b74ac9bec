// SPDX-License-Identifier: Apache-2.0
#include "tests/support/export_rules.h"

#include <map>
#include <set>

namespace coffer::test {
namespace {

using Problems = std::vector<std::string>;

class Checker {
 public:
  void Need(bool good, const std::string& what) {
    if (!good) {
      problems_.push_back(what);
    }
  }
  // Only the format's own field names, in lowerCamelCase: a collector throws unknown ones away, silently.
  void Only(const Json& object, const std::set<std::string>& names, const std::string& where) {
    if (!object.is_object()) {
      problems_.push_back(where + " is not an object");
      return;
    }
    for (const auto& [name, value] : object.items()) {
      Need(names.contains(name), where + " has no field " + name);
    }
  }
  void Hex(const Json& object, const char* name, size_t digits, bool required) {
    if (!object.contains(name)) {
      Need(!required, std::string(name) + " is missing");
      return;
    }
    const std::string text = object[name].is_string() ? object[name].get<std::string>() : "";
    Need(text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string::npos &&
             text.find_first_not_of('0') != std::string::npos,
         std::string(name) + " is not " + std::to_string(digits) + " hex digits");
  }
  // fixed64 and int64 are strings of digits in proto3's JSON.
  uint64_t Number(const Json& object, const char* name) {
    const std::string text =
        object.contains(name) && object[name].is_string() ? object[name].get<std::string>() : "";
    const bool good = !text.empty() && text.size() <= 20 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
    Need(good, std::string(name) + " is not a decimal string");
    return good ? std::stoull(text) : 0;
  }
  void Attributes(const Json& object, const std::string& where) {
    if (!object.contains("attributes")) {
      return;
    }
    std::set<std::string> seen;
    for (const Json& one : object["attributes"]) {
      Only(one, {"key", "value"}, where + ".attributes");
      const std::string key = one.value("key", "");
      Need(!key.empty(), where + " has an attribute without a key");
      Need(seen.insert(key).second, where + " has " + key + " twice");
      Value(one.contains("value") ? one["value"] : Json(), where + "." + key);
    }
  }
  void Value(const Json& value, const std::string& where) {
    if (!value.is_object() || value.size() != 1) {
      problems_.push_back(where + " is not one AnyValue");
      return;
    }
    const auto member = value.begin();
    const std::string& kind = member.key();
    const Json& inner = member.value();
    if (kind == "arrayValue") {
      Only(inner, {"values"}, where);
      for (const Json& one : inner.value("values", Json::array())) {
        Value(one, where);
      }
      return;
    }
    const bool good =
        (kind == "stringValue" && inner.is_string()) ||
        (kind == "boolValue" && inner.is_boolean()) ||
        (kind == "doubleValue" && inner.is_number()) ||
        (kind == "intValue" && inner.is_string() &&
         inner.get<std::string>().find_first_not_of("-0123456789") == std::string::npos);
    Need(good, where + " has a value of the wrong type: " + kind);
  }
  void Span(const Json& span) {
    Only(span,
         {"traceId", "spanId", "traceState", "parentSpanId", "flags", "name", "kind",
          "startTimeUnixNano", "endTimeUnixNano", "attributes", "droppedAttributesCount", "events",
          "droppedEventsCount", "links", "droppedLinksCount", "status"},
         "span");
    Hex(span, "traceId", 32, true);
    Hex(span, "spanId", 16, true);
    Hex(span, "parentSpanId", 16, false);
    Need(span.contains("name") && span["name"].is_string() && !span["name"].empty(), "no name");
    Need(span.contains("kind") && span["kind"].is_number_integer() && span["kind"] >= 0 &&
             span["kind"] <= 5,
         "kind is not a SpanKind");
    const uint64_t begin = Number(span, "startTimeUnixNano");
    const uint64_t end = Number(span, "endTimeUnixNano");
    Need(begin <= end, "it ends before it begins");
    Need(begin > 1'500'000'000'000'000'000, "startTimeUnixNano is not in nanoseconds");
    Attributes(span, "span");
    for (const Json& event : span.value("events", Json::array())) {
      Only(event, {"timeUnixNano", "name", "attributes", "droppedAttributesCount"}, "event");
      const uint64_t at = Number(event, "timeUnixNano");
      Need(at >= begin && at <= end, "an event lies outside its span");
      Need(event.contains("name") && event["name"].is_string(), "an event without a name");
      Attributes(event, "event");
    }
    for (const Json& link : span.value("links", Json::array())) {
      Only(link,
           {"traceId", "spanId", "traceState", "attributes", "droppedAttributesCount", "flags"},
           "link");
      Hex(link, "traceId", 32, true);
      Hex(link, "spanId", 16, true);
    }
    if (span.contains("status")) {
      Only(span["status"], {"message", "code"}, "status");
      const Json code = span["status"].value("code", Json(0));
      Need(code.is_number_integer() && code >= 0 && code <= 2, "status.code is not a StatusCode");
    }
  }
  Problems Take() { return std::move(problems_); }

 private:
  Problems problems_;
};

// A field by its dotted path, or null.
Json At(const Json& json, const std::string& path) {
  const size_t dot = path.find('.');
  const std::string head = path.substr(0, dot);
  if (!json.is_object() || !json.contains(head)) {
    return nullptr;
  }
  return dot == std::string::npos ? json[head] : At(json[head], path.substr(dot + 1));
}

// What each class demands, and of which type: i integer, s string, o object.
using Required = std::vector<std::pair<const char*, char>>;
const Required kEveryClass = {{"activity_id", 'i'},
                              {"category_uid", 'i'},
                              {"class_uid", 'i'},
                              {"severity_id", 'i'},
                              {"time", 'i'},
                              {"type_uid", 'i'},
                              {"metadata", 'o'},
                              {"metadata.version", 's'},
                              {"metadata.product", 'o'},
                              {"metadata.product.vendor_name", 's'},
                              {"action_id", 'i'},
                              {"disposition_id", 'i'}};
const std::map<int, Required> kOfClass = {
    {6003,
     {{"actor", 'o'},
      {"api", 'o'},
      {"api.operation", 's'},
      {"src_endpoint", 'o'},
      {"status_id", 'i'}}},
    {2004, {{"finding_info", 'o'}, {"finding_info.uid", 's'}, {"finding_info.title", 's'}}}};
const std::map<int, std::set<int>> kActivities = {{6003, {0, 1, 2, 3, 4, 99}},
                                                  {2004, {0, 1, 2, 3, 99}}};

void NeedAll(const Json& event, const Required& required, Checker& checker) {
  for (const auto& [path, type] : required) {
    const Json value = At(event, path);
    const bool good = type == 'i'   ? value.is_number_integer()
                      : type == 's' ? value.is_string() && !value.get<std::string>().empty()
                                    : value.is_object() && !value.empty();
    checker.Need(good, std::string(path) + " is missing or of the wrong type");
  }
}

}  // namespace

std::vector<Json> SpansOf(const Json& request) {
  std::vector<Json> spans;
  for (const Json& resource : request.value("resourceSpans", Json::array())) {
    for (const Json& scope : resource.value("scopeSpans", Json::array())) {
      for (const Json& span : scope.value("spans", Json::array())) {
        spans.push_back(span);
      }
    }
  }
  return spans;
}

std::string AttributeOf(const Json& span, const std::string& key) {
  for (const Json& one : span.value("attributes", Json::array())) {
    if (one.value("key", "") == key) {
      const Json& value = *one["value"].begin();
      return value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
  return "";
}

std::vector<std::string> CheckOtlp(const Json& request) {
  Checker checker;
  checker.Only(request, {"resourceSpans"}, "request");
  for (const Json& resource : request.value("resourceSpans", Json::array())) {
    checker.Only(resource, {"resource", "scopeSpans", "schemaUrl"}, "resourceSpans");
    checker.Only(resource.value("resource", Json()), {"attributes", "droppedAttributesCount"},
                 "resource");
    checker.Attributes(resource.value("resource", Json::object()), "resource");
    for (const Json& scope : resource.value("scopeSpans", Json::array())) {
      checker.Only(scope, {"scope", "spans", "schemaUrl"}, "scopeSpans");
      checker.Only(scope.value("scope", Json()),
                   {"name", "version", "attributes", "droppedAttributesCount"}, "scope");
    }
  }
  const std::vector<Json> spans = SpansOf(request);
  checker.Need(!spans.empty(), "there is no span");
  std::set<std::string> ids;
  for (const Json& span : spans) {
    checker.Span(span);
    checker.Need(ids.insert(span.value("spanId", "")).second, "two spans have one id");
  }
  return checker.Take();
}

std::vector<std::string> CheckOcsf(const Json& event) {
  Checker checker;
  NeedAll(event, kEveryClass, checker);
  const int kind = event.value("class_uid", 0);
  const int activity = event.value("activity_id", -1);
  const auto found = kOfClass.find(kind);
  if (found == kOfClass.end()) {
    checker.Need(false, "an unknown class");
    return checker.Take();
  }
  NeedAll(event, found->second, checker);
  checker.Need(kActivities.at(kind).contains(activity), "the class has no such activity");
  checker.Need(event.value("type_uid", 0) == kind * 100 + activity, "type_uid does not fit");
  checker.Need(event.value("category_uid", 0) == kind / 1000, "category_uid does not fit");
  const int severity = event.value("severity_id", -1);
  checker.Need((severity >= 0 && severity <= 6) || severity == 99, "no such severity");
  const int action = event.value("action_id", -1);
  checker.Need((action >= 0 && action <= 4) || action == 99, "no such action");
  const int disposition = event.value("disposition_id", -1);
  checker.Need((disposition >= 0 && disposition <= 27) || disposition == 99, "no such disposition");
  const int64_t time = event.value("time", int64_t{0});
  checker.Need(time > 1'500'000'000'000 && time < 15'000'000'000'000,
               "time is not in milliseconds");
  return checker.Take();
}

std::vector<std::string> CheckCloudEvent(const Json& event) {
  Checker checker;
  for (const char* const name : {"id", "source", "type"}) {
    checker.Need(
        event.contains(name) && event[name].is_string() && !event[name].get<std::string>().empty(),
        std::string(name) + " is missing");
  }
  checker.Need(event.value("specversion", "") == "1.0", "specversion is not 1.0");
  checker.Need(event.value("type", "").starts_with("io.cofferdam."), "type is not ours");
  for (const auto& [name, value] : event.items()) {
    checker.Need(name == "data" || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") ==
                                       std::string::npos,
                 "an attribute may not be called " + name);
    checker.Need(
        name == "data" || value.is_string() || value.is_number_integer() || value.is_boolean(),
        name + " has a type that an attribute cannot have");
  }
  const std::string time = event.value("time", "2000-01-01T00:00:00Z");
  checker.Need(time.size() >= 20 && time[10] == 'T' && time.back() == 'Z', "time is not RFC 3339");
  checker.Need(!event.contains("data") || event.value("datacontenttype", "") == "application/json",
               "the data has no type");
  return checker.Take();
}

}  // namespace coffer::test
