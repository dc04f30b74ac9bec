// SPDX-License-Identifier: Apache-2.0
#include "policy/schema/value.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/utf8.h"
#include "policy/schema/number.h"

namespace coffer::policy {
namespace {

void AppendText(char kind, std::string_view text, std::string& out) {
  out += kind;
  out += std::to_string(text.size());
  out += ':';
  out += text;
}

void AppendCanonical(const Json& value, std::string& out) {
  switch (value.type()) {
    case Json::value_t::null:
      out += 'n';
      break;
    case Json::value_t::boolean:
      out += value.get<bool>() ? 't' : 'f';
      break;
    case Json::value_t::string:
      AppendText('s', value.get_ref<const std::string&>(), out);
      break;
    case Json::value_t::array:
      out += '[';
      for (const Json& item : value) {
        AppendCanonical(item, out);
      }
      out += ']';
      break;
    case Json::value_t::object: {
      std::vector<std::pair<std::string_view, const Json*>> members;
      for (const auto& [name, member] : value.get_ref<const Json::object_t&>()) {
        members.emplace_back(name, &member);
      }
      std::sort(members.begin(), members.end());
      out += '{';
      for (const auto& [name, member] : members) {
        AppendText('k', name, out);
        AppendCanonical(*member, out);
      }
      out += '}';
      break;
    }
    default:
      AppendText('#', Number(value).ToText(), out);
  }
}

}  // namespace

std::string CanonicalText(const Json& value) {
  std::string out;
  AppendCanonical(value, out);
  return out;
}

size_t CodePoints(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

namespace {

class Measurer {
 public:
  Measurer(int max_depth, Extent most) : max_depth_(max_depth), most_(most) {}

  Misfit Visit(const Json& value, int depth) {
    if (++extent_.values > most_.values) {
      return Misfit::kTooManyValues;
    }
    if (value.is_structured() && depth > max_depth_) {
      return Misfit::kTooDeep;
    }
    switch (value.type()) {
      case Json::value_t::string:
        return Text(value.get_ref<const std::string&>());
      case Json::value_t::number_float:
        return std::isfinite(value.get<double>()) ? Misfit::kNone : Misfit::kNotFinite;
      case Json::value_t::binary:
      case Json::value_t::discarded:
        return Misfit::kNotJson;
      case Json::value_t::array:
        for (const Json& item : value) {
          if (const Misfit misfit = Visit(item, depth + 1); misfit != Misfit::kNone) {
            return misfit;
          }
        }
        return Misfit::kNone;
      case Json::value_t::object:
        for (const auto& [name, member] : value.get_ref<const Json::object_t&>()) {
          Misfit misfit = Text(name);
          misfit = misfit == Misfit::kNone ? Visit(member, depth + 1) : misfit;
          if (misfit != Misfit::kNone) {
            return misfit;
          }
        }
        return Misfit::kNone;
      default:
        return Misfit::kNone;
    }
  }
  const Extent& extent() const { return extent_; }

 private:
  Misfit Text(std::string_view text) {
    extent_.bytes += text.size();
    if (extent_.bytes > most_.bytes) {
      return Misfit::kTooManyBytes;
    }
    return IsUtf8(text) ? Misfit::kNone : Misfit::kNotUtf8;
  }

  int max_depth_;
  Extent most_;
  Extent extent_;
};

}  // namespace

Measured Measure(const Json& value, int max_depth, Extent most) {
  Measurer measurer(max_depth, most);
  const Misfit misfit = measurer.Visit(value, 1);
  return {misfit, measurer.extent()};
}

std::string_view MisfitText(Misfit misfit) {
  switch (misfit) {
    case Misfit::kTooDeep:
      return "is nested too deeply";
    case Misfit::kTooManyValues:
      return "holds too many values";
    case Misfit::kTooManyBytes:
      return "holds too much text";
    case Misfit::kNotUtf8:
      return "holds text that is not UTF-8";
    case Misfit::kNotFinite:
      return "holds a number that JSON does not have (not finite)";
    case Misfit::kNotJson:
      return "holds something that JSON does not have";
    case Misfit::kNone:
      break;
  }
  return "is fine";
}

std::string PointerStep(std::string_view base, std::string_view name) {
  std::string pointer(base);
  pointer += '/';
  for (const char c : name) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
  return pointer;
}

std::string PointerStep(std::string_view base, size_t index) {
  return std::string(base) + '/' + std::to_string(index);
}

}  // namespace coffer::policy
