// SPDX-License-Identifier: Apache-2.0
//
// The parser of ECMA-262 patterns (with the u flag), by recursive descent.
#include <algorithm>
#include <optional>

#include "base/hex.h"
#include "base/utf8.h"
#include "policy/schema/pattern.h"
#include "policy/schema/pattern_program.h"
#include "policy/schema/value.h"

namespace coffer::policy {
namespace {

constexpr char32_t kEnd = 0xFFFFFFFF;
constexpr std::u32string_view kSyntaxCharacters = U"^$\\.*+?()[]{}|/";

// Of text that is known to be UTF-8.
std::u32string Decode(std::string_view text) {
  std::u32string out;
  while (!text.empty()) {
    const Utf8Character next = DecodeUtf8(text);
    out.push_back(next.point);
    text.remove_prefix(next.length);
  }
  return out;
}

int HexDigit(char32_t c) { return c < 128 ? EitherCaseHexValue(static_cast<char>(c)) : -1; }

class Parser {
 public:
  explicit Parser(std::string_view ecma) : text_(Decode(ecma)) {}

  Result<PatternTree> Run() {
    TRY_ASSIGN(Piece all, Disjunction(0));
    if (!AtEnd()) {
      return Fail("an unmatched )", "write \\) for the character");
    }
    tree_.root = all.node;
    return std::move(tree_);
  }

 private:
  using Kind = PatternTree::Kind;
  // A part of the expression. `repeats` is how often its most repeated atom is written out.
  struct Piece {
    uint32_t node = 0;
    uint32_t repeats = 1;
    bool assertion = false;  // ^, $, \b or \B: cannot be repeated
  };
  // One member of a class: a character, or the set of \d and the like.
  struct ClassAtom {
    char32_t character = 0;
    std::optional<CodePointSet> set;
  };

  bool AtEnd() const { return at_ == text_.size(); }
  char32_t Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : kEnd;
  }
  bool Take(char32_t c) {
    const bool there = Peek() == c;
    at_ += there ? 1 : 0;
    return there;
  }
  uint32_t Add(PatternTree::Node node) {
    tree_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(tree_.nodes.size() - 1);
  }
  Piece Set(CodePointSet set) {
    tree_.sets.push_back(std::move(set));
    return {.node = Add({.kind = Kind::kSet, .set = static_cast<uint32_t>(tree_.sets.size() - 1)})};
  }
  Piece Assertion(Kind kind) {
    ++at_;
    return {.node = Add({.kind = kind}), .assertion = true};
  }
  Error Fail(std::string_view what, std::string hint = {}) const {
    return Refused(
        "schema.pattern",
        "at character " + std::to_string(at_ + 1) + " of the pattern: " + std::string(what),
        std::move(hint));
  }

  Result<Piece> Disjunction(int depth) {
    if (depth > kMaxPatternGroups) {
      return Fail("groups are nested more than 32 deep");
    }
    Piece all;
    PatternTree::Node node{.kind = Kind::kAlternatives};
    do {
      TRY_ASSIGN(const Piece next, Alternative(depth));
      node.parts.push_back(next.node);
      all.repeats = std::max(all.repeats, next.repeats);
    } while (Take('|'));
    all.node = Add(std::move(node));
    return all;
  }

  Result<Piece> Alternative(int depth) {
    Piece all;
    PatternTree::Node node{.kind = Kind::kSequence};
    while (!AtEnd() && Peek() != '|' && Peek() != ')') {
      TRY_ASSIGN(Piece term, Term(depth));
      TRY(Quantify(term));
      node.parts.push_back(term.node);
      all.repeats = std::max(all.repeats, term.repeats);
    }
    all.node = Add(std::move(node));
    return all;
  }

  Result<Piece> Term(int depth) {
    const char32_t c = Peek();
    switch (c) {
      case '^':
        return Assertion(Kind::kBegin);
      case '$':
        return Assertion(Kind::kEnd);
      case '.':
        ++at_;
        return Set(NotLineTerminators());
      case '(':
        return Group(depth);
      case '[':
        return Class();
      case '\\':
        return Escape();
      case '*':
      case '+':
      case '?':
      case '{':
        return Fail("there is nothing to repeat here",
                    "write a backslash before it for the character itself");
      case '}':
      case ']':
        return Fail("a bracket that opens nowhere",
                    "write a backslash before it for the character itself");
      default:
        ++at_;
        return Literal(c);
    }
  }

