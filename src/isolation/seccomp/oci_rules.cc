// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/oci_rules.h"

#include <string.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"

namespace coffer::isolation {
namespace {

constexpr size_t kMaxText = 1 << 20;
constexpr size_t kMaxSyscallName = 64;
constexpr size_t kMaxOciArguments = 6;
constexpr int64_t kMaxErrno = 4095;

// Foreign text, short and printable, in quotes.
std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text.substr(0, 40)) {
    quoted += c >= ' ' && c < 0x7f && c != '"' ? c : '?';
  }
  return quoted + (text.size() > 40 ? "...\"" : "\"");
}

Error Bad(std::string message, std::string hint = {}) {
  return Refused("seccomp.import", "seccomp profile: " + std::move(message), std::move(hint));
}

Status CheckKeys(const Json& object, std::initializer_list<std::string_view> known,
                 std::string_view where) {
  if (!object.is_object()) {
    return Bad(std::string(where) + " is not an object");
  }
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return Bad("unknown key " + Quote(key) + " in " + std::string(where));
    }
  }
  return {};
}

// The member, or nothing if it is missing or null (which is how Go writes an empty list).
const Json* Member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

Result<std::string> Text(const Json& value, std::string_view what) {
  if (!value.is_string()) {
    return Bad(std::string(what) + " is not a string");
  }
  return value.get<std::string>();
}

Result<std::vector<std::string>> Texts(const Json* value, std::string_view what) {
  std::vector<std::string> texts;
  if (value == nullptr) {
    return texts;
  }
  if (!value->is_array()) {
    return Bad(std::string(what) + " is not a list");
  }
  for (const Json& item : *value) {
    TRY_ASSIGN(std::string text, Text(item, std::string("an item of ") + std::string(what)));
    texts.push_back(std::move(text));
  }
  return texts;
}

Result<uint64_t> Number(const Json& object, const char* key, uint64_t missing) {
  const Json* value = Member(object, key);
  if (value == nullptr) {
    return missing;
  }
  if (!value->is_number_unsigned()) {
    return Bad(std::string(key) + " is not a whole number from 0 to 2^64-1");
  }
  return value->get<uint64_t>();
}

// `number_key` holds the errno, `name_key` may repeat it by name (Podman writes both).
Result<int> ErrnoOf(const Json& object, const char* number_key, const char* name_key) {
  TRY_ASSIGN(const uint64_t number, Number(object, number_key, 0));
  const bool given = Member(object, number_key) != nullptr;
  if (given && (number == 0 || number > kMaxErrno)) {
    return Bad(std::string(number_key) + " is not an error number from 1 to 4095",
               "0 would make a refused call look as if it had worked");
  }
  int named = 0;
  if (const Json* value = Member(object, name_key); value != nullptr) {
    TRY_ASSIGN(const std::string name, Text(*value, name_key));
    constexpr int kLastErrno = 133;  // EHWPOISON
    for (int candidate = 1; candidate <= kLastErrno && named == 0; ++candidate) {
      const char* text = ::strerrorname_np(candidate);
      named = text != nullptr && name == text ? candidate : 0;
    }
    if (named == 0) {
      return Bad("unknown error name " + Quote(name) + " in " + name_key);
    }
    if (given && static_cast<uint64_t>(named) != number) {
      return Bad(std::string(name_key) + " and " + number_key + " disagree");
    }
  }
  return named != 0 ? named : given ? static_cast<int>(number) : EPERM;
}

Result<Action> ActionOf(const Json& object, const char* key, int error) {
  const Json* value = Member(object, key);
  if (value == nullptr) {
    return Bad(std::string(key) + " is missing");
  }
  TRY_ASSIGN(const std::string name, Text(*value, key));
  if (name == "SCMP_ACT_ALLOW" || name == "SCMP_ACT_LOG") {
    return kAllow;
  }
  if (name == "SCMP_ACT_ERRNO") {
    return error == EPERM ? kNotify : FailWith(error);
  }
  if (name == "SCMP_ACT_NOTIFY") {
    return kNotify;
  }
  if (name == "SCMP_ACT_TRACE") {
    return FailWith(ENOSYS);
  }
  if (name == "SCMP_ACT_KILL" || name == "SCMP_ACT_KILL_THREAD" ||
      name == "SCMP_ACT_KILL_PROCESS" || name == "SCMP_ACT_TRAP") {
    return kKill;
  }
  return Bad("unknown action " + Quote(name));
}

