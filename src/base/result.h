// SPDX-License-Identifier: Apache-2.0
//
// Result<T> is a T or an Error, and dropping one is a compile error.
//
// TRY and TRY_ASSIGN are statements, never expressions: a statement-expression inside braces leaks the members
// that were already built, and here such a member is a descriptor.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "base/error.h"

namespace coffer {

template <typename T>
class [[nodiscard]] Result {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): values and errors are returned as they are
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Error& error() { return std::get<1>(state_); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  Error& error() { return *error_; }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace coffer

// Returns the error of `expr` from the enclosing function, or goes on.
#define TRY(expr)                                       \
  do {                                                  \
    if (auto try_status_ = (expr); !try_status_.ok()) { \
      return std::move(try_status_.error());            \
    }                                                   \
  } while (false)

#define COFFER_CONCAT_INNER(a, b) a##b
#define COFFER_CONCAT(a, b) COFFER_CONCAT_INNER(a, b)

// TRY_ASSIGN(auto fd, OpenIt(path)): declares fd, or returns the error from the enclosing function.
#define TRY_ASSIGN(decl, expr) TRY_ASSIGN_IMPL(COFFER_CONCAT(try_result_, __LINE__), decl, expr)
#define TRY_ASSIGN_IMPL(result, decl, expr) \
  auto result = (expr);                     \
  if (!result.ok()) {                       \
    return std::move(result.error());       \
  }                                         \
  decl = std::move(result).value()
