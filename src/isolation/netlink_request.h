// SPDX-License-Identifier: Apache-2.0
//
// Requests to the kernel over netlink(7), built by hand: messages one after the other, with
// attributes that may hold others.
//
// The kernel has answered everything when send returns, so nothing here waits.
#pragma once

#include <linux/netfilter/nfnetlink.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace coffer::isolation {

// The type of a message of nftables, such as NFT_MSG_NEWRULE.
constexpr uint16_t NftType(uint16_t message) {
  return static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | message);
}

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
  // Sends one message that asks for a list (NLM_F_DUMP). The kernel's messages, one after the other.
  Result<std::string> Ask(int socket, const char* what);

 private:
  void EndMessage();
  Status SendBytes(int socket, const char* what);

  std::string bytes_;
  size_t message_ = 0;  // where the last one begins
  uint32_t messages_ = 0;
};

}  // namespace coffer::isolation