Result<Condition> ConditionOf(const Json& argument) {
  TRY(CheckKeys(argument, {"index", "value", "valueTwo", "op"}, "args"));
  TRY_ASSIGN(const uint64_t index, Number(argument, "index", kMaxOciArguments));
  TRY_ASSIGN(const uint64_t value, Number(argument, "value", 0));
  TRY_ASSIGN(const uint64_t value_two, Number(argument, "valueTwo", 0));
  if (index >= kMaxOciArguments) {
    return Bad("an argument's index is missing or not from 0 to 5");
  }
  const Json* op = Member(argument, "op");
  if (op == nullptr) {
    return Bad("op is missing in args");
  }
  TRY_ASSIGN(const std::string name, Text(*op, "op"));
  const auto arg = static_cast<uint8_t>(index);
  if (name == "SCMP_CMP_MASKED_EQ") {
    return Condition{arg, Compare::kEqual, value_two, value};
  }
  constexpr std::pair<std::string_view, Compare> kOperators[] = {
      {"SCMP_CMP_EQ", Compare::kEqual},   {"SCMP_CMP_NE", Compare::kNotEqual},
      {"SCMP_CMP_LT", Compare::kLess},    {"SCMP_CMP_LE", Compare::kLessEqual},
      {"SCMP_CMP_GT", Compare::kGreater}, {"SCMP_CMP_GE", Compare::kGreaterEqual},
  };
  for (const auto& [known, compare] : kOperators) {
    if (name == known) {
      return Condition{arg, compare, value, kWholeArgument};
    }
  }
  return Bad("unknown operator " + Quote(name));
}

Result<std::vector<Condition>> ConditionsOf(const Json* arguments) {
  std::vector<Condition> conditions;
  if (arguments == nullptr) {
    return conditions;
  }
  if (!arguments->is_array() || arguments->size() > kMaxOciArguments) {
    return Bad("args is not a list of at most 6 conditions");
  }
  for (const Json& argument : *arguments) {
    TRY_ASSIGN(const Condition condition, ConditionOf(argument));
    for (const Condition& other : conditions) {
      if (other.arg == condition.arg) {
        return Bad("two conditions on argument " + std::to_string(condition.arg) + " in one rule",
                   "runtimes disagree whether that means both or either; write two rules");
      }
    }
    conditions.push_back(condition);
  }
  return conditions;
}

// "4.8"
Result<std::pair<int, int>> KernelVersion(const std::string& text) {
  int major = 0;
  int minor = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, major);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '.') {
    const auto second = std::from_chars(first.ptr + 1, end, minor);
    if (second.ec == std::errc() && second.ptr == end && major >= 0 && minor >= 0) {
      return std::pair(major, minor);
    }
  }
  return Bad("minKernel is not a version like 4.8");
}

// Whether an "includes" or "excludes" object applies. A boundary has no capability, so a list of them never holds.
enum class Filter : uint8_t { kIncludes, kExcludes };
Result<bool> Holds(const Json* filter, Filter kind, const ImportContext& context) {
  const bool includes = kind == Filter::kIncludes;
  if (filter == nullptr) {
    return includes;
  }
  TRY(CheckKeys(*filter, {"arches", "caps", "minKernel"}, includes ? "includes" : "excludes"));
  TRY_ASSIGN(const std::vector<std::string> arches, Texts(Member(*filter, "arches"), "arches"));
  TRY_ASSIGN(const std::vector<std::string> caps, Texts(Member(*filter, "caps"), "caps"));
  const bool arch = std::find(arches.begin(), arches.end(), context.arch) != arches.end();
  bool new_enough = false;
  const Json* min_kernel = Member(*filter, "minKernel");
  if (min_kernel != nullptr) {
    TRY_ASSIGN(const std::string text, Text(*min_kernel, "minKernel"));
    TRY_ASSIGN(const auto version, KernelVersion(text));
    new_enough = std::pair(context.kernel_major, context.kernel_minor) >= version;
  }
  if (includes) {  // all that is named must hold
    return (arches.empty() || arch) && caps.empty() && (min_kernel == nullptr || new_enough);
  }
  return arch || new_enough;  // any of them is enough
}

