// SPDX-License-Identifier: Apache-2.0
//
// Programs that know of no proxy (`coffer run --allow`): what they reach by name is what the rules name, and nothing they do
// to the resolver, the redirect or the addresses behind them gets them more. Each attack has a control.
#include <errno.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/support/egress_fixture.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

// Inside, without a proxy. `port` is of the server with TLS, `plain` of the one without, `ssh` of the one that greets.
constexpr const char* kClient = R"(
import os, socket, ssl, struct, sys
for k in list(os.environ):
    if 'proxy' in k.lower(): del os.environ[k]
def say(f):
    try: return f()
    except OSError as e: return 'error %s' % e.__class__.__name__
def address(name): return say(lambda: socket.getaddrinfo(name, 1, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
def send(to, first=b'GET / HTTP/1.0\r\n\r\n', back=4096):
    def f():
        s = socket.create_connection(to, 20)
        if first: s.sendall(first)
        return (s.recv(back) or b'closed').split(b'\r\n')[0].decode('latin-1')
    return say(f)
def tls(to, name, path):
    def f():
        c = ssl.create_default_context()
        c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
        t = c.wrap_socket(socket.create_connection(to, 20), server_hostname=name)
        t.sendall(('GET %s HTTP/1.1\r\nHost: api.test:%d\r\n\r\n' % (path, port)).encode())
        return t.recv(4096).split(b'\r\n')[0].decode()
    return say(f)
def query(name, kind, server=('198.18.0.1', 53)):
    def f():
        u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        u.settimeout(20)
        labels = b''.join(bytes([len(l)]) + l.encode() for l in name.split('.'))
        u.sendto(b'\x12\x34\x01\0\0\1\0\0\0\0\0\0' + labels + b'\0' + struct.pack('>HH', kind, 1), server)
        a = u.recv(1024)
        return 'code %d answers %d' % (a[3] & 15, a[7])
    return say(f)
)";

class EgressTransparent : public EgressFixture {
 protected:
  Strings Python(const std::string& code) const {
    const std::string ports = "port, plain, ssh = " + std::to_string(tls_) + ", " +
                              std::to_string(plain_) + ", " + std::to_string(greeter_) + "\n";
    return {"python3", "-c", kClient + ports + code};
  }
  RunResult Inside(const Strings& flags, const std::string& code) {
    return RunWith(flags, Python(code));
  }
  std::string Tcp() const { return "tcp://api.test:" + std::to_string(greeter_); }
};

TEST_F(EgressTransparent, NamesAreJudgedWithoutAProxy) {
  const RunResult run = Inside({"--allow", Api()}, R"(
print('allowed', tls(('api.test', port), 'api.test', '/direct'))
print('other', address('other.test'))
print('fronted', tls(('api.test', port), 'other.test', '/fronted'))
print('nameless', tls(('api.test', port), None, '/nameless'))
print('port', send(('api.test', plain)))
print('bytes', send(('api.test', port)))
)");
  EXPECT_TRUE(Contains(run.out, "allowed HTTP/1.1 200")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "other error gaierror")) << "OPEN\n" << run.out;
  for (const char* const bad : {"fronted HTTP", "nameless HTTP", "port HTTP", "bytes HTTP"}) {
    EXPECT_FALSE(Contains(run.out, bad)) << "OPEN\n" << run.out;
  }
  const std::string seen = Seen();
  EXPECT_TRUE(Contains(seen, "GET /direct host=" + Api())) << "NO-CONTROL\n" << seen;
  for (const char* const bad : {"/fronted", "/nameless", "other.test", "connection plain"}) {
    EXPECT_FALSE(Contains(seen, bad)) << "OPEN\n" << seen;
  }
  // Each refusal is said and written down, with what would allow it.
  EXPECT_TRUE(Contains(run.err,
                       "refused: other.test: no rule allows other.test; to allow it: "
                       "--allow other.test"))
      << run.err;
  EXPECT_TRUE(Contains(run.err, "--allow api.test:" + std::to_string(plain_))) << run.err;
  const Json receipt = Receipt();
  bool resolve = false;
  for (const Json& denial : receipt["denials"]) {
    resolve = resolve || (denial["target"] == "other.test" && denial["operation"] == "resolve");
  }
  EXPECT_TRUE(resolve) << receipt["denials"].dump();
}

