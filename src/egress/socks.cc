// SPDX-License-Identifier: Apache-2.0
#include "egress/socks.h"

#include <algorithm>
#include <array>

namespace coffer::egress {
namespace {

using SocksState = SocksStep::State;

constexpr unsigned char kVersion = 5;
constexpr unsigned char kNoAuthentication = 0;
constexpr unsigned char kConnect = 1;
constexpr unsigned char kAddress4 = 1;
constexpr unsigned char kName = 3;
constexpr unsigned char kAddress6 = 4;
constexpr size_t kRequestHead = 4;

unsigned char At(std::string_view bytes, size_t i) { return static_cast<unsigned char>(bytes[i]); }

SocksStep BrokenSocks(std::string answer, std::string problem) {
  SocksStep step;
  step.state = SocksState::kBroken;
  step.answer = std::move(answer);
  step.problem = std::move(problem);
  return step;
}

template <size_t kSize>
std::array<uint8_t, kSize> Taken(std::string_view bytes) {
  std::array<uint8_t, kSize> taken;
  std::copy_n(bytes.begin(), kSize, taken.begin());
  return taken;
}

}  // namespace

std::string SocksAnswer(SocksReply reply) {
  // The address that a server would have bound says nothing here.
  std::string answer("\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00", 10);
  answer[1] = static_cast<char>(reply);
  return answer;
}

SocksStep ReadSocksGreeting(std::string_view bytes) {
  SocksStep step;
  if (!bytes.empty() && At(bytes, 0) != kVersion) {
    return BrokenSocks("", "this is not SOCKS 5");
  }
  if (bytes.size() < 2 || bytes.size() < 2U + At(bytes, 1)) {
    return step;
  }
  const std::string_view offered = bytes.substr(2, At(bytes, 1));
  if (offered.find(static_cast<char>(kNoAuthentication)) == std::string_view::npos) {
    return BrokenSocks("\x05\xff", "the client insists on a password, and there is none");
  }
  step.state = SocksState::kDone;
  step.consumed = 2 + offered.size();
  step.answer = std::string("\x05\x00", 2);
  return step;
}

SocksStep ReadSocksRequest(std::string_view bytes) {
  SocksStep step;
  const auto need = [&](size_t size) { return bytes.size() < size; };
  if (!need(1) && At(bytes, 0) != kVersion) {
    return BrokenSocks("", "this is not SOCKS 5");
  }
  if (need(kRequestHead + 1)) {
    return step;
  }
  if (At(bytes, 2) != 0) {
    return BrokenSocks(SocksAnswer(SocksReply::kFailed), "a reserved byte of SOCKS is set");
  }
  if (At(bytes, 1) != kConnect) {
    return BrokenSocks(SocksAnswer(SocksReply::kCommandNotSupported),
                       "of SOCKS only CONNECT is spoken: no BIND, no UDP");
  }
  const unsigned char type = At(bytes, 3);
  size_t size = 0;  // of the address
  size_t at = kRequestHead;
  if (type == kName) {
    size = At(bytes, at);
    ++at;
  } else if (type == kAddress4 || type == kAddress6) {
    size = type == kAddress4 ? 4 : 16;
  } else {
    return BrokenSocks(SocksAnswer(SocksReply::kAddressNotSupported), "an unknown kind of address");
  }
  if (need(at + size + 2)) {
    return step;
  }
  const std::string_view address = bytes.substr(at, size);
  if (type == kName) {
    Result<policy::HostName> host = policy::HostName::Parse(address);
    if (!host.ok()) {
      return BrokenSocks(SocksAnswer(SocksReply::kNotAllowed), host.error().message);
    }
    step.to.host = *std::move(host);
  } else {
    step.to.host =
        policy::HostName::Of(type == kAddress4 ? policy::IpAddress::V4(Taken<4>(address))
                                               : policy::IpAddress::V6(Taken<16>(address)));
  }
  step.to.port = static_cast<uint16_t>(At(bytes, at + size) << 8 | At(bytes, at + size + 1));
  if (step.to.port == 0) {
    return BrokenSocks(SocksAnswer(SocksReply::kNotAllowed), "port 0");
  }
  step.state = SocksState::kDone;
  step.consumed = at + size + 2;
  return step;
}

}  // namespace coffer::egress
