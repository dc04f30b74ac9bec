// SPDX-License-Identifier: Apache-2.0
//
// The frame of a run: one node, its in-place applicators ($ref, allOf, anyOf, oneOf, not, if), what is left over.
#include "policy/schema/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "policy/schema/value.h"

namespace coffer::policy {
namespace {

constexpr size_t kMaxPointer = 512;

// Where an alternative got furthest into the value, it was probably meant.
size_t Depth(const SchemaRun::Errors& errors) {
  size_t deepest = 0;
  for (const SchemaError& error : errors) {
    deepest =
        std::max<size_t>(deepest, std::count(error.instance.begin(), error.instance.end(), '/'));
  }
  return deepest;
}

// Keeps the explanation of the alternative that came closest.
void KeepCloser(SchemaRun::Errors& best, SchemaRun::Errors&& candidate) {
  if (best.empty() || Depth(candidate) > Depth(best)) {
    best = std::move(candidate);
  }
}

void Append(SchemaRun::Errors& errors, const SchemaRun::Errors& more) {
  for (const SchemaError& error : more) {
    if (errors.size() < kMaxSchemaErrors) {
      errors.push_back(error);
    }
  }
}

}  // namespace

std::string SchemaPath::ToPointer() const {
  std::vector<const SchemaPath*> steps;
  for (const SchemaPath* step = this; step->up != nullptr; step = step->up) {
    steps.push_back(step);
  }
  std::string pointer;
  for (auto step = steps.rbegin(); step != steps.rend() && pointer.size() <= kMaxPointer; ++step) {
    pointer = (*step)->name.data() != nullptr
                  ? PointerStep(pointer, (*step)->name.substr(0, kMaxPointer))
                  : PointerStep(pointer, (*step)->index);
  }
  if (pointer.size() > kMaxPointer) {
    size_t end = kMaxPointer;
    while (end > 0 && (pointer[end] & 0xC0) == 0x80) {
      --end;  // not in the middle of a character
    }
    pointer.resize(end);
    pointer += "...";
  }
  return pointer;
}

void Evaluated::Merge(const Evaluated& other) {
  for (size_t i = 0; i < marks_.size(); ++i) {
    marks_[i] = marks_[i] || other.marks_[i];
  }
}

bool SchemaRun::Spend(uint64_t steps) {
  steps_ += std::min(steps, kMaxSchemaSteps + 1);
  spent_ = spent_ || steps_ > kMaxSchemaSteps;
  return !spent_;
}

bool SchemaRun::Found(const Pattern& pattern, std::string_view text) {
  constexpr uint64_t kWorkOfAStep = 16;
  const uint64_t left = kMaxSchemaSteps - std::min(steps_, kMaxSchemaSteps);
  const Pattern::Search search = pattern.Find(text, left * kWorkOfAStep);
  Spend(1 + search.work / kWorkOfAStep);
  spent_ = spent_ || !search.ended;
  return search.found && !spent_;
}

bool SchemaRun::Fail(const SchemaNode& node, std::string_view keyword, const SchemaPath& path,
                     Errors* errors, std::string message) {
  if (errors != nullptr && errors->size() < kMaxSchemaErrors) {
    errors->push_back({path.ToPointer(), PointerStep(node.location, keyword), std::move(message)});
  }
  return false;
}

bool SchemaRun::Check(const SchemaNode& node, const Json& value, const SchemaPath& path,
                      Evaluated* seen, Errors* errors) {
  if (!Spend(1)) {
    return false;
  }
  if (node.verdict) {
    if (!*node.verdict && errors != nullptr && errors->size() < kMaxSchemaErrors) {
      errors->push_back({path.ToPointer(), node.location, "is not allowed here"});
    }
    return *node.verdict;
  }
  if (frames_ == kMaxSchemaFrames) {
    spent_ = true;
    return false;
  }
  ++frames_;
  // Marks are kept apart until the node has passed: a failed subschema has evaluated nothing.
  const bool asks = value.is_object() ? node.unevaluated_properties != nullptr
                                      : value.is_array() && node.unevaluated_items != nullptr;
  std::optional<Evaluated> marks;
  if (asks || (seen != nullptr && value.is_structured())) {
    Spend(value.size() / 16);
    marks.emplace(value.size());
  }
  Evaluated* const mine = marks ? &*marks : nullptr;

  bool valid = Values(node, value, path, errors);
  const auto also = [&](bool passed) {
    valid = passed && valid;
    return valid || (errors != nullptr && !spent_);
  };
  // A value of the wrong type would only draw more complaints about the same.
  if (valid) {
    bool go_on = true;
    if (value.is_number() && node.number) {
      go_on = also(Numbers(node, value, path, errors));
    } else if (value.is_string() && node.string) {
      go_on = also(Strings(node, value, path, errors));
    } else if (value.is_array() && node.array) {
      go_on = also(Items(node, value, path, mine, errors));
    } else if (value.is_object() && node.object) {
      go_on = also(Members(node, value, path, mine, errors));
    }
    if (go_on && also(InPlace(node, value, path, mine, errors)) && asks && valid) {
      also(Unevaluated(node, value, path, *marks, errors));
    }
  }
  --frames_;
  if (valid && seen != nullptr && marks) {
    seen->Merge(*marks);
  }
  return valid && !spent_;
}

bool SchemaRun::InPlace(const SchemaNode& node, const Json& value, const SchemaPath& path,
                        Evaluated* seen, Errors* errors) {
  bool valid = true;
  const auto also = [&](bool passed) {
    valid = passed && valid;
    return valid || (errors != nullptr && !spent_);
  };
  if (node.ref != nullptr && !also(Check(*node.ref, value, path, seen, errors))) {
    return false;
  }
  for (const SchemaNode* part : node.all_of) {
    if (!also(Check(*part, value, path, seen, errors))) {
      return false;
    }
  }
  if (!node.any_of.empty() && !also(AnyOf(node, value, path, seen, errors))) {
    return false;
  }
  if (!node.one_of.empty() && !also(OneOf(node, value, path, seen, errors))) {
    return false;
  }
  if (node.not_ != nullptr && Check(*node.not_, value, path, nullptr, nullptr) &&
      !also(Fail(node, "not", path, errors, "matches what is excluded by \"not\""))) {
    return false;
  }
  if (node.if_ != nullptr) {
    const SchemaNode* const branch =
        Check(*node.if_, value, path, seen, nullptr) ? node.then_ : node.else_;
    if (branch != nullptr && !also(Check(*branch, value, path, seen, errors))) {
      return false;
    }
  }
  if (value.is_object() && !node.dependent.empty() &&
      !also(Present(node, value, path, seen, errors))) {
    return false;
  }
  return valid;
}

bool SchemaRun::AnyOf(const SchemaNode& node, const Json& value, const SchemaPath& path,
                      Evaluated* seen, Errors* errors) {
  bool valid = false;
  Errors closest;
  for (const SchemaNode* alternative : node.any_of) {
    Errors why;
    if (Check(*alternative, value, path, seen, errors != nullptr ? &why : nullptr)) {
      valid = true;
      if (seen == nullptr) {
        break;  // the others could only add marks
      }
    } else if (errors != nullptr) {
      KeepCloser(closest, std::move(why));
    }
    if (spent_) {
      return false;
    }
  }
  if (!valid && errors != nullptr) {
    Fail(node, "anyOf", path, errors,
         fmt::format("matches none of the {} alternatives; the closest fails as follows",
                     node.any_of.size()));
    Append(*errors, closest);
  }
  return valid;
}

bool SchemaRun::OneOf(const SchemaNode& node, const Json& value, const SchemaPath& path,
                      Evaluated* seen, Errors* errors) {
  const SchemaNode* first = nullptr;
  Errors closest;
  for (const SchemaNode* alternative : node.one_of) {
    Errors why;
    if (Check(*alternative, value, path, seen, errors != nullptr ? &why : nullptr)) {
      if (first != nullptr) {
        return Fail(
            node, "oneOf", path, errors,
            fmt::format("matches more than one alternative: {} and {}; exactly one is allowed",
                        first->location, alternative->location));
      }
      first = alternative;
    } else if (errors != nullptr) {
      KeepCloser(closest, std::move(why));
    }
    if (spent_) {
      return false;
    }
  }
  if (first == nullptr && errors != nullptr) {
    Fail(node, "oneOf", path, errors,
         fmt::format("matches none of the {} alternatives; the closest fails as follows",
                     node.one_of.size()));
    Append(*errors, closest);
  }
  return first != nullptr;
}

bool SchemaRun::Unevaluated(const SchemaNode& node, const Json& value, const SchemaPath& path,
                            Evaluated& seen, Errors* errors) {
  bool valid = true;
  size_t index = 0;
  const SchemaNode& rule =
      value.is_object() ? *node.unevaluated_properties : *node.unevaluated_items;
  for (auto member = value.begin(); member != value.end(); ++member, ++index) {
    if (seen.Has(index)) {
      continue;
    }
    const SchemaPath below = value.is_object() ? SchemaPath{.up = &path, .name = member.key()}
                                               : SchemaPath{.up = &path, .index = index};
    if (!Check(rule, *member, below, nullptr, errors)) {
      valid = false;
      if (errors == nullptr || spent_) {
        return false;
      }
    }
    seen.Mark(index);
  }
  return valid;
}

std::vector<SchemaError> Schema::Validate(const Json& value) const {
  const Measured measured =
      Measure(value, kMaxSchemaDepth, {kMaxInstanceValues, kMaxInstanceBytes});
  if (measured.misfit != Misfit::kNone) {
    return {{"", "", std::string(MisfitText(measured.misfit))}};
  }
  SchemaRun decide;
  if (decide.Check(*program_->root, value, {}, nullptr, nullptr) && !decide.spent()) {
    return {};
  }
  std::vector<SchemaError> errors;
  SchemaRun explain;
  if (!decide.spent()) {
    explain.Check(*program_->root, value, {}, nullptr, &errors);
  }
  if (errors.empty()) {
    errors.push_back(
        {"", "", "takes too much work to check: make it smaller, or simplify the schema"});
  }
  return errors;
}

}  // namespace coffer::policy
