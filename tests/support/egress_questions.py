#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks questions about the network from inside a boundary, one line for each: "QUESTION | VERDICT".

Usage: egress_questions.py "QUESTION\n...". `forward METHOD HOST PORT PATH` is a request to the proxy, `connect HOST PORT` a tunnel,
`tls TUNNEL SERVER-NAME HOST PORT PATH` a request inside one, `socks KIND HOST PORT PATH` one through SOCKS5 (3 is a name, with NUL for a
zero byte, 1 and 4 are addresses). `direct HOST PORT PATH` and `secure HOST SERVER-NAME PORT PATH` know of no proxy. The rest are
`resolve NAME`, `udp ADDRESS PORT` and `raw FAMILY KIND PROTOCOL`.
"""
import re
import socket
import ssl
import struct
import sys


def heard(s):
    s.settimeout(60)
    got = b""
    try:
        while piece := s.recv(4096):
            got += piece
            tunnel = got.startswith(b"HTTP/1.1 200 ") and b"\r\n\r\n" in got and b"ength" not in got
            if tunnel or re.search(rb'hello|"error":"[^"]*"', got):
                break
    except OSError:
        pass
    status = re.match(rb"HTTP/1.1 (\d+)", got)
    error = re.search(rb'"error":"([^"]*)"', got)
    return " ".join(found.group(1).decode() for found in (status, error) if found) or "closed"


def request(method, target, host):
    return f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()


def to_proxy():
    return socket.create_connection(("127.0.0.1", 3128), 60)


def forward(method, host, port, path):
    s = to_proxy()
    s.sendall(request(method, f"http://{host}:{port}{path}", f"{host}:{port}"))
    return heard(s)


def connect(host, port):
    s = to_proxy()
    s.sendall(request("CONNECT", f"{host}:{port}", f"{host}:{port}"))
    return heard(s)


def inside(s, name, host, port, path):
    try:
        t = ssl.create_default_context().wrap_socket(s, server_hostname=name)
    except OSError:
        return "no TLS"
    t.sendall(request("GET", path, f"{host}:{port}"))
    return heard(t)


def tls(to, name, host, port, path):
    s = to_proxy()
    s.sendall(request("CONNECT", f"{to}:{port}", f"{to}:{port}"))
    said = heard(s)
    return inside(s, name, host, port, path) if said == "200" else said


def socks(kind, host, port, path):
    s = to_proxy()
    s.settimeout(60)
    name = host.encode().replace(b"NUL", b"\0")
    where = bytes([len(name)]) + name
    if kind != "3":
        where = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    s.sendall(b"\5\1\0" + bytes([5, 1, 0, int(kind)]) + where + struct.pack(">H", int(port)))
    got = b""
    while len(got) < 4 and (piece := s.recv(64)):
        got += piece
    if got[3:4] != b"\0":
        return "socks " + (str(got[3]) if len(got) > 3 else "closed")
    s.sendall(request("GET", path, f"{host}:{port}"))
    return heard(s)


def direct(host, port, path):
    s = socket.create_connection((host, int(port)), 60)
    s.sendall(request("GET", path, f"{host}:{port}"))
    return heard(s)


def secure(to, name, port, path):
    return inside(socket.create_connection((to, int(port)), 60), name, name, port, path)


def resolve(name):
    return "a name" if socket.getaddrinfo(name, 80) else "nothing"


def udp(host, port):
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(2)
    s.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0\6secret\4evil\4test\0\0\1\0\1", (host, int(port)))
    try:
        return "answer %d" % (s.recv(512)[3] & 15)
    except TimeoutError:
        return "no answer"


def raw(family, kind, protocol):
    socket.socket(int(family), int(kind), int(protocol))
    return "a socket"


for line in sys.argv[1].splitlines():
    words = line.split()
    try:
        said = globals()[words[0]](*words[1:])
    except socket.gaierror:
        said = "no such name"
    except OSError as error:
        said = "errno %s" % error.errno
    print(line, "|", said, flush=True)
