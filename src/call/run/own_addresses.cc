// SPDX-License-Identifier: Apache-2.0
#include "call/run/own_addresses.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/sys.h"
#include "base/unique_fd.h"
#include "policy/ip_address.h"

namespace coffer::call {
namespace {

using policy::IpAddress;
using raw::Arg;
using raw::Syscall;

constexpr int kTries = 8;                  // an address came or went while the list was read
constexpr size_t kAnswerBytes = 32 << 10;  // more than the kernel puts into one datagram

Error Unreadable() {
  return HostFault("egress.addresses", "the addresses of this host cannot be read",
                   "a call with network must not reach them, so it does not start");
}

// The first bytes as a value of the kernel's; nothing if they are too few.
template <typename T>
std::optional<T> KernelHead(std::string_view bytes) {
  if (bytes.size() < sizeof(T)) {
    return std::nullopt;
  }
  T value;
  memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

void SkipPadded(std::string_view& bytes, size_t size) {
  bytes.remove_prefix(std::min<size_t>(NLMSG_ALIGN(size), bytes.size()));
}

std::optional<std::string> TextOf(uint8_t family, std::string_view value) {
  if (family == AF_INET && value.size() == 4) {
    return IpAddress::V4(*KernelHead<std::array<uint8_t, 4>>(value)).text();
  }
  if (family == AF_INET6 && value.size() == 16) {
    return IpAddress::V6(*KernelHead<std::array<uint8_t, 16>>(value)).text();
  }
  return std::nullopt;
}

// IFA_LOCAL where there is one: at a point-to-point link IFA_ADDRESS is the other end.
std::optional<std::string> AddressIn(std::string_view message) {
  const std::optional<ifaddrmsg> head = KernelHead<ifaddrmsg>(message);
  if (!head) {
    return std::nullopt;
  }
  SkipPadded(message, sizeof(*head));
  std::string_view address;
  std::string_view local;
  while (const std::optional<rtattr> attribute = KernelHead<rtattr>(message)) {
    if (attribute->rta_len < sizeof(rtattr) || attribute->rta_len > message.size()) {
      return std::nullopt;
    }
    const std::string_view value =
        message.substr(sizeof(rtattr), attribute->rta_len - sizeof(rtattr));
    if (attribute->rta_type == IFA_LOCAL) {
      local = value;
    } else if (attribute->rta_type == IFA_ADDRESS) {
      address = value;
    }
    SkipPadded(message, attribute->rta_len);
  }
  return TextOf(head->ifa_family, local.empty() ? address : local);
}

enum class AddressDump { kMore, kDone, kChanged, kBroken };

// One datagram of answers.
AddressDump TakeAddresses(std::string_view answers, std::vector<std::string>& own) {
  while (!answers.empty()) {
    const std::optional<nlmsghdr> head = KernelHead<nlmsghdr>(answers);
    if (!head || head->nlmsg_len < sizeof(*head) || head->nlmsg_len > answers.size()) {
      return AddressDump::kBroken;
    }
    if ((head->nlmsg_flags & NLM_F_DUMP_INTR) != 0) {
      return AddressDump::kChanged;
    }
    const std::string_view message = answers.substr(sizeof(*head), head->nlmsg_len - sizeof(*head));
    if (head->nlmsg_type == NLMSG_DONE) {
      const std::optional<int32_t> error = KernelHead<int32_t>(message);
      return error && *error < 0 ? AddressDump::kBroken : AddressDump::kDone;
    }
    if (head->nlmsg_type != RTM_NEWADDR) {
      return AddressDump::kBroken;
    }
    // Other families have addresses too (MCTP, Phonet), and no call reaches them.
    const std::optional<ifaddrmsg> about = KernelHead<ifaddrmsg>(message);
    if (about && (about->ifa_family == AF_INET || about->ifa_family == AF_INET6)) {
      std::optional<std::string> address = AddressIn(message);
      if (!address) {
        return AddressDump::kBroken;
      }
      own.push_back(*std::move(address));
    } else if (!about) {
      return AddressDump::kBroken;
    }
    SkipPadded(answers, head->nlmsg_len);
  }
  return AddressDump::kMore;
}

AddressDump AskForAddresses(std::vector<std::string>& own) {
  const long made = Syscall(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (made < 0) {
    return AddressDump::kBroken;
  }
  const UniqueFd socket(static_cast<int>(made));
  struct {
    nlmsghdr head{};
    ifaddrmsg about{};  // AF_UNSPEC: all families
  } request;
  request.head.nlmsg_len = sizeof(request);
  request.head.nlmsg_type = RTM_GETADDR;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  if (Syscall(SYS_sendto, socket.get(), Arg(&request), sizeof(request), 0, 0, 0) < 0) {
    return AddressDump::kBroken;
  }
  std::string answers(kAnswerBytes, '\0');
  AddressDump state = AddressDump::kMore;
  while (state == AddressDump::kMore) {
    const long got =
        Syscall(SYS_recvfrom, socket.get(), Arg(answers.data()), answers.size(), MSG_TRUNC, 0, 0);
    if (got == -EINTR) {
      continue;
    }
    state = got <= 0 || static_cast<size_t>(got) > answers.size()
                ? AddressDump::kBroken
                : TakeAddresses(std::string_view(answers).substr(0, static_cast<size_t>(got)), own);
  }
  return state;
}

}  // namespace

// getifaddrs asks for the interfaces too, under a lock that every network namespace takes that is
// made or removed: beside other calls that took milliseconds.
Result<std::vector<std::string>> OwnAddresses() {
  for (int i = 0; i < kTries; ++i) {
    std::vector<std::string> own;
    const AddressDump state = AskForAddresses(own);
    if (state == AddressDump::kDone) {
      return own;
    }
    if (state == AddressDump::kBroken) {
      break;
    }
  }
  return Unreadable();
}

}  // namespace coffer::call
