// SPDX-License-Identifier: Apache-2.0
//
// A packet capture in the network that the egress process dials from: what leaves for an allowed call is one lookup of the
// allowed name and a connection to the address that was checked, and for a refused one nothing. So it is with servers at
// addresses of IPv4 and of IPv6, and with the process that dials for a daemon's calls.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/run.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

RunResult Capture(const std::string& family) {
  RunOptions options;
  options.timeout = Seconds(240);
  return RunProgram(
      {"python3", std::string(::getenv("COFFER_SOURCE")) + "/tests/support/egress_capture.py",
       CofferPath(), family},
      options);
}

TEST(EgressCapture, NothingButTheCheckedAddressIsContacted) {
  const RunResult run = Capture("ipv4");
  // The case, what the program inside printed, what the capture saw.
  const Strings expected = {
      // The same capture sees what a process outside of a boundary sends.
      "control | no | asked secret.evil.test, protocol 1 127.0.0.1, syn 127.0.0.3:9999, "
      "udp 127.0.0.3:53",
      "spliced | hello | asked good.test, syn 127.0.0.2:443",
      "spliced without a proxy | hello | asked good.test, syn 127.0.0.2:443",
      "judged | hello | asked good.test, syn 127.0.0.2:443",
      "another path | 403 | nothing",
      "another name | no | nothing",
      "another name without a proxy | no | nothing",
      "a name with a secret | no | nothing",
      "another port | no | nothing",
      "another port without a proxy | no | nothing",
      "a refused address | no | asked meta.test",
      "a refused address in an opened range | no | asked meta.test",
      // NW-05's control: the metadata service is there, and reached by the operator who named it.
      "a refused address opened | hello | asked meta.test, syn 169.254.169.254:443",
      // A client of the proxy learns first whether the server can be reached. No byte of its own goes there.
      "another server name | 0 | asked good.test, syn 127.0.0.2:443",
      "another server name without a proxy | 0 | nothing",
      "its own server name | 1 | asked good.test, syn 127.0.0.2:443",
      "not TLS without a proxy | 7 | nothing",                           // a TLS alert
      "without names | sent refused refused refused refused | nothing",  // the first to its loopback
      "no rules | no | nothing",
  };
  EXPECT_TRUE(Contains(run.out, expected.front())) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_EQ(Lines(run.out), expected) << "OPEN\n" << run.out << run.err;
}

// The process that dials for all calls of a daemon. What goes to the daemon's own port is left out.
TEST(EgressCapture, TheDaemonsRoleContactsNothingButTheCheckedAddress) {
  const RunResult run = Capture("daemon");
  const Strings expected = {
      "start | no | nothing",
      "control | no | asked secret.evil.test, protocol 1 127.0.0.1, syn 127.0.0.3:9999, "
      "udp 127.0.0.3:53",
      "spliced | hello | asked good.test, syn 127.0.0.2:443",
      "spliced without a proxy | hello | asked good.test, syn 127.0.0.2:443",
      "judged | hello | asked good.test, syn 127.0.0.2:443",
      "judged without a proxy | hello | asked good.test, syn 127.0.0.2:443",
      "another path | 403 | nothing",
      "another name | no | nothing",
      "another name without a proxy | no | nothing",
      "a name with a secret | no no | nothing",
      "another port | no no | nothing",
      "a refused address | no no | asked inner.test",
      "a metadata service that was opened | hello | asked meta.test, syn 169.254.169.254:443",
      "another server name | no | asked good.test, syn 127.0.0.2:443",
      "another server name without a proxy | no | nothing",
      "its own server name | hello hello | asked good.test, syn 127.0.0.2:443",
      "without names | sent refused refused refused refused | nothing",
      "no rules | no no no sent refused refused refused refused | nothing",
      "spliced again | hello | asked good.test, syn 127.0.0.2:443",
  };
  EXPECT_TRUE(Contains(run.out, expected[1])) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_EQ(Lines(run.out), expected) << "OPEN\n" << run.out << run.err;
}

TEST(EgressCapture, AServerOfIpv6IsDialledAsOneOfIpv4) {
  const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ::close(fd);
  if (fd < 0) {
    GTEST_SKIP() << "this kernel has no IPv6";
  }
  const RunResult run = Capture("ipv6");
  const Strings expected = {
      "control | no | asked secret.evil.test, protocol 58 [::1], syn [2600::3]:9999, "
      "udp [2600::3]:53",
      "spliced | hello | asked good.six.test, syn [2600::2]:443",
      "spliced without a proxy | hello | asked good.six.test, syn [2600::2]:443",
      "judged | hello | asked good.six.test, syn [2600::2]:443",
      "judged without a proxy | hello | asked good.six.test, syn [2600::2]:443",
      "another path | 403 | nothing",
      "another name | no | nothing",
      "another port | no | nothing",
      "resolved by the operator | hello | syn [2600::3]:443",
      "resolved by the operator to a refused address | no | nothing",
      // Each refusal has a control: the same address, opened.
      "self without a proxy | no | asked self.six.test",
      "self | no | asked self.six.test",
      "self opened | hello | asked self.six.test, syn [::1]:443",
      "private without a proxy | no | asked private.six.test",
      "private | no | asked private.six.test",
      "private opened | hello | asked private.six.test, syn [fd00::1]:443",
      "meta without a proxy | no | asked meta.six.test",
      "meta | no | asked meta.six.test",
      "meta opened | hello | asked meta.six.test, syn [fd00:ec2::254]:443",
      "mapped without a proxy | no | asked mapped.six.test",
      "mapped | no | asked mapped.six.test",
      "mapped opened | hello | asked mapped.six.test, syn 127.0.0.1:443",
      // One address of the two is refused, so the name is.
      "mixed without a proxy | no | asked mixed.six.test",
      "mixed | no | asked mixed.six.test",
      "mixed opened | hello | asked mixed.six.test, syn [2600::2]:443",
      "link without a proxy | no | asked link.six.test",
      "link | no | asked link.six.test",
  };
  EXPECT_TRUE(Contains(run.out, expected.front())) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_EQ(Lines(run.out), expected) << "OPEN\n" << run.out << run.err;
}

}  // namespace
}  // namespace coffer::test
