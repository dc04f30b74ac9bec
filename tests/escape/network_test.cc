// SPDX-License-Identifier: Apache-2.0
//
// NW, SC-13 to SC-16: without a grant there is no network, whatever the family. Canary servers are on this host only.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

class NetworkEscape : public LevelTest {};

// A socket of the host that counts who came.
class Canary {
 public:
  explicit Canary(int type) : fd_(socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    if (type == SOCK_STREAM) {
      EXPECT_EQ(listen(fd_, 64), 0);
    }
    socklen_t length = sizeof address;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = std::to_string(ntohs(address.sin_port));
  }
  ~Canary() { close(fd_); }
  Canary(const Canary&) = delete;
  Canary& operator=(const Canary&) = delete;
  const std::string& port() const { return port_; }
  int Visitors() const {
    int count = 0;
    char byte = 0;
    while (true) {
      const int client = accept(fd_, nullptr, nullptr);
      if (client >= 0) {
        close(client);
        ++count;
      } else if (recv(fd_, &byte, 1, 0) == 1) {
        ++count;
      } else {
        return count;
      }
    }
  }

 private:
  int fd_;
  std::string port_;
};

// The host's own addresses: connecting to them never leaves the machine.
Strings OwnAddresses() {
  Strings addresses = {"127.0.0.1"};
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) == 0) {
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr != nullptr && entry->ifa_addr->sa_family == AF_INET &&
          (entry->ifa_flags & IFF_LOOPBACK) == 0) {
        char text[INET_ADDRSTRLEN] = {};
        inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr, text,
                  sizeof text);
        addresses.emplace_back(text);
      }
    }
    freeifaddrs(list);
  }
  return addresses;
}

TEST_P(NetworkEscape, NW_01_NoConnectionToTheHost) {
  for (const char* protocol : {"tcp", "udp"}) {
    const Canary canary(protocol[0] == 't' ? SOCK_STREAM : SOCK_DGRAM);
    for (const std::string& address : OwnAddresses()) {
      const Strings verb = {protocol, address, canary.port()};
      RunOutside(verb);
      EXPECT_EQ(canary.Visitors(), 1) << "NO-CONTROL: " << protocol << " to " << address;
      const RunResult result = RunProbe(Flags(), verb);
      EXPECT_EQ(canary.Visitors(), 0) << "OPEN: " << protocol << " to " << address << "\n"
                                      << result.Describe();
      EXPECT_EQ(result.exit, 0) << result.Describe();
    }
  }
}

// Beside a directory the supervisor connects (connect_server.h): with the payload's socket, so in the payload's network.
TEST(NetworkEscapeBesideAMount, NW_01_NoConnectionToTheHost) {
  const TempDir dir;
  const Strings flags = {"--level", "container", "--ro", dir.MakeDir("shared") + ":/data"};
  for (const char* protocol : {"tcp", "udp"}) {
    const Canary canary(protocol[0] == 't' ? SOCK_STREAM : SOCK_DGRAM);
    for (const std::string& address : OwnAddresses()) {
      const Strings verb = {protocol, address, canary.port()};
      RunOutside(verb);
      EXPECT_EQ(canary.Visitors(), 1) << "NO-CONTROL: " << protocol << " to " << address;
      const RunResult result = RunProbe(flags, verb);
      EXPECT_EQ(canary.Visitors(), 0) << "OPEN: " << protocol << " to " << address << "\n"
                                      << result.Describe();
      EXPECT_EQ(result.exit, 0) << result.Describe();
    }
  }
  const std::string name = NewToken();
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un abstract = {};
  abstract.sun_family = AF_UNIX;
  memcpy(abstract.sun_path + 1, name.data(), name.size());
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&abstract),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())),
            0);
  ASSERT_EQ(listen(listener, 4), 0);
  RunOutside({"abstract-unix", name});
  EXPECT_GE(accept(listener, nullptr, nullptr), 0) << "NO-CONTROL";
  const RunResult result = RunProbe(flags, {"abstract-unix", name});
  EXPECT_TRUE(Contains(result.out, "REFUSED errno=ECONNREFUSED")) << result.Describe();
  EXPECT_LT(accept(listener, nullptr, nullptr), 0) << "OPEN\n" << result.Describe();
  close(listener);
}

