// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/mistake.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/text.h"

namespace coffer::policy {
namespace {

constexpr size_t kLongestWord = 64;

// Levenshtein's distance, where swapping two neighbours is one step.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> above(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  std::iota(above.begin(), above.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replace, above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before = std::exchange(above, row);
  }
  return above[b.size()];
}

}  // namespace

void MistakeList::Add(Position at, std::string message, std::string hint) {
  if (mistakes_.size() >= kMaxMistakes) {
    ++left_out_;
    return;
  }
  mistakes_.push_back({at, std::move(message), std::move(hint)});
}

std::vector<Mistake> MistakeList::Take() {
  std::sort(mistakes_.begin(), mistakes_.end(), [](const Mistake& a, const Mistake& b) {
    return std::tie(a.at, a.message) < std::tie(b.at, b.message);
  });
  mistakes_.erase(std::unique(mistakes_.begin(), mistakes_.end()), mistakes_.end());
  if (left_out_ > 0) {
    mistakes_.push_back(
        {mistakes_.back().at, fmt::format("and {} more mistakes", left_out_), "fix these first"});
  }
  return std::move(mistakes_);
}

std::string FormatMistake(std::string_view file, const Mistake& mistake) {
  std::string text = fmt::format("{}:{}:{}: {}", Printable(file), mistake.at.line,
                                 mistake.at.column, mistake.message);
  if (!mistake.hint.empty()) {
    text += ": " + mistake.hint;
  }
  return text;
}

std::string_view NearestWord(std::string_view word, const std::vector<std::string_view>& known) {
  if (word.size() > kLongestWord) {
    return {};
  }
  std::string_view best;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const size_t distance = Distance(word, candidate);
    if (distance < least) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

bool IsWrongAlready(const std::vector<Mistake>& mistakes, Position at) {
  constexpr uint32_t kHeader = 2;  // "[table]": the name's column, where its missing keys are told
  return std::any_of(mistakes.begin(), mistakes.end(), [&](const Mistake& mistake) {
    return mistake.at.line == at.line && mistake.at.column > kHeader;
  });
}

}  // namespace coffer::policy