  Piece Literal(char32_t c) {
    CodePointSet set;
    set.Add(c, c);
    return Set(std::move(set));
  }

  Result<Piece> Group(int depth) {
    ++at_;
    if (Take('?') && !Take(':')) {
      const bool named = Peek() == '<' && Peek(1) != '=' && Peek(1) != '!';
      return named ? Fail("a named group", "write (?:...) instead")
                   : Fail(
                         "lookahead, lookbehind and modifiers are not implemented: they have no "
                         "linear-time matcher",
                         "write (?:...) for a group; use allOf or not with several patterns");
    }
    TRY_ASSIGN(Piece inner, Disjunction(depth + 1));
    if (!Take(')')) {
      return Fail("a group that is not closed", "write \\( for the character");
    }
    inner.assertion = false;
    return inner;
  }

  Status Quantify(Piece& term) {
    uint32_t least = 0;
    uint32_t most = kUnbounded;
    if (Take('+')) {
      least = 1;
    } else if (Take('?')) {
      most = 1;
    } else if (Take('{')) {
      TRY_ASSIGN(least, Count());
      most = least;
      if (Take(',')) {
        most = kUnbounded;
        if (Peek() != '}') {
          TRY_ASSIGN(most, Count());
        }
      }
      if (!Take('}')) {
        return Fail("a repetition is written {n}, {n,} or {n,m}");
      }
      if (most < least) {
        return Fail("a repetition whose largest number is below its smallest");
      }
    } else if (!Take('*')) {
      return {};
    }
    if (term.assertion) {
      return Fail("^, $, \\b and \\B cannot be repeated");
    }
    Take('?');  // lazy: whether it is found does not depend on it
    term.repeats *= std::max(most == kUnbounded ? least : most, 1U);  // both at most 1000
    if (term.repeats > kMaxPatternRepeat) {
      return Fail("repetitions add up to more than 1000",
                  "bound the length with maxLength instead");
    }
    term.node = Add({.kind = Kind::kRepeat, .parts = {term.node}, .least = least, .most = most});
    return {};
  }

  Result<uint32_t> Count() {
    uint32_t count = 0;
    const size_t start = at_;
    for (; Peek() >= '0' && Peek() <= '9'; ++at_) {
      count = count * 10 + static_cast<uint32_t>(Peek() - '0');
      if (count > kMaxPatternRepeat) {
        return Fail("a repetition of more than 1000", "bound the length with maxLength instead");
      }
    }
    if (at_ == start) {
      return Fail("a repetition is written {n}, {n,} or {n,m}", "write \\{ for the character");
    }
    return count;
  }

  Result<Piece> Escape() {
    ++at_;
    const char32_t c = Peek();
    if (c == 'b' || c == 'B') {
      return Assertion(c == 'b' ? Kind::kWordBoundary : Kind::kNotWordBoundary);
    }
    if ((c >= '1' && c <= '9') || c == 'k') {
      return Fail("a backreference is not implemented: it has no linear-time matcher",
                  "repeat the expression itself");
    }
    TRY_ASSIGN(ClassAtom atom, CharacterOrClass());
    return atom.set ? Set(*std::move(atom.set)) : Literal(atom.character);
  }

  // After a backslash, inside a class or outside.
  Result<ClassAtom> CharacterOrClass() {
    const char32_t c = Peek();
    switch (c) {
      case 'd':
      case 'D':
      case 'w':
      case 'W':
      case 's':
      case 'S':
        ++at_;
        return ClassAtom{.set = ClassOf(static_cast<char>(c))};
      case 'p':
      case 'P':
        return Fail("\\p is not implemented: its meaning changes with every version of Unicode",
                    "list the ranges, such as [a-zA-Z\\u00C0-\\u024F]");
      default: {
        TRY_ASSIGN(const char32_t character, EscapedCharacter());
        return ClassAtom{.character = character};
      }
    }
  }

