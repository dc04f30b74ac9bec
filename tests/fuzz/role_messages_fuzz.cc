// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what one role hears from another: no crash, nothing accepted that cannot be sent again the same, and no
// descriptor left open, whatever came with the message.
//
// The first byte says where the rest arrives: as a request and as a table, as a report, as a message on the socket (with the number
// of descriptors its upper bits say), or as the request's memfd.
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "call/warden/protocol.h"
#include "call/warden/table.h"
#include "call/warden/wire.h"

namespace {

using namespace coffer::call;

void Demand(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
  }
}

bool HoldsNul(const std::string& text) { return text.find('\0') != std::string::npos; }

void AsRequest(std::string_view bytes) {
  const auto request = DecodeRun(bytes);
  if (!request.ok()) {
    return;
  }
  Demand(!request->command.empty(), "a request without a command");
  for (const std::string& word : request->command) {
    Demand(!HoldsNul(word), "a word with a NUL");
  }
  for (const auto& mount : request->envelope.mounts) {
    Demand(!HoldsNul(mount.host) && !HoldsNul(mount.at), "a path with a NUL");
  }
  Demand(request->envelope.limits.memory > 0 && request->envelope.limits.wall.count() > 0,
         "a cap that is missing");
  Demand(request->receipt_path.empty() && request->out_dir.empty(),
         "a role decides where another writes");
  const std::string again = EncodeRun(*request);
  const auto second = DecodeRun(again);
  Demand(second.ok() && EncodeRun(*second) == again, "a request is not stable");
}

void AsTable(std::string_view bytes) {
  const auto table = DecodeTable(bytes);
  if (!table.ok()) {
    return;
  }
  for (const TableEntry& entry : table->entries) {
    Demand(!entry.tool.empty() && table->Find(entry.tool) == &entry, "an entry that is not found");
    Demand(!entry.envelope.runtimes.empty(), "an entry without a runtime");
  }
  const std::string again = EncodeTable(*table);
  const auto second = DecodeTable(again);
  Demand(second.ok() && EncodeTable(*second) == again, "a table is not stable");
}

void AsReport(std::string_view bytes) {
  const auto report = DecodeReport(bytes);
  if (!report.ok()) {
    return;
  }
  Demand(report->exit_status >= 0 && report->exit_status <= 255, "an exit status out of range");
  const std::string again = EncodeReport(*report);
  const auto second = DecodeReport(again);
  Demand(second.ok() && EncodeReport(*second) == again, "a report is not stable");
}

void SendRaw(int socket, std::string_view bytes, const std::vector<int>& descriptors) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const size_t size = descriptors.size() * sizeof(int);
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(size);
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(rights), descriptors.data(), size);
  }
  Demand(::sendmsg(socket, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()),
         "the fuzzer cannot send");
}

// The lowest free descriptor: the same before and after, if nothing was left open.
int LowestFree() {
  const int fd = ::dup(0);
  ::close(fd);
  return fd;
}

void AsMessage(std::string_view bytes, size_t count) {
  const int before = LowestFree();
  {
    int ends[2];
    Demand(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "no sockets");
    const coffer::UniqueFd near(ends[0]);
    const coffer::UniqueFd far(ends[1]);
    SendRaw(near.get(), bytes.substr(0, 1024), std::vector<int>(count, near.get()));
    const auto received = ReceiveMessage(far.get(), WardenPeer::kGateway);
    if (received.ok() && !received->ended && !received->empty) {
      const WardenMessage& message = received->message;
      const bool launch = message.verb == static_cast<uint32_t>(WardenVerb::kLaunch);
      const bool volume = IsVolumeVerb(message.verb);
      Demand(launch || volume || message.verb == static_cast<uint32_t>(WardenVerb::kKill) ||
                 message.verb == static_cast<uint32_t>(WardenVerb::kSignal),
             "a strange verb");
      const size_t least = launch ? kLaunchDescriptors : volume ? kVolumeDescriptors : 0;
      const size_t most = least + (launch ? kMostPortChannels : 0);
      Demand(received->descriptors.size() >= least && received->descriptors.size() <= most,
             "descriptors that do not belong");
      const size_t length = strnlen(message.call_id, sizeof(message.call_id));
      Demand(length > 0 && length < sizeof(message.call_id), "an id without an end");
    }
  }
  Demand(LowestFree() == before, "a descriptor stayed open");
}

void AsMemfd(std::string_view bytes, uint64_t claimed) {
  const auto fd = SealedBytes(bytes);
  Demand(fd.ok(), "the fuzzer cannot make a memfd");
  const auto exact = ReadSealed(fd->get(), bytes.size());
  Demand(exact.ok() && *exact == bytes, "sealed bytes do not come back");
  if (claimed != bytes.size()) {
    Demand(!ReadSealed(fd->get(), claimed).ok(), "a wrong size is believed");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] & 3) {
    case 0:
      AsRequest(rest);
      AsTable(rest);
      break;
    case 1:
      AsReport(rest);
      break;
    case 2:
      AsMessage(rest, data[0] >> 4);
      break;
    default:
      AsMemfd(rest, data[0] >> 2);
  }
  return 0;
}
