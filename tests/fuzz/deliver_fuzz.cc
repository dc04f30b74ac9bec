// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what the gateway and the egress role tell each other: no crash, nothing accepted that could not have been
// sent, and no descriptor left open, whatever came with the message.
//
// The first byte: its lowest bit says which side hears the rest, the next two how many fields the fuzzer need not guess,
// the upper ones how many descriptors come along.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "egress/deliver_protocol.h"

namespace {

using namespace coffer::egress;

constexpr size_t kMostDescriptors = 8;

void Demand(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
  }
}

template <size_t kSize>
bool IsVisibleWord(const char (&text)[kSize]) {
  const std::string_view word(text, ::strnlen(text, kSize));
  return !word.empty() && word.size() < kSize &&
         std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

void SendRaw(int socket, std::string_view bytes, size_t count) {
  const std::vector<int> descriptors(count, socket);
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (count > 0) {
    const size_t size = count * sizeof(int);
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(size);
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(rights), descriptors.data(), size);
  }
  Demand(::sendmsg(socket, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()),
         "the fuzzer cannot send");
}

void AsDelivery(int near, int far, size_t descriptors, size_t sent) {
  const auto received = ReceiveDelivery(far);
  if (!received.ok() || received->ended) {
    Demand(received.ok() ? sent == 0 : sent + descriptors > 0, "an end that was none");
    return;
  }
  const DeliverHeader& header = received->header;
  Demand(descriptors == 0, "descriptors are taken");
  Demand(header.size == received->body.size() && sent == sizeof(header) + header.size, "a size");
  Demand(IsVisibleWord(header.receiver) && IsVisibleWord(header.id), "a word without an end");
  Demand(header.time >= 0, "a time before 1970");
  // What was heard can be said again, and is heard the same.
  const auto again = SendDelivery(near, header, received->body);
  Demand(again.ok() && *again, "it cannot be sent again");
  const auto second = ReceiveDelivery(far);
  Demand(second.ok() && std::memcmp(&second->header, &header, sizeof(header)) == 0 &&
             second->body == received->body,
         "a delivery is not stable");
}

void AsAnswer(int far, size_t descriptors, size_t sent) {
  const auto received = ReceiveAnswer(far);
  if (!received.ok() || received->ended) {
    Demand(received.ok() ? sent == 0 : sent + descriptors > 0, "an end that was none");
    return;
  }
  Demand(!received->none, "a message that is not there");
  const DeliverAnswer& answer = received->answer;
  const auto result = static_cast<DeliverResult>(answer.result);
  Demand(descriptors == 0, "descriptors are taken");
  Demand(DeliverResultText(result) != "the cause is unknown", "a result without words");
  Demand((result == DeliverResult::kAnswered) == (answer.status != 0) && answer.status < 600,
         "a status out of place");
  const auto after = ReceiveAnswer(far);
  Demand(after.ok() && after->none, "one message is heard twice");
}

// The lowest free descriptor: the same before and after, if nothing was left open.
int LowestFree() {
  const int fd = ::dup(0);
  ::close(fd);
  return fd;
}

// Puts the right thing at `at`, if the message reaches that far.
template <typename T>
void Put(std::string& bytes, size_t at, T value) {
  if (bytes.size() >= at + sizeof(value)) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 80 * 1024) {
    return 0;
  }
  const bool answer = (data[0] & 1) != 0;
  const int helped = (data[0] >> 1) & 3;
  const size_t descriptors = (data[0] >> 3) % (kMostDescriptors + 1);
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (helped >= 1) {
    Put(bytes, 0, answer ? DeliverAnswer().magic : DeliverHeader().magic);
    Put(bytes, 4, uint32_t{1});
  }
  if (helped >= 2 && !answer && bytes.size() >= sizeof(DeliverHeader)) {
    Put(bytes, offsetof(DeliverHeader, size),
        static_cast<uint32_t>(bytes.size() - sizeof(DeliverHeader)));
    Put(bytes, offsetof(DeliverHeader, reserved), uint32_t{0});
  }
  const int before = LowestFree();
  {
    int ends[2];
    Demand(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "no sockets");
    const coffer::UniqueFd near(ends[0]);
    const coffer::UniqueFd far(ends[1]);
    SendRaw(near.get(), bytes, descriptors);
    if (answer) {
      AsAnswer(far.get(), descriptors, bytes.size());
    } else {
      AsDelivery(near.get(), far.get(), descriptors, bytes.size());
    }
  }
  Demand(LowestFree() == before, "a descriptor stayed open");
  return 0;
}
