// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <utility>

namespace coffer {

Error::Error(ErrorKind kind_, std::string_view code_, std::string message_, std::string hint_,
             int sys_errno_)
    : kind(kind_),
      code(code_),
      message(std::move(message_)),
      hint(std::move(hint_)),
      sys_errno(sys_errno_) {}

Error::Error(const Error& other) = default;
Error::Error(Error&& other) noexcept = default;
Error& Error::operator=(const Error& other) = default;
Error& Error::operator=(Error&& other) noexcept = default;
Error::~Error() = default;

Error Refused(std::string_view code, std::string message, std::string hint) {
  return {ErrorKind::kRefused, code, std::move(message), std::move(hint)};
}

Error HostFault(std::string_view code, std::string message, std::string hint) {
  return {ErrorKind::kHost, code, std::move(message), std::move(hint)};
}

Error Internal(std::string_view code, std::string message) {
  return {ErrorKind::kInternal, code, std::move(message)};
}

}  // namespace coffer