TEST_P(NetworkEscape, NW_01_OnlyLoopback) {
  const std::string outside = RunOutside({"interfaces"}).out;
  EXPECT_GT(Lines(outside).size(), 2U) << "NO-CONTROL: the host has no other interface";
  const RunResult result = RunProbe(Flags(), {"interfaces"});
  ExpectRan(result);
  if (container()) {
    EXPECT_TRUE(Contains(result.out, "interface lo")) << result.Describe();
    for (const std::string& line : Lines(result.out)) {
      EXPECT_TRUE(line == "interface lo" || line == "done" || Contains(line, "REFUSED")) << line;
    }
  } else {
    // No namespace of its own: then there are no sockets of these families to ask with.
    EXPECT_FALSE(Contains(result.out, "interface eth")) << result.Describe();
  }
}

TEST_P(NetworkEscape, NW_01_LoopbackIsItsOwnAndNeverHangs) {
  NothingIsAttacked(
      "an answer comes in time: from a loopback where nothing listens, or from the filter");
  const RunResult result = RunProbe(Flags(), {"tcp", "127.0.0.1", "9"});
  EXPECT_TRUE(Contains(result.out, container() ? "connect: REFUSED errno=ECONNREFUSED"
                                               : "socket: REFUSED errno=EPERM"))
      << result.Describe();
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_FALSE(result.timed_out);
  EXPECT_FALSE(Contains(result.out, "ETIMEDOUT")) << result.Describe();
}

TEST_P(NetworkEscape, NW_02_RawAndPingSockets) {
  for (const Strings& verb : {Strings{"socket", "2", "raw", "1"},
                              {"socket", "2", "dgram", "1"},
                              {"socket", "10", "raw", "58"},
                              {"socket", "2", "raw", "255"}}) {
    Expectation expectation;
    expectation.errnos = {"EPERM", "EACCES"};
    expectation.syscalls = {{"", "socket"}};
    ExpectContained("NW-02", Flags(), verb, expectation);
  }
}

TEST_P(NetworkEscape, SC_13_FamiliesOutsideThePolicy) {
  const auto families = [](const std::string& out) {
    std::set<std::string> found;
    for (const std::string& line : Lines(out)) {
      if (line.starts_with("family ")) {
        found.insert(line.substr(0, line.find(" protocol")));
      }
    }
    return found;
  };
  const auto outside = families(RunOutside({"socket-sweep"}).out);
  EXPECT_GT(outside.size(), 6U) << "NO-CONTROL";
  const RunResult result = RunProbe(Flags(), {"socket-sweep"});
  ASSERT_TRUE(Contains(result.out, "total ")) << result.Describe();
  const std::set<std::string> allowed = {
      "family 1 type stream", "family 1 type dgram", "family 1 type seqpacket",
      "family 2 type stream", "family 2 type dgram", "family 10 type stream",
      "family 10 type dgram", "family 1 type raw",      // raw is dgram for AF_UNIX
      "family 16 type raw",   "family 16 type dgram"};  // routes, of its own network
  for (const std::string& family : families(result.out)) {
    EXPECT_TRUE(allowed.contains(family)) << family << " opens inside";
  }
}

// Landlock's rules for TCP do not see it, so the network namespace and the refusal of sockets have to hold.
// Groups and their sources are memory of the kernel that no cgroup counts.
TEST(NetworkEscapeGroups, RS_04_NoneIsJoined) {
  constexpr char kJoin[] = R"(
import errno, socket, struct
lo = socket.if_nametoindex("lo")
def group(host, source):
    def storage(family, address):
        text = socket.inet_pton(family, address)
        body = struct.pack("=HH", family, 0) + (text if family == socket.AF_INET else struct.pack("=I", 0) + text)
        return body.ljust(128, b"\0")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    one = struct.pack("=I4x", lo) + storage(family, host)
    return one + storage(family, source) if source else one
def ask(what, family, level, option, value):
    try:
        socket.socket(family, socket.SOCK_DGRAM).setsockopt(level, option, value)
        print(what, "OPEN")
    except OSError as e:
        print(what, errno.errorcode[e.errno])
v4 = socket.inet_aton("239.1.2.3") + socket.inet_aton("127.0.0.1")
ask("v4", socket.AF_INET, 0, 35, v4)
ask("v4 source", socket.AF_INET, 0, 39, v4 + socket.inet_aton("127.0.0.9"))
ask("v4 group", socket.AF_INET, 0, 42, group("239.1.2.3", None))
ask("v4 source group", socket.AF_INET, 0, 46, group("239.1.2.3", "127.0.0.9"))
ask("v6", socket.AF_INET6, 41, 20, socket.inet_pton(socket.AF_INET6, "ff01::7") + struct.pack("=I", lo))
ask("v6 group", socket.AF_INET6, 41, 42, group("ff01::7", None))
ask("v6 source group", socket.AF_INET6, 41, 46, group("ff01::7", "::9"))
)";
  const auto expected = [](const std::string& verdict) {
    std::string text;
    for (const char* what :
         {"v4", "v4 source", "v4 group", "v4 source group", "v6", "v6 group", "v6 source group"}) {
      text += std::string(what) + " " + verdict + "\n";
    }
    return text;
  };
  const RunResult control = RunProgram({"python3", "-c", kJoin});
  EXPECT_EQ(control.out, expected("OPEN")) << "NO-CONTROL\n" << control.Describe();
  for (const char* profile : {"default", "compat"}) {
    const RunResult attack = RunCoffer({"--seccomp", profile}, {"python3", "-c", kJoin});
    EXPECT_EQ(attack.out, expected("ENODEV")) << profile << "\n" << attack.Describe();
  }
}

