#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A name that a rule allows and that does not exist, on a host whose resolv.conf completes names (`search`) and whose nsswitch.conf
asks the neighbourhood too.

Usage: egress_search.py COFFER. Prints one line for each case: what the program was told, and the names that were looked up
for it, at the name server and by multicast. The first case is the same lookup outside of a boundary.
"""
import os
import socket
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
import own_network  # noqa: E402

COFFER = sys.argv[1]
holder = tempfile.TemporaryDirectory(prefix="search-")
directory = holder.name
os.chmod(directory, 0o755)
queries = []
spoken = []

OUTSIDE = r"""
import socket
try: print("found", socket.getaddrinfo("missing.good.test", 443, socket.AF_INET)[0][4][0])
except OSError as e: print("not found")
"""
INSIDE = r"""
import socket
s = socket.create_connection(("127.0.0.1", 3128), 20)
s.settimeout(60)
s.sendall(b"CONNECT missing.good.test:443 HTTP/1.1\r\nHost: missing.good.test:443\r\n\r\n")
print(s.recv(4096).split(b" ")[1].decode())
"""


def address_of(name):
    queries.append(name)
    return "127.0.0.2" if name.endswith("evil.test") else None


def hear(port, group):
    """Questions by multicast, as mDNS and LLMNR send them."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("", port))
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton("127.0.0.1"))

    def loop():
        while True:
            spoken.append(own_network.question(s.recvfrom(2048)[0])[0])

    threading.Thread(target=loop, daemon=True).start()


def case(name, words, code):
    queries.clear()
    spoken.clear()
    ended = subprocess.run([*words, "python3", "-c", code], capture_output=True, text=True)
    sys.stderr.write(ended.stderr)
    print(f"{name} | {' '.join(ended.stdout.split())} | {' '.join(sorted(set(queries + spoken))) or 'nothing'}", flush=True)


own_network.enter(directory, "search evil.test\noptions ndots:5\n", "mdns4_minimal mdns resolve myhostname files dns")
own_network.serve_names(address_of)
for port, group in ((5353, "224.0.0.251"), (5355, "224.0.0.252")):
    hear(port, group)
case("outside", [], OUTSIDE)
case("a rule", [COFFER, "run", "--wall", "120s", "--allow", "missing.good.test", "--"], INSIDE)
case("a wildcard", [COFFER, "run", "--wall", "120s", "--allow", "*.good.test", "--dangerously-allow-address", "127.0.0.2", "--"],
     INSIDE)
