// SPDX-License-Identifier: Apache-2.0
//
// Programs that know of no proxy and speak IPv6 alone: they reach by name what the rules name, and their addresses lead
// nowhere else. Each attack has a control.
#include <errno.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/egress_fixture.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

constexpr const char* kClient = R"(
import os, socket, struct
for k in list(os.environ):
    if 'proxy' in k.lower(): del os.environ[k]
def say(f):
    try: return f()
    except OSError as e: return 'error %s' % e.__class__.__name__
def address(name, family=socket.AF_INET6):
    return say(lambda: socket.getaddrinfo(name, 1, family, socket.SOCK_STREAM)[0][4][0])
def dial(to, first=b'x\n'):
    def f():
        s = socket.socket(socket.AF_INET6)
        s.settimeout(20)
        s.connect(to)
        if first: s.sendall(first)
        return (s.recv(4096) or b'closed').split(b'\r\n')[0].decode('latin-1')
    return say(f)
)";

class EgressIpv6 : public EgressFixture {
 protected:
  Strings Python(const std::string& code) const {
    return {"python3", "-c", kClient + ("ssh = " + std::to_string(greeter_) + "\n") + code};
  }
  RunResult Inside(const Strings& flags, const std::string& code) {
    return RunWith(flags, Python(code));
  }
  std::string Tcp() const { return "tcp://api.test:" + std::to_string(greeter_); }
};

bool HasIpv6() {
  const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ::close(fd);
  return fd >= 0;
}
constexpr const char* kNoIpv6 = "this kernel has no IPv6";

TEST_F(EgressIpv6, AProgramThatAsksForIpv6AloneReachesAnAllowedName) {
  if (!HasIpv6()) {
    GTEST_SKIP() << kNoIpv6;
  }
  const RunResult run = Inside({"--allow", Tcp()}, R"(
print('address', address('api.test'))
print('named', dial(('api.test', ssh)))
print('other', address('other.test'), dial(('other.test', ssh)))
print('port', dial(('api.test', 9)))
)");
  EXPECT_TRUE(Contains(run.out, "address 2001:2::100\n")) << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "named SSH-2.0-greeter")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "other error gaierror error gaierror")) << "OPEN\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "port closed") || Contains(run.out, "port error")) << "OPEN\n"
                                                                                   << run.out;
  EXPECT_EQ(Seen(), "connection greeter\ngreeting x\n") << "OPEN";
  const Json receipt = Receipt();
  bool reached = false;
  for (const Json& entry : receipt["network"]) {
    reached = reached || (entry["host"] == "api.test" && entry["decision"] == "allow");
  }
  EXPECT_TRUE(reached) << receipt["network"].dump();
  EXPECT_TRUE(Contains(receipt["denials"].dump(), "api.test:9")) << receipt["denials"].dump();
  EXPECT_FALSE(Contains(receipt["isolation"]["missing"].dump(), "transparent-egress"))
      << receipt["isolation"].dump();
}

TEST_F(EgressIpv6, CurlOverIpv6IsJudged) {
  if (!HasIpv6()) {
    GTEST_SKIP() << kNoIpv6;
  }
  if (RunProgram({"curl", "--version"}).exit != 0) {
    GTEST_SKIP() << "curl is not installed";
  }
  const std::string at = "https://" + Api();
  const RunResult run = RunWith({"--allow", "GET https://" + Api() + "/v1/**"},
                                {"sh", "-c",
                                 "curl -6 -sS --noproxy '*' " + at +
                                     "/v1/x; echo; curl -6 -sS --noproxy '*' -o /dev/null -w "
                                     "'%{http_code} %{remote_ip}\\n' " +
                                     at + "/v2/y"});
  EXPECT_TRUE(Contains(run.out, "hello /v1/x")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "403 2001:2::100")) << "OPEN\n" << run.out << run.err;
  EXPECT_FALSE(Contains(Seen(), "/v2/y")) << "OPEN";
}

