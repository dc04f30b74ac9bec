// SPDX-License-Identifier: Apache-2.0
#include "audit/log/records_scan.h"

#include <optional>

#include "audit/log/records.h"
#include "base/hex.h"
#include "base/utf8.h"

namespace coffer::audit {
namespace {

enum class Type : uint8_t { kNone, kText, kNumber, kTrue, kFalse, kNull, kObject };

struct Value {
  Type type = Type::kNone;
  std::string_view text;  // what stands between the quotes, or the whole value
  int64_t number = 0;
};

class Scanner {
 public:
  explicit Scanner(std::string_view line) : at_(line.data()), end_(line.data() + line.size()) {}

  bool Take(char c) {
    if (at_ == end_ || *at_ != c) {
      return false;
    }
    ++at_;
    return true;
  }
  bool AtEnd() const { return at_ == end_; }

  // A member's name, in quotes, with its colon; greater than the one before it.
  bool TakeName(std::string_view& name) {
    if (!Take('"')) {
      return false;
    }
    const char* begin = at_;
    while (at_ != end_ && ((*at_ >= 'a' && *at_ <= 'z') || (*at_ >= '0' && *at_ <= '9') ||
                           *at_ == '_' || *at_ == '.')) {
      ++at_;
    }
    const std::string_view found(begin, static_cast<size_t>(at_ - begin));
    if (found.empty() || found.size() > 64 || found <= name || !Take('"') || !Take(':')) {
      return false;
    }
    name = found;
    return true;
  }

  bool TakeValue(Value& value, bool objects) {
    if (at_ == end_) {
      return false;
    }
    const char* begin = at_;
    switch (*at_) {
      case '"':
        value.type = Type::kText;
        if (!TakeText()) {
          return false;
        }
        value.text = {begin + 1, static_cast<size_t>(at_ - begin - 2)};
        return true;
      case 't':
        value.type = Type::kTrue;
        return TakeWord("true");
      case 'f':
        value.type = Type::kFalse;
        return TakeWord("false");
      case 'n':
        value.type = Type::kNull;
        return TakeWord("null");
      case '{':
        value.type = Type::kObject;
        if (!objects || !TakeDetail()) {
          return false;
        }
        value.text = {begin, static_cast<size_t>(at_ - begin)};
        return true;
      default:
        value.type = Type::kNumber;
        return TakeNumber(value.number);
    }
  }

 private:
  bool TakeWord(std::string_view word) {
    if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(word)) {
      return false;
    }
    at_ += word.size();
    return true;
  }

  bool TakeNumber(int64_t& number) {
    const bool negative = Take('-');
    const char* begin = at_;
    uint64_t value = 0;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9' && at_ - begin < 19) {
      value = value * 10 + static_cast<uint64_t>(*at_++ - '0');
    }
    if (at_ == begin || (*begin == '0' && (at_ - begin > 1 || negative)) ||
        value > static_cast<uint64_t>(INT64_MAX)) {
      return false;
    }
    number = negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
    return true;
  }

  bool TakeText() {
    ++at_;
    while (at_ != end_) {
      const auto c = static_cast<uint8_t>(*at_);
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c == '\\' ? !TakeEscape() : (c < 0x20 || (c >= 0x80 && !TakeWide()))) {
        return false;
      }
      if (c != '\\' && c < 0x80) {
        ++at_;
      }
    }
    return false;
  }

  // The shortest one there is: \u00XX only for control characters without a letter.
  bool TakeEscape() {
    if (end_ - at_ < 2) {
      return false;
    }
    const char letter = at_[1];
    if (std::string_view("\"\\bfnrt").find(letter) != std::string_view::npos) {
      at_ += 2;
      return true;
    }
    if (letter != 'u' || end_ - at_ < 6 || at_[2] != '0' || at_[3] != '0' ||
        (at_[4] != '0' && at_[4] != '1')) {
      return false;
    }
    const int low = HexValue(at_[5]);
    const bool has_letter =
        at_[4] == '0' && (low == 8 || low == 9 || low == 10 || low == 12 || low == 13);
    if (low < 0 || has_letter) {
      return false;
    }
    at_ += 6;
    return true;
  }

  // One character beyond ASCII.
  bool TakeWide() {
    const size_t length = Utf8Length({at_, static_cast<size_t>(end_ - at_)});
    at_ += length;
    return length != 0;
  }

  bool TakeDetail() {
    ++at_;
    if (Take('}')) {
      return true;
    }
    std::string_view name;
    do {
      Value value;
      if (!TakeName(name) || !TakeValue(value, /*objects=*/false)) {
        return false;
      }
    } while (Take(','));
    return Take('}');
  }

  const char* at_;
  const char* end_;
};