  Result<char32_t> EscapedCharacter() {
    const char32_t c = Peek();
    constexpr std::u32string_view kLetters = U"tnvfr";
    constexpr std::u32string_view kControls = U"\t\n\v\f\r";
    if (const size_t i = kLetters.find(c); i != kLetters.npos) {
      ++at_;
      return kControls[i];
    }
    if (kSyntaxCharacters.find(c) != kSyntaxCharacters.npos) {
      ++at_;
      return c;
    }
    if (c == '0' && !(Peek(1) >= '0' && Peek(1) <= '9')) {
      ++at_;
      return U'\0';
    }
    if (c == 'c' && ((Peek(1) | 0x20) >= 'a' && (Peek(1) | 0x20) <= 'z')) {
      at_ += 2;
      return text_[at_ - 1] % 32;
    }
    if (c == 'x') {
      ++at_;
      return Hex(2);
    }
    if (c == 'u') {
      ++at_;
      return UnicodeEscape();
    }
    return Fail("a backslash before a character that needs none",
                "with the u flag only ^ $ \\ . * + ? ( ) [ ] { } | / "
                "and, in a class, - may be escaped: leave the backslash out");
  }

  Result<char32_t> UnicodeEscape() {
    if (Take('{')) {
      char32_t value = 0;
      const size_t start = at_;
      for (; HexDigit(Peek()) >= 0 && value <= 0x10FFFF; ++at_) {
        value = value * 16 + static_cast<char32_t>(HexDigit(Peek()));
      }
      if (at_ == start || value > 0x10FFFF || !Take('}')) {
        return Fail("\\u{...} takes a code point in hexadecimal, up to 10FFFF");
      }
      return NoSurrogate(value);
    }
    TRY_ASSIGN(const char32_t first, Hex(4));
    if (first >= 0xD800 && first < 0xDC00 && Peek() == '\\' && Peek(1) == 'u' && Peek(2) != '{') {
      at_ += 2;
      TRY_ASSIGN(const char32_t second, Hex(4));
      if (second >= 0xDC00 && second < 0xE000) {
        return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
      }
    }
    return NoSurrogate(first);
  }

  Result<char32_t> NoSurrogate(char32_t c) {
    if (c >= 0xD800 && c < 0xE000) {
      return Fail("half of a surrogate pair, which no JSON text holds");
    }
    return c;
  }

  Result<char32_t> Hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      if (HexDigit(Peek()) < 0) {
        return Fail(digits == 2 ? "\\x takes two hexadecimal digits"
                                : "\\u takes four hexadecimal digits, or {...}");
      }
      value = value * 16 + static_cast<char32_t>(HexDigit(Peek()));
    }
    return value;
  }

  Result<Piece> Class() {
    ++at_;
    const bool negated = Take('^');
    CodePointSet set;
    while (Peek() != ']') {
      if (AtEnd()) {
        return Fail("a class that is not closed", "write \\[ for the character");
      }
      TRY_ASSIGN(const ClassAtom first, Member());
      if (Peek() == '-' && Peek(1) != ']' && Peek(1) != kEnd) {
        ++at_;
        TRY_ASSIGN(const ClassAtom last, Member());
        if (first.set || last.set) {
          return Fail("a range from or to a class", "put the - last in the brackets, or write \\-");
        }
        if (last.character < first.character) {
          return Fail("a range that runs backwards");
        }
        set.Add(first.character, last.character);
      } else if (first.set) {
        set.Add(*first.set);
      } else {
        set.Add(first.character, first.character);
      }
    }
    ++at_;
    return Set(negated ? set.Complement() : std::move(set));
  }

  Result<ClassAtom> Member() {
    if (!Take('\\')) {
      return ClassAtom{.character = text_[at_++]};
    }
    if (Take('b')) {
      return ClassAtom{.character = '\b'};
    }
    if (Take('-')) {
      return ClassAtom{.character = '-'};
    }
    return CharacterOrClass();
  }

  PatternTree tree_;
  std::u32string text_;
  size_t at_ = 0;
};

}  // namespace

Result<PatternTree> ParsePattern(std::string_view ecma) {
  if (ecma.size() > kMaxPatternBytes) {
    return Refused("schema.pattern", "the pattern is longer than 2048 bytes",
                   "use several with allOf");
  }
  if (!IsUtf8(ecma)) {
    return Refused("schema.pattern", "the pattern is not UTF-8");
  }
  return Parser(ecma).Run();
}

}  // namespace coffer::policy