// An address is only worth the name that it was answered for.
TEST_F(EgressIpv6, AddressesWithoutANameLeadNowhere) {
  if (!HasIpv6()) {
    GTEST_SKIP() << kNoIpv6;
  }
  const RunResult run = Inside({"--allow", Tcp()}, R"(
for to in ('2001:2::100', '2001:2::1', '2001:2::', '2001:2:0:ffff::1', '2001:2:0:1::100'):
    print('nameless', to, dial((to, ssh)), dial((to, 3129)))
known = address('api.test')
print('known', known, dial((known, ssh)))
print('next', dial((known[:-1] + '9', ssh)))
print('outside', dial(('2001:2:1::100', ssh)), dial(('2001:db8::1', ssh)), dial(('fd00::1', ssh)))
print('mapped', dial(('::ffff:198.18.1.0', ssh)))
u = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
print('udp', say(lambda: (u.connect(('2001:2::100', 53)), u.send(b'x'), u.recv(10))))
)");
  EXPECT_TRUE(Contains(run.out, "known 2001:2::100 SSH-2.0-greeter")) << "NO-CONTROL\n"
                                                                      << run.out << run.err;
  size_t reached = 0;
  for (const std::string& line : Lines(run.out)) {
    reached += Contains(line, "SSH-2.0") ? 1 : 0;
    EXPECT_FALSE(Contains(line, "SSH-2.0") && (line.starts_with("nameless") ||
                                               line.starts_with("next") || line.starts_with("out")))
        << "OPEN: " << line;
  }
  // A mapped address is the IPv4 one, which stands for the same name.
  EXPECT_EQ(reached, 2U) << run.out;
  EXPECT_EQ(Seen(), "connection greeter\ngreeting x\nconnection greeter\ngreeting x\n") << "OPEN";
  EXPECT_TRUE(Contains(run.out, "udp error")) << "OPEN\n" << run.out;
  const std::string denials = Receipt()["denials"].dump();
  EXPECT_TRUE(Contains(denials, "[2001:2::109]")) << denials;
  EXPECT_TRUE(Contains(run.err, "no name that this call asked for has this address")) << run.err;
}

constexpr const char* kManyAddresses = R"(
import ipaddress, socket, sys
def send(count):
    first, sent = int(ipaddress.IPv6Address('2001:2::')), 0
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    for i in range(count):
        try: sent += s.sendto(b'x', (str(ipaddress.IPv6Address(first + i)), 9))
        except OSError: pass
    return sent
)";