TEST_F(EgressTransparent, TheResolverAnswersAllowedNamesAndNothingElse) {
  const RunResult run = Inside({"--allow", Api()}, R"(
print('a', query('api.test', 1))
print('aaaa', query('api.test', 28))
print('https', query('api.test', 65), query('api.test', 64))
print('text', query('secret.data.evil.test', 16))
print('other', query('other.test', 1))
print('any', query('other.test', 255))
print('elsewhere', query('api.test', 1, ('192.0.2.1', 53)))
t = socket.create_connection(('198.18.0.1', 53), 20)
t.sendall(b'\0\x1a\x12\x34\x01\0\0\1\0\0\0\0\0\0\x03api\x04test\0\0\1\0\1')
print('tcp', t.recv(100)[9:10] == b'\1')
print('file', open('/etc/resolv.conf').read().split())
print('write', say(lambda: open('/etc/resolv.conf', 'w')))
)");
  EXPECT_TRUE(Contains(run.out, "\naaaa code 0 answers 1\n")) << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "a code 0 answers 1\n")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "https code 0 answers 0 code 0 answers 0\n")) << run.out;
  for (const char* const refused :
       {"text code 3 answers 0", "other code 3 answers 0", "any code 3 answers 0",
        "elsewhere error OSError", "tcp True"}) {
    EXPECT_TRUE(Contains(run.out, refused)) << "OPEN: " << refused << "\n" << run.out << run.err;
  }
  EXPECT_TRUE(Contains(run.out, "'nameserver', '198.18.0.1'")) << run.out;
  EXPECT_TRUE(Contains(run.out, "write error")) << "OPEN\n" << run.out;
}

// An address is only worth the name that it was answered for.
TEST_F(EgressTransparent, SyntheticAddressesWithoutANameLeadNowhere) {
  const RunResult run = Inside({"--allow", Tcp()}, R"(
for to in ('198.18.1.0', '198.18.1.7', '198.18.0.1', '198.19.255.255', '198.18.0.0'):
    print('nameless', send((to, ssh), b''), send((to, 3129), b''))
known = address('api.test')
print('known', known, send((known, ssh), b'x\n'))
print('next', send((known[:-1] + '9', ssh), b''))
print('outside', send(('198.20.0.1', ssh)), send(('192.0.2.1', ssh)), send(('10.0.0.1', ssh)))
)");
  EXPECT_TRUE(Contains(run.out, "known 198.18.1.0 SSH-2.0-greeter")) << "NO-CONTROL\n"
                                                                     << run.out << run.err;
  for (const std::string& line : Lines(run.out)) {
    EXPECT_EQ(Contains(line, "SSH-2.0"), line.starts_with("known")) << "OPEN: " << line;
  }
  EXPECT_EQ(Seen(), "connection greeter\ngreeting x\n") << "OPEN";
  EXPECT_TRUE(Contains(run.err, "no name that this call asked for has this address")) << run.err;
}

