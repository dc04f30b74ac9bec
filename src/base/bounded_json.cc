// SPDX-License-Identifier: Apache-2.0
#include "base/bounded_json.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace coffer {
namespace {

constexpr size_t kMaxShownKey = 64;
constexpr int kOutOfRange = 406;  // the library's number for a number beyond any double

// The library tells it what it reads; an answer of false stops the library.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const JsonBounds& bounds) : bounds_(bounds) {}

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    if (bounds_.exact_integers && text.find_first_of(".eE") == string_t::npos) {
      return Stop("json.number", "an integer that does not fit in 64 bits");
    }
    return Add(value);
  }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    names_.emplace_back();
    return Open(Json::object());
  }
  bool key(string_t& name) override {
    if (!names_.back().insert(name).second) {
      return Stop("json.duplicate", "the key \"" + Printable(name.substr(0, kMaxShownKey)) +
                                        "\" appears twice in one object");
    }
    name_ = std::move(name);
    return true;
  }
  bool end_object() override {
    names_.pop_back();
    return Close();
  }
  bool start_array(std::size_t) override { return Open(Json::array()); }
  bool end_array() override { return Close(); }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception& failure) override {
    return failure.id == kOutOfRange
               ? Stop("json.number", "a number beyond the range of a double")
               : Stop("json.syntax", "not JSON: wrong at byte " + std::to_string(at));
  }

  Json& value() { return value_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  bool Add(Json value) { return Place(std::move(value)) != nullptr; }

  // Where the value now is: in the innermost open object or list, or as the document. Nothing if there are too many.
  Json* Place(Json value) {
    if (++values_ > bounds_.values) {
      (void)Stop("json.too_many", "too many values");
      return nullptr;
    }
    if (open_.empty()) {
      value_ = std::move(value);
      return &value_;
    }
    Json& outer = *open_.back();
    if (outer.is_array()) {
      return &outer.get_ref<Json::array_t&>().emplace_back(std::move(value));
    }
    // Appended without a search: `names_` has made it.
    return &outer.get_ref<Json::object_t&>()
                .emplace_back(std::move(name_), std::move(value))
                .second;
  }

  bool Open(Json value) {
    if (open_.size() >= bounds_.depth) {
      return Stop("json.too_deep",
                  "nested deeper than " + std::to_string(bounds_.depth) + " levels");
    }
    Json* const placed = Place(std::move(value));
    open_.push_back(placed);
    return placed != nullptr;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }
  bool Stop(const char* code, std::string message) {
    if (!error_) {
      error_ = Refused(code, std::move(message));
    }
    return false;
  }

  const JsonBounds bounds_;
  Json value_;
  std::vector<Json*>
      open_;  // outermost first; only the innermost grows, so that none of them moves
  std::vector<std::set<std::string>> names_;  // of the open objects
  std::string name_;
  size_t values_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<Json> ParseBoundedJson(std::string_view text, const JsonBounds& bounds) {
  // The library would take a NUL for the end, and would skip a byte order mark.
  if (text.find('\0') != std::string_view::npos || text.starts_with("\xef\xbb\xbf")) {
    return Refused("json.syntax", "not JSON: a NUL byte or a byte order mark");
  }
  Builder builder(bounds);
  const bool read = Json::sax_parse(text, &builder);
  if (builder.error()) {
    return *builder.error();
  }
  if (!read) {
    return Refused("json.syntax", "not JSON");
  }
  return std::move(builder.value());
}

}  // namespace coffer