// The members that a verifier looks at.
struct ScannedMembers {
  Value v, seq, at, kind, tenant, call, body, outcome, name, detail, ran, recovered, decision;

  Value* Find(std::string_view key) {
    switch (key[0]) {
      case 'a':
        return key == "at" ? &at : nullptr;
      case 'b':
        return key == "body" ? &body : nullptr;
      case 'c':
        return key == "call" ? &call : nullptr;
      case 'd':
        return key == "detail" ? &detail : (key == "decision" ? &decision : nullptr);
      case 'k':
        return key == "kind" ? &kind : nullptr;
      case 'n':
        return key == "name" ? &name : nullptr;
      case 'o':
        return key == "outcome" ? &outcome : nullptr;
      case 'r':
        return key == "ran" ? &ran : (key == "recovered" ? &recovered : nullptr);
      case 's':
        return key == "seq" ? &seq : nullptr;
      case 't':
        return key == "tenant" ? &tenant : nullptr;
      case 'v':
        return key == "v" ? &v : nullptr;
      default:
        return nullptr;
    }
  }
};

bool IsText(const Value& value) { return value.type == Type::kText; }
bool IsTextOrNull(const Value& value) { return IsText(value) || value.type == Type::kNull; }
bool IsFlag(const Value& value) { return value.type == Type::kTrue || value.type == Type::kFalse; }

const char* Understand(const ScannedMembers& members, LeafFacts& facts) {
  if (members.v.type != Type::kNumber || members.v.number != 1) {
    return "its version is not 1";
  }
  if (members.seq.type != Type::kNumber || members.seq.number < 0 ||
      members.at.type != Type::kNumber || !IsText(members.kind) || !IsTextOrNull(members.tenant)) {
    return "seq, at, kind or tenant is missing or of the wrong type";
  }
  facts = {};
  facts.seq = static_cast<uint64_t>(members.seq.number);
  facts.at = members.at.number;
  facts.tenant = members.tenant.text;
  if (members.kind.text == "decision") {
    facts.kind = LeafFacts::Kind::kDecision;
    facts.call = members.call.text;
    return IsText(members.call) && IsText(members.decision) ? nullptr
                                                            : "a decision without its call";
  }
  if (members.kind.text == "receipt") {
    facts.kind = LeafFacts::Kind::kReceipt;
    facts.call = members.call.text;
    facts.body = members.body.text;
    facts.outcome = members.outcome.text;
    facts.ran = members.ran.type == Type::kTrue;
    facts.recovered = members.recovered.type == Type::kTrue;
    const bool whole = IsText(members.call) && IsTextOrNull(members.body) &&
                       IsText(members.outcome) && IsFlag(members.ran) &&
                       (members.recovered.type == Type::kNone || IsFlag(members.recovered));
    return whole ? nullptr : "a receipt without its call, outcome, body or ran";
  }
  if (members.kind.text == "event") {
    facts.kind = LeafFacts::Kind::kEvent;
    facts.name = members.name.text;
    facts.detail = members.detail.text;
    return IsText(members.name) && members.detail.type == Type::kObject
               ? nullptr
               : "an event without its name or detail";
  }
  return "its kind is not decision, receipt or event";
}

}  // namespace

const char* ScanLeaf(std::string_view line, LeafFacts& facts) {
  constexpr const char* kMalformed = "it is not JSON as the log writes it";
  if (line.size() > kMaxLeafBytes) {
    return "it is longer than 65,535 bytes";
  }
  Scanner scanner(line);
  ScannedMembers members;
  std::string_view name;
  if (!scanner.Take('{')) {
    return kMalformed;
  }
  do {
    Value value;
    if (!scanner.TakeName(name) || !scanner.TakeValue(value, name == "detail")) {
      return kMalformed;
    }
    if (Value* const member = members.Find(name); member != nullptr) {
      *member = value;
    }
  } while (scanner.Take(','));
  if (!scanner.Take('}') || !scanner.AtEnd()) {
    return kMalformed;
  }
  const char* const problem = Understand(members, facts);
  facts.line = line;
  return problem;
}

}  // namespace coffer::audit