// A payload may use its own loopback as it likes. It cannot put itself in the way, nor in the place, of ours.
TEST_F(EgressTransparent, TheProgramsOwnNetworkIsItsOwnAndOursIsNot) {
  const RunResult run = Inside({"--allow", Tcp()}, R"(
import threading
def serve(at):
    def f():
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind(at); s.listen()
        def loop():
            while True:
                c, _ = s.accept(); c.sendall(b'own\r\n'); c.close()
        threading.Thread(target=loop, daemon=True).start()
        return 'bound'
    return say(f)
print('mine', serve(('127.0.0.1', 8080)), send(('127.0.0.1', 8080), b''), send(('localhost', 8080), b''))
print('any', serve(('0.0.0.0', ssh)), send(('127.0.0.1', ssh), b''))
known = address('api.test')
print('between', serve((known, ssh)))
print('through', send(('api.test', ssh), b'y\n'))
print('resolver', serve(('198.18.0.1', 53)), say(lambda: socket.socket(2, 2).bind(('0.0.0.0', 53))))
print('redirect', serve(('198.18.0.1', 3129)))
s = socket.socket()
print('transparent', say(lambda: s.setsockopt(socket.SOL_IP, 19, 1)))
print('netfilter', say(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)))
def route(kind):
    n = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    body = struct.pack('BBBBBBBBI', 2, 15, 0, 0, 255, 4, 254, 2, 0) + struct.pack('HH4s', 8, 1, bytes([198, 18, 0, 0]))
    n.send(struct.pack('IHHII', 16 + len(body), kind, 5, 1, 0) + body)
    return struct.unpack('i', n.recv(4096)[16:20])[0]
print('route', say(lambda: route(25)), say(lambda: route(24)))
print('again', send(('api.test', ssh), b'z\n'))
)");
  EXPECT_TRUE(Contains(run.out, "mine bound own own")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "any bound own")) << "NO-CONTROL\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "through SSH-2.0-greeter")) << "OPEN\n" << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "resolver error PermissionError error PermissionError")) << "OPEN\n"
                                                                                         << run.out;
  EXPECT_TRUE(Contains(run.out, "redirect error")) << "OPEN\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "transparent error PermissionError")) << "OPEN\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "netfilter error")) << "OPEN\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "route -1 -1")) << "OPEN\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "again SSH-2.0-greeter")) << run.out << run.err;
  EXPECT_EQ(Seen(), "connection greeter\ngreeting y\nconnection greeter\ngreeting z\n");
}

// Where requests are judged, they are without a proxy too, and where TLS is demanded plain HTTP is refused.
TEST_F(EgressTransparent, RequestsAreJudgedTheSame) {
  const std::string code = R"(
import urllib.request, urllib.error
def get(url, **more):
    try: return urllib.request.urlopen(urllib.request.Request(url, **more), timeout=20).read()
    except urllib.error.HTTPError as e: return e.code
    except OSError as e: return 'error'
at = 'https://api.test:%d' % port
print('get', get(at + '/v1/a'))
print('path', get(at + '/v2/b'))
print('method', get(at + '/v1/c', method='DELETE'))
print('plain', get('http://api.test:%d/v1/d' % plain))
)";
  const RunResult run = Inside({"--allow", "GET https://" + Api() + "/v1/**"}, code);
  EXPECT_TRUE(Contains(run.out, "get b'hello /v1/a'")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "path 403")) << "OPEN\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "method 403")) << "OPEN\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "plain error")) << "OPEN\n" << run.out;
  EXPECT_EQ(Seen(), "connection tls\nrequest GET /v1/a host=" + Api() + " body=0\n") << "OPEN";
  const RunResult plain = Inside({"--allow", Url("api.test", "/v1/**")}, code);
  EXPECT_TRUE(Contains(plain.out, "plain b'hello /v1/d'")) << "NO-CONTROL\n" << plain.out;
  EXPECT_TRUE(Contains(plain.out, "get error")) << "OPEN\n" << plain.out;
}

