#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A name of the program's own choice leads to an address that this host gets while the call runs.

Usage: egress_late_address.py COFFER. Prints one line for each case: its name, and what the program inside got.
"""
import fcntl
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
ADDRESS = "8.8.4.8"  # of the internet; in this network it is ours
PORT = 4443
CLIENT = f"""
import socket
print("runs", flush=True)
input()
s = socket.create_connection(("127.0.0.1", 3128), 60)
s.sendall(b"CONNECT late.test:{PORT} HTTP/1.1\\r\\nHost: late.test:{PORT}\\r\\n\\r\\n")
got = b""
while True:
    more = s.recv(4096)
    if not more: break
    got += more
print("hello" if got.endswith(b"hello") else got.split(b"\\r\\n")[0].decode(), "an address of this host" if b"address of this host" in got else "")
"""


def set_address(address):
    """SIOCSIFADDR for a second address of the loopback; 0.0.0.0 takes it away."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8916, struct.pack("16sHH4s8x", b"lo:1", socket.AF_INET, 0, socket.inet_aton(address)))


def serve():
    listener = socket.create_server(("", PORT))

    def loop():
        while True:
            with listener.accept()[0] as connection:
                connection.sendall(b"hello")

    threading.Thread(target=loop, daemon=True).start()


def case(name, given_before, flags):
    if given_before:
        set_address(ADDRESS)
    call = subprocess.Popen([COFFER, "run", "--quiet", "--allow", f"tcp://late.test:{PORT}", "--resolve", f"late.test={ADDRESS}",
                             *flags, "--", "python3", "-c", CLIENT],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    started = call.stdout.readline().strip()
    set_address(ADDRESS)
    out, err = call.communicate("\n", timeout=120)
    print(f"{name} | {started} {out.strip() or err.strip()}", flush=True)
    set_address("0.0.0.0")


with tempfile.TemporaryDirectory(prefix="late-") as directory:
    os.chmod(directory, 0o755)
    own_network.enter(directory)
    serve()
    case("before", True, [])
    case("later", False, [])
    case("later, and named", False, ["--dangerously-allow-address", ADDRESS + "/32"])