// For each IPv6 address that is sent to over the loopback the kernel keeps a neighbour. No cgroup counts them, and on some
// kernels the table is full at 1,024 of the whole host. So the addresses of names are local, and no other of their block.
TEST_F(EgressIpv6, SH_10_ManyAddressesAreNoMemoryOfTheHost) {
  if (!HasIpv6()) {
    GTEST_SKIP() << kNoIpv6;
  }
  // The control: a network where the whole block is local. Every address is one more in the table of the host.
  const RunResult control = RunProgram({"python3", "-c", std::string(kManyAddresses) + R"(
import os, tempfile
sys.dont_write_bytecode = True
sys.path.insert(0, os.environ['COFFER_SOURCE'] + '/tests/support')
import own_network
try: table = open('/proc/net/stat/ndisc_cache')
except OSError: table = None
def entries():
    table.seek(0)
    return int(table.read().split('\n')[1].split()[0], 16)
with tempfile.TemporaryDirectory() as directory:
    os.chmod(directory, 0o755)
    own_network.enter(directory)
    own_network.lead_here('2001:2::', 48)
    before = entries() if table else 0
    print('sent', send(9000), 'kept', not table or entries() - before > 1000)
)"});
  EXPECT_EQ(control.out, "sent 9000 kept True\n") << "NO-CONTROL\n" << control.Describe();
  const RunResult inside = Inside({"--allow", Tcp()}, std::string(kManyAddresses) + R"(
print('sent', send(9000), 'to', address('api.test'))
)");
  EXPECT_TRUE(Contains(inside.out, "sent 2048 to 2001:2::100\n")) << "OPEN\n"
                                                                  << inside.out << inside.err;
  EXPECT_TRUE(Contains(Receipt()["denials"].dump(), "addresses outside")) << Receipt()["denials"];
}

// A payload's own servers on ::1 are its own. It gets neither into the way nor into the place of ours.
TEST_F(EgressIpv6, TheProgramsOwnNetworkIsItsOwnAndOursIsNot) {
  if (!HasIpv6()) {
    GTEST_SKIP() << kNoIpv6;
  }
  const RunResult run = Inside({"--allow", Tcp()}, R"(
import threading
def serve(at):
    def f():
        s = socket.socket(socket.AF_INET6)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind(at); s.listen()
        def loop():
            while True:
                c, _ = s.accept(); c.sendall(b'own\r\n'); c.close()
        threading.Thread(target=loop, daemon=True).start()
        return 'bound'
    return say(f)
print('mine', serve(('::1', 8080)), dial(('::1', 8080), b''), dial(('localhost', 8080), b''))
print('any', serve(('::', ssh)), dial(('::1', ssh), b''))
known = address('api.test')
print('between', serve((known, ssh)))
print('through', dial(('api.test', ssh)))
print('redirect', serve(('2001:2::1', 3129)))
s = socket.socket(socket.AF_INET6)
print('transparent', say(lambda: s.setsockopt(socket.IPPROTO_IPV6, 75, 1)))
def route(kind):
    n = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    body = struct.pack('BBBBBBBBI', 10, 117, 0, 0, 255, 4, 0, 2, 0)
    body += struct.pack('HH16s', 20, 1, bytes([0x20, 1, 0, 2]) + bytes(12))
    n.send(struct.pack('IHHII', 16 + len(body), kind, 5, 1, 0) + body)
    return struct.unpack('i', n.recv(4096)[16:20])[0]
print('route', say(lambda: route(25)), say(lambda: route(24)))
print('again', dial(('api.test', ssh)))
)");
  EXPECT_TRUE(Contains(run.out, "mine bound own")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "any bound own")) << "NO-CONTROL\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "through SSH-2.0-greeter")) << "OPEN\n" << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "redirect error")) << "OPEN\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "transparent error PermissionError")) << "OPEN\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "route -1 -1")) << "OPEN\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "again SSH-2.0-greeter")) << run.out << run.err;
}

// As on a kernel without IPv6.
void RefuseIpv6() {
  const sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), const_cast<sock_filter*>(filter)};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

TEST_F(EgressIpv6, WithoutIpv6TheNamesHaveIpv4AndTheReceiptSaysSo) {
  const std::string code = R"(
print('v4', address('api.test', socket.AF_INET))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.settimeout(20)
u.sendto(b'\x12\x34\x01\0\0\1\0\0\0\0\0\0\x03api\x04test\0' + struct.pack('>HH', 28, 1), ('198.18.0.1', 53))
print('aaaa', u.recv(1024)[7])
)";
  Strings flags = Here();
  flags.insert(flags.end(), {"--allow", Tcp()});
  RunOptions options;
  options.in_child = RefuseIpv6;
  const RunResult run = RunProgram(CofferWords(flags, Python(code)), options);
  EXPECT_TRUE(Contains(run.out, "v4 198.18.1.0\naaaa 0\n")) << run.out << run.err;
  EXPECT_TRUE(Contains(Receipt()["isolation"]["missing"].dump(), "transparent-egress-ipv6"))
      << Receipt().dump();
  const RunResult doctor = RunProgram({CofferPath(), "doctor"}, options);
  EXPECT_TRUE(Contains(doctor.out, "every program that uses IPv4: ")) << doctor.out;
  if (!HasIpv6()) {
    GTEST_SKIP() << kNoIpv6;
  }
  const RunResult control = RunProgram(CofferWords(flags, Python(code)));
  EXPECT_TRUE(Contains(control.out, "v4 198.18.1.0\naaaa 1\n")) << "NO-CONTROL\n" << control.out;
  EXPECT_FALSE(Contains(Receipt()["isolation"]["missing"].dump(), "transparent-egress"))
      << "NO-CONTROL";
}

}  // namespace
}  // namespace coffer::test