Status CheckArchitectures(const Json& root, const ImportContext& context) {
  TRY_ASSIGN(std::vector<std::string> names, Texts(Member(root, "architectures"), "architectures"));
  if (const Json* map = Member(root, "archMap"); map != nullptr) {
    if (!names.empty()) {
      return Bad("both architectures and archMap are given");
    }
    if (!map->is_array()) {
      return Bad("archMap is not a list");
    }
    for (const Json& entry : *map) {
      TRY(CheckKeys(entry, {"architecture", "subArchitectures"}, "archMap"));
      TRY(Texts(Member(entry, "subArchitectures"), "subArchitectures"));
      const Json* name = Member(entry, "architecture");
      if (name == nullptr) {
        return Bad("an entry of archMap has no architecture");
      }
      TRY_ASSIGN(std::string text, Text(*name, "architecture"));
      names.push_back(std::move(text));
    }
  }
  const std::string_view native =
      context.arch == "arm64" ? "SCMP_ARCH_AARCH64" : "SCMP_ARCH_X86_64";
  for (const std::string& name : names) {
    if (name.rfind("SCMP_ARCH_", 0) != 0) {
      return Bad("unknown architecture " + Quote(name));
    }
  }
  if (!names.empty() && std::find(names.begin(), names.end(), native) == names.end()) {
    return Bad("it is not for this architecture",
               "add " + std::string(native) + " to its architectures");
  }
  return {};
}

static_assert(ActionKind::kAllow < ActionKind::kNotify &&
              ActionKind::kNotify < ActionKind::kErrno && ActionKind::kErrno < ActionKind::kKill);
bool IsStricter(const Rule& a, const Rule& b) { return a.action.kind > b.action.kind; }

Status AddEntry(const Json& entry, const ImportContext& context, OciRules* rules, size_t* count) {
  TRY(CheckKeys(
      entry,
      {"names", "name", "action", "errnoRet", "errno", "args", "comment", "includes", "excludes"},
      "syscalls"));
  TRY_ASSIGN(std::vector<std::string> names, Texts(Member(entry, "names"), "names"));
  if (const Json* name = Member(entry, "name"); name != nullptr) {
    if (!names.empty()) {
      return Bad("both name and names are given");
    }
    TRY_ASSIGN(std::string text, Text(*name, "name"));
    names.push_back(std::move(text));
  }
  if (names.empty()) {
    return Bad("an entry of syscalls names no system call");
  }
  TRY_ASSIGN(const int error, ErrnoOf(entry, "errnoRet", "errno"));
  TRY_ASSIGN(const Action action, ActionOf(entry, "action", error));
  TRY_ASSIGN(const std::vector<Condition> conditions, ConditionsOf(Member(entry, "args")));
  TRY_ASSIGN(const bool included, Holds(Member(entry, "includes"), Filter::kIncludes, context));
  TRY_ASSIGN(const bool excluded, Holds(Member(entry, "excludes"), Filter::kExcludes, context));
  for (std::string& name : names) {
    const bool plain = !name.empty() && name.size() <= kMaxSyscallName &&
                       std::all_of(name.begin(), name.end(), [](char c) {
                         return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                (c >= '0' && c <= '9') || c == '_';
                       });
    if (!plain) {
      return Bad(Quote(name) + " is not the name of a system call");
    }
    if (++*count > kMaxOciRules) {
      return Bad("more than 16384 rules");
    }
    if (included && !excluded) {
      Rule rule{name, action, conditions};
      std::vector<Rule>& list = rules->by_name[name];
      list.insert(std::upper_bound(list.begin(), list.end(), rule, IsStricter), std::move(rule));
    }
  }
  return {};
}

}  // namespace

Result<OciRules> ReadOciRules(std::string_view json, const ImportContext& context) {
  if (json.size() > kMaxText) {
    return Bad("larger than 1 MiB");
  }
  TRY_ASSIGN(const Json root, ParseJson(json));
  TRY(CheckKeys(root,
                {"defaultAction", "defaultErrnoRet", "defaultErrno", "architectures", "archMap",
                 "flags", "syscalls"},
                "the profile"));
  TRY_ASSIGN(const int error, ErrnoOf(root, "defaultErrnoRet", "defaultErrno"));
  OciRules rules;
  TRY_ASSIGN(rules.fallback, ActionOf(root, "defaultAction", error));
  TRY(CheckArchitectures(root, context));
  TRY_ASSIGN(const std::vector<std::string> flags, Texts(Member(root, "flags"), "flags"));
  for (const std::string& flag : flags) {  // how to install it, which we decide ourselves
    if (flag.rfind("SECCOMP_FILTER_FLAG_", 0) != 0) {
      return Bad("unknown flag " + Quote(flag));
    }
  }
  size_t count = 0;
  if (const Json* syscalls = Member(root, "syscalls"); syscalls != nullptr) {
    if (!syscalls->is_array()) {
      return Bad("syscalls is not a list");
    }
    for (const Json& entry : *syscalls) {
      TRY(AddEntry(entry, context, &rules, &count));
    }
  }
  return rules;
}

}  // namespace coffer::isolation
