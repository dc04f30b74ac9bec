#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names that a program chooses below a wildcard, beside a name server that counts, in a network of its own.

Usage: egress_lookups.py COFFER. Prints one line for each case: what the program was answered, how many names below the zone the
server was asked for, with how many bytes in front of the zone, and how often the one that was asked for most.
The first case is the same program in the same network, outside of a boundary.
"""
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
import own_network  # noqa: E402

COFFER = sys.argv[1]
ZONE = ".zone.test"
holder = tempfile.TemporaryDirectory(prefix="lookups-")
directory = holder.name
os.chmod(directory, 0o755)
lock = threading.Lock()
queries = set()  # with their ids: a query that is sent again, because the machine is busy, is one

# Every name leads to a loopback address, which may not be dialled: 403 is said after the lookup, 429 instead of one.
NAMES = r"""
import collections, os, socket, ssl, sys
ZONE = ".zone.test"
def short(i): return "n%04d" % i + ZONE
def long(i): return "n%04d" % i + "." + ".".join("x" * 63 for _ in range(3)) + ZONE
"""
OUTSIDE = NAMES + r"""
for i in range(1100): socket.getaddrinfo(short(i), 1, socket.AF_INET, socket.SOCK_STREAM)
print("found=1100")
"""
INSIDE = NAMES + r"""
for k in list(os.environ):
    if "proxy" in k.lower(): del os.environ[k]
def proxy(): return socket.create_connection(("127.0.0.1", 3128), 60)
def status(s): return (s.recv(4096) or b"closed").split(b"\r\n")[0].decode("latin-1").split(" ")[1]
def connect(name, port=443):
    with proxy() as s:
        s.sendall(("CONNECT %s:%d HTTP/1.1\r\n\r\n" % (name, port)).encode())
        return status(s)
def ssh(name): return connect(name, 22)
def get(s, target, name, port):
    s.sendall(("GET %s HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n\r\n" % (target, name, port)).encode())
    return status(s)
def absolute(name):
    with proxy() as s: return get(s, "http://%s/v1/x" % name, name, 80)
def socks(name):
    with proxy() as s:
        s.sendall(b"\5\1\0")
        s.recv(2)
        s.sendall(b"\5\1\0\3" + bytes([len(name)]) + name.encode() + b"\1\xbb")
        return "socks-%d" % s.recv(10)[1]
def judged(name):
    with proxy() as s:
        s.sendall(("CONNECT %s:8443 HTTP/1.1\r\n\r\n" % name).encode())
        said = status(s)
        if said != "200": return said
        c = ssl.create_default_context()
        c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
        return get(c.wrap_socket(s, server_hostname=name), "/v1/x", name, 8443)
def direct(name):  # by the name, without the proxy
    with socket.create_connection((name, 80), 60) as s: return get(s, "/v1/x", name, 80)
WAYS = (connect, absolute, socks, ssh, judged, direct)
def each(prefix): return ["%s=%s" % (way.__name__, way(prefix + way.__name__ + ZONE)) for way in WAYS]
def many(name, count):
    said = collections.Counter(connect(name(i)) for i in range(count))
    return ["%s=%d" % (code, said[code]) for code in sorted(said)]
"""
CASES = {
    "a few": "print(*many(short, 20))",
    "each way": "print(*each('a-'))",
    "one name": "print(*many(lambda i: short(0), 50))",
    "short names": "print(*many(short, 1100))",
    "long names": "print(*many(long, 100))",
    # What the bound leaves: names that a rule writes out, and names whose answer is kept.
    "past the bound": "many(short, 1024); print(*each('b-'), 'kept=' + connect(short(3)), 'written=' + connect('good.test'))",
}
RULES = ["*.zone.test", "http://*.zone.test/v1/**", "tcp://*.zone.test:22", "https://*.zone.test:8443/v1/**", "good.test"]


def serve():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.53", 53))

    def loop():
        while True:
            data, peer = s.recvfrom(2048)
            name, kind, end = own_network.question(data)
            if kind == 1:
                with lock:
                    queries.add((name, data[:2]))
            head = data[:2] + struct.pack(">HHHHH", 0x8180, 1, 1 if kind == 1 else 0, 0, 0) + data[12:end]
            record = struct.pack(">HHHIH", 0xC00C, 1, 1, 0, 4) + socket.inet_aton("127.0.0.2")
            s.sendto(head + (record if kind == 1 else b""), peer)

    threading.Thread(target=loop, daemon=True).start()


def asked():
    with lock:
        names = [name for name, _ in queries]
        queries.clear()
    below = {name[:-len(ZONE)] for name in names if name.endswith(ZONE)}
    others = sorted({name for name in names if not name.endswith(ZONE)})
    most = max((names.count(name) for name in names), default=0)
    # With the dot that ends each of them.
    return " ".join([f"names {len(below)} bytes {sum(len(name) + 1 for name in below)} most {most}", *others])


def case(name, words, code):
    ended = subprocess.run([*words, "python3", "-c", code], capture_output=True, text=True)
    if ended.returncode != 0:
        sys.stderr.write(ended.stderr)
    print(f"{name} | {' '.join(ended.stdout.split())} | {asked()}", flush=True)


own_network.enter(directory)
serve()
case("outside", [], OUTSIDE)
for name, code in CASES.items():
    case(name, [COFFER, "run", "--wall", "240s", *[word for rule in RULES for word in ("--allow", rule)], "--"], INSIDE + code)