// Filters of sockets are programs in the kernel's memory, which nothing counts where there is no memory cgroup.
TEST_P(NetworkEscape, RS_04_NoFilterOnASocket) {
  constexpr char kAttach[] = R"(
import ctypes, errno, socket, struct
code = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0xffff))
filters = struct.pack("HP", 1, ctypes.addressof(code))
for option, value in ((26, filters), (50, struct.pack("=i", 0)), (51, filters), (52, struct.pack("=i", 0)), (27, struct.pack("=i", 0))):
    try:
        socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, option, value)
        print(option, "OPEN")
    except OSError as e:
        print(option, errno.errorcode[e.errno])
)";
  const RunResult control = RunProgram({"python3", "-c", kAttach});
  EXPECT_TRUE(Contains(control.out, "26 OPEN")) << "NO-CONTROL\n" << control.Describe();
  EXPECT_FALSE(Contains(control.out, "ENOPROTOOPT")) << "NO-CONTROL\n" << control.Describe();
  for (const char* profile : {"default", "compat"}) {
    const RunResult attack = RunCoffer(Flags({"--seccomp", profile}), {"python3", "-c", kAttach});
    EXPECT_EQ(attack.out,
              "26 ENOPROTOOPT\n50 ENOPROTOOPT\n51 ENOPROTOOPT\n52 ENOPROTOOPT\n27 ENOENT\n")
        << profile << "\n"
        << attack.Describe();
  }
}

TEST_P(NetworkEscape, NW_03_FastOpenDoesNotReachTheHost) {
  const Canary canary(SOCK_STREAM);
  for (const std::string& address : OwnAddresses()) {
    const RunResult outside = RunOutside({"tcp-fastopen", address, canary.port()});
    EXPECT_EQ(canary.Visitors(), 2) << "NO-CONTROL: " << address << "\n" << outside.out;
    const RunResult result = RunProbe(Flags(), {"tcp-fastopen", address, canary.port()});
    ExpectRan(result);
    EXPECT_EQ(canary.Visitors(), 0) << "OPEN: " << address << "\n" << result.Describe();
    EXPECT_EQ(Contains(result.out, "socket: REFUSED"), !container()) << result.Describe();
  }
}

TEST_P(NetworkEscape, SC_14_Vsock) {
  ExpectContained("SC-14", Flags(), {"socket", "40", "stream"}, {.syscalls = {{"", "socket"}}});
}

TEST_P(NetworkEscape, SC_16_PacketSockets) {
  Expectation expectation;
  expectation.control = Control::kNamespace;
  expectation.syscalls = {{"", "socket"}};
  ExpectContained("SC-16", Flags(), {"socket", "17", "raw", "768"}, expectation);
}

TEST_P(NetworkEscape, SC_22_NetfilterNetlink) {
  Expectation expectation;
  expectation.control = Control::kNamespace;
  expectation.errnos = {"EPERM", "EAFNOSUPPORT"};
  expectation.syscalls = {{"", "socket"}};
  ExpectContained("SC-22", Flags(), {"socket", "16", "raw", "12"}, expectation);
}

INSTANTIATE_TEST_SUITE_P(Level, NetworkEscape, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
