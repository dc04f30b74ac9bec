#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The egress process beside a DNS server that counts, in a network of its own where nothing else can be asked.

Usage: egress_names.py COFFERD. Prints one line for each case: what was asked for, the answer, the names that were looked
up for it, and the addresses that were dialled.
"""
import array
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
import own_network  # noqa: E402

holder = tempfile.TemporaryDirectory(prefix="names-")
directory = holder.name
os.chmod(directory, 0o755)  # the process reads resolv.conf with a uid of its own


queries = []
dialled = []  # in the order of accept, with our own last
changed = threading.Condition()
turn = {"rebind.test": 0}


def address_of(name):
    if name == "rebind.test":  # another answer each time
        turn[name] += 1
        return "127.0.0.2" if turn[name] == 1 else "127.0.0.3"
    return {"good.test": "127.0.0.2", "a.zone.test": "127.0.0.2", "meta.test": "169.254.169.254",
            "private.test": "10.1.2.3", "here.test": "127.0.0.3"}.get(name)


def serve_names():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.53", 53))

    def loop():
        while True:
            data, peer = s.recvfrom(2048)
            labels, at = [], 12
            while data[at]:
                labels.append(data[at + 1:at + 1 + data[at]].decode())
                at += 1 + data[at]
            name, kind = ".".join(labels).lower(), struct.unpack(">H", data[at + 1:at + 3])[0]
            queries.append(name)
            address = address_of(name) if kind == 1 else None
            known = address is not None or (kind != 1 and address_of_quietly(name))
            answer = data[:2] + struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, 1 if address else 0, 0, 0)
            answer += data[12:at + 5]
            if address:
                answer += struct.pack(">HHHIH", 0xC00C, 1, 1, 0, 4) + socket.inet_aton(address)
            s.sendto(answer, peer)

    threading.Thread(target=loop, daemon=True).start()


def address_of_quietly(name):
    kept = dict(turn)
    found = address_of(name)
    turn.update(kept)
    return found


def serve_address(address):
    s = socket.create_server((address, 443))

    def loop():
        while True:
            connection, _ = s.accept()
            with changed:
                dialled.append(address)
                changed.notify_all()
            connection.close()

    threading.Thread(target=loop, daemon=True).start()


def start_egress(cofferd, grants):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    given = os.memfd_create("grants")
    os.write(given, json.dumps(grants).encode())
    os.lseek(given, 0, os.SEEK_SET)
    log = os.memfd_create("log")
    os.write(log, bytes(24))

    def places():
        kept = [fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in (theirs.fileno(), given, log)]
        for place, fd in enumerate(kept, 3):
            os.dup2(fd, place)

    process = subprocess.Popen([cofferd, "egress-call"], preexec_fn=places, close_fds=False, env={"LOCALDOMAIN": ""})
    theirs.close()
    ready = ours.recv(65536)
    if ready[:1] == b"K":  # the certificate of its CA
        ready = ours.recv(65536)
    if ready[:1] != b"R":
        raise SystemExit(f"the process is not ready: {ready!r}")
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    port = listener.getsockname()[1]
    resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    resolver.bind(("127.0.0.1", 0))
    redirect = socket.create_server(("127.0.0.1", 0))
    redirect.setblocking(False)
    names = resolver.getsockname()
    fds = [listener.fileno(), resolver.fileno(), redirect.fileno()]
    ours.sendmsg([b"L"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    for one in (listener, resolver, redirect):
        one.close()
    return process, ours, port, names


def wait_for(count):
    with changed:
        changed.wait_for(lambda: len(dialled) >= count, 60)


def ask(port, name):
    queries.clear()
    before = len(dialled)
    with socket.create_connection(("127.0.0.1", port), 30) as s:
        s.settimeout(30)
        s.sendall(f"CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n\r\n".encode())
        answer = s.recv(4096).split(b"\r\n")[0].decode()
    if " 200 " in answer:
        wait_for(before + 1)
    print(name, answer.split(" ")[1] if " " in answer else "closed", "asked", ",".join(sorted(set(queries))) or "nothing",
          "dialled", ",".join(dialled[before:]) or "nothing", flush=True)


def resolve(names, name):
    queries.clear()
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(30)
        s.sendto(b"\x12\x34\x01\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\1\0\1", names)
        answer = s.recv(1024)
    found = socket.inet_ntoa(answer[-4:]) if answer[7] else f"code {answer[3] & 15}"
    print("resolve", name, found, "asked", ",".join(queries) or "nothing", flush=True)


own_network.enter(directory)
serve_names()
for one in ("127.0.0.2", "127.0.0.3"):
    serve_address(one)
process, control, port, names = start_egress(sys.argv[1], {
    "allow": ["good.test", "*.zone.test", "meta.test", "private.test", "here.test", "rebind.test"],
    "resolve": [], "addresses": ["127.0.0.2/32"], "upstream_ca": "", "own": ["127.0.0.1"]})
for name in ("good.test", "secret.evil.test", "good.test.evil.test", "a.zone.test", "zone.test", "missing.zone.test",
             "meta.test", "private.test", "here.test", "rebind.test", "rebind.test"):
    ask(port, name)
for name in ("good.test", "secret.evil.test", "secret.zone.test", "missing.zone.test", "zone.test"):
    resolve(names, name)
control.close()
print("ended", process.wait(60), flush=True)
# Queues are in order: once ours was accepted, none that came before it is waiting.
before = len(dialled)
for one in ("127.0.0.2", "127.0.0.3"):
    socket.create_connection((one, 443), 30).close()
wait_for(before + 2)
print("in all", len(dialled) - 2)
