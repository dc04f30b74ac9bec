// SPDX-License-Identifier: Apache-2.0
//
// Requests to the kernel over netlink(7), built by hand: messages one after the other, with
// attributes that may hold others.
//
// The kernel has answered everything when send returns, so nothing here waits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace coffer::isolation {

class NetlinkRequest {
 public:
  // A message of this type; `header` is what its family has behind the common one. Ends the message before.
  void Begin(uint16_t type, uint16_t flags, std::string_view header);

  void Add(uint16_t type, std::string_view value);
  void AddBigEndian(uint16_t type, uint32_t value);     // as nftables has them
  void AddText(uint16_t type, std::string_view value);  // with its NUL

  // What is added in between becomes the value of an attribute.
  size_t BeginNested(uint16_t type);
  void EndNested(size_t begun);

  // Sends all messages. The first error that the kernel answers with; also if it answers nothing.
  Status Send(int socket, const char* what);

 private:
  void EndMessage();

  std::string bytes_;
  size_t message_ = 0;  // where the last one begins
  uint32_t messages_ = 0;
};

}  // namespace coffer::isolation