// Floods of queries and connections end in bounds, and the next program is served.
TEST_F(EgressTransparent, FloodsAreBounded) {
  const RunResult run = Inside({"--allow", Api(), "--open-files", "400"}, R"(
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.setblocking(False)
for i in range(20000):
    name = b'n%d' % i
    for packet in (b'\x12\x34\x01\0\0\1\0\0\0\0\0\0' + bytes([len(name)]) + name + b'\x04evil\x04test\0\0\1\0\1',
                   os.urandom(i % 600)):
        try: u.sendto(packet, ('198.18.0.1', 53))
        except OSError: pass
held = [socket.create_connection(('198.18.9.%d' % i, 443), 20) for i in range(40)]
print('beside', tls(('api.test', port), 'api.test', '/beside'))
)");
  EXPECT_TRUE(Contains(run.out, "beside HTTP/1.1 200")) << run.out << run.err;
  const Json receipt = Receipt();
  size_t names = 0;
  for (const Json& denial : receipt["denials"]) {
    names += Contains(denial["target"].get<std::string>(), "evil.test") ? 1 : 0;
  }
  EXPECT_GT(names, 0u) << "NO-CONTROL\n" << run.err;
  EXPECT_LE(names, 128u);
}

// As on a kernel without netfilter's netlink.
void RefuseNetfilter() {
  const sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_NETFILTER, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPROTONOSUPPORT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), const_cast<sock_filter*>(filter)};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

// Less than was wished for is said, never silent. What is left is as narrow as before.
TEST_F(EgressTransparent, WithoutTheRedirectTheProxyServesAndTheReceiptSaysSo) {
  const std::string code = R"(
s = socket.create_connection(('127.0.0.1', 3128), 20)
s.sendall(('CONNECT api.test:%d HTTP/1.1\r\nHost: api.test:%d\r\n\r\n' % (port, port)).encode())
print('proxy', s.recv(100).split(b'\r\n')[0].decode())
print('name', address('api.test'), send(('198.18.1.0', port)))
)";
  Strings flags = Here();
  flags.insert(flags.end(), {"--allow", Api()});
  const auto missing = [&] {
    const Json receipt = Receipt();
    return Contains(receipt["isolation"]["missing"].dump(), "transparent-egress");
  };
  RunOptions options;
  options.in_child = RefuseNetfilter;
  const RunResult run = RunProgram(CofferWords(flags, Python(code)), options);
  EXPECT_TRUE(Contains(run.out, "proxy HTTP/1.1 200")) << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "name error gaierror error OSError")) << run.out;
  EXPECT_TRUE(Contains(run.err, "only programs that use a proxy reached the network")) << run.err;
  EXPECT_TRUE(missing()) << Receipt().dump();
  const RunResult doctor = RunProgram({CofferPath(), "doctor"}, options);
  EXPECT_TRUE(Contains(doctor.out, "only programs that use a proxy: ")) << doctor.out;
  const RunResult control = RunProgram(CofferWords(flags, Python(code)));
  EXPECT_TRUE(Contains(control.out, "name 198.18.1.0")) << "NO-CONTROL\n" << control.out;
  EXPECT_FALSE(missing()) << "NO-CONTROL";
  EXPECT_FALSE(Contains(control.err, "only programs")) << "NO-CONTROL\n" << control.err;
}

// A call without --allow has neither the resolver nor the addresses.
TEST_F(EgressTransparent, ACallWithoutRulesHasNothingOfIt) {
  const std::string code = R"(
print('file', os.path.exists('/etc/resolv.conf'), 'dns' in open('/etc/nsswitch.conf').read())
print('route', '0012C6' in open('/proc/net/route').read(), send(('198.18.1.0', 443)))
print('resolver', query('api.test', 1))
)";
  const RunResult none = RunBare({}, Python(code));
  EXPECT_TRUE(Contains(none.out, "file False False\n")) << none.out << none.err;
  EXPECT_TRUE(Contains(none.out, "route False error OSError\n")) << none.out;
  EXPECT_TRUE(Contains(none.out, "resolver error OSError\n")) << none.out;
  const RunResult control = Inside({"--allow", Api()}, code);
  EXPECT_TRUE(Contains(control.out, "file True True\n")) << "NO-CONTROL\n" << control.out;
  EXPECT_TRUE(Contains(control.out, "resolver code 0 answers 1\n")) << "NO-CONTROL\n"
                                                                    << control.out;
}

}  // namespace
}  // namespace coffer::test
