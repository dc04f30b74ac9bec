// SPDX-License-Identifier: Apache-2.0
#include "call/verb_flags.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys.h"
#include "base/text.h"
#include "isolation/host_path.h"
#include "policy/manifest/mistake.h"

namespace coffer::call {
namespace {

constexpr FlagSpec kCommon[] = {
    {"--state", true}, {"--tools", true}, {"--json", false}, {"--help", false}, {"-h", false}};

const FlagSpec* Find(std::string_view name, std::span<const FlagSpec> specs) {
  const auto found = std::find_if(specs.begin(), specs.end(),
                                  [&](const FlagSpec& spec) { return spec.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

Error UnknownFlag(std::string_view verb, std::string_view name, std::span<const FlagSpec> specs) {
  std::vector<std::string_view> known;
  for (const FlagSpec& spec : specs) {
    known.push_back(spec.name);
  }
  for (const FlagSpec& spec : kCommon) {
    known.push_back(spec.name);
  }
  const std::string_view nearest = policy::NearestWord(name, known);
  return Refused("policy.usage", fmt::format("coffer {} has no flag {}", verb, Printable(name)),
                 nearest.empty() ? fmt::format("`coffer {} --help` lists them", verb)
                                 : fmt::format("did you mean {}?", nearest));
}

}  // namespace

Result<VerbFlags> VerbFlags::Parse(std::string_view verb, std::span<const std::string_view> words,
                                   std::span<const FlagSpec> specs) {
  VerbFlags flags;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--") {
      flags.rest_.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (word.size() < 2 || word.front() != '-') {
      flags.words_.emplace_back(word);
      continue;
    }
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const FlagSpec* spec = Find(name, specs);
    spec = spec == nullptr ? Find(name, kCommon) : spec;
    if (spec == nullptr) {
      return UnknownFlag(verb, name, specs);
    }
    if (!spec->takes_value) {
      if (equals != std::string_view::npos) {
        return Refused("policy.usage", fmt::format("{} takes no value", name));
      }
      flags.flags_[std::string(name)].emplace_back();
      continue;
    }
    if (equals == std::string_view::npos && i + 1 == words.size()) {
      return Refused("policy.usage", fmt::format("{} needs a value", name));
    }
    flags.flags_[std::string(name)].emplace_back(
        equals == std::string_view::npos ? words[++i] : word.substr(equals + 1));
  }
  return flags;
}

bool VerbFlags::Has(std::string_view name) const { return flags_.find(name) != flags_.end(); }

std::string VerbFlags::Value(std::string_view name, std::string_view otherwise) const {
  const auto found = flags_.find(name);
  return found == flags_.end() ? std::string(otherwise) : found->second.back();
}

std::vector<std::string> VerbFlags::Values(std::string_view name) const {
  const auto found = flags_.find(name);
  return found == flags_.end() ? std::vector<std::string>() : found->second;
}

Result<std::string> VerbFlags::StateDir() const {
  const std::string given = Value("--state", UsualStateDir());
  if (given.empty()) {
    return Refused("policy.state", "there is no place for a state directory",
                   "name one with --state DIR or COFFER_STATE");
  }
  return isolation::CleanPath(given);
}

Result<std::vector<std::string>> VerbFlags::NamedToolDirs() const {
  std::vector<std::string> given = Values("--tools");
  if (given.empty()) {
    given = UsualToolDirs();
  }
  for (std::string& dir : given) {
    TRY_ASSIGN(dir, isolation::CleanPath(dir));
  }
  return given;
}

Result<std::vector<std::string>> VerbFlags::ToolDirs() const {
  TRY_ASSIGN(std::vector<std::string> named, NamedToolDirs());
  if (!named.empty()) {
    return named;
  }
  TRY_ASSIGN(const std::string state, StateDir());
  TRY(CheckNotInState(state, "tools"));
  TRY_ASSIGN(std::string usual, UsualToolDir());
  const Result<bool> there = usual.empty() ? Result<bool>(false) : sys::Exists(usual);
  if (there.ok() && *there) {
    named.push_back(std::move(usual));
  }
  return named;
}

Result<std::string> VerbFlags::ConfigFile() const {
  if (Has("--config")) {
    return isolation::CleanPath(Value("--config"));
  }
  TRY_ASSIGN(const std::string state, StateDir());
  TRY(CheckNotInState(state, "coffer.toml"));
  const std::string usual = UsualConfigDir();
  return usual.empty() ? Result<std::string>(std::string())
                       : isolation::CleanPath(usual + "/coffer.toml");
}

}  // namespace coffer::call
