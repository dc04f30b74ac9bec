# SPDX-License-Identifier: Apache-2.0
"""A network of the calling process's own, in which only the loopback is up and a name server of ours is asked.

As an ordinary user in a user namespace where the uid stays what it is. The process that calls enter() has every right in it;
programs that it starts have none, but may bind low ports.
"""
import ctypes
import fcntl
import os
import socket
import struct
import threading

NEWNS, NEWUSER, NEWNET = 0x00020000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
libc = ctypes.CDLL(None, use_errno=True)


def must(answer):
    if answer != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def bind_text(directory, place, text):
    """The file `place` reads `text` in this mount namespace."""
    path = os.path.join(directory, os.path.basename(place))
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o644)
    must(libc.mount(path.encode(), os.path.realpath(place).encode(), None, MS_BIND, None))


def enter(directory, resolver="", hosts="files dns"):
    """`resolver` is more lines of resolv.conf, `hosts` where nsswitch.conf looks for names."""
    uid, gid = os.getuid(), os.getgid()
    must(libc.unshare(NEWNS | NEWNET | (NEWUSER if uid != 0 else 0)))
    if uid != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open("/proc/self/" + name, "w") as file:
                file.write(text)
    must(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))
    bind_text(directory, "/etc/resolv.conf", "nameserver 127.0.0.53\n" + resolver)
    bind_text(directory, "/etc/nsswitch.conf", f"hosts: {hosts}\n")
    with socket.socket() as s:  # raises the loopback: SIOCSIFFLAGS, IFF_UP | IFF_RUNNING
        fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 0x41))
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", "w") as file:
        file.write("0")


def lead_here(prefix, bits):
    """The addresses below the prefix lead to this network, as its servers on "::" or at them have it. No interface has them."""
    family = socket.AF_INET6 if ":" in prefix else socket.AF_INET
    packed = socket.inet_pton(family, prefix)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:  # RTM_NEWROUTE: an answer, a new one; RTN_LOCAL
        # For IPv4 such a route is of this host's scope (RT_SCOPE_HOST).
        body = struct.pack("BBBBBBBBI", family, bits, 0, 0, 255, 4, 254 if family == socket.AF_INET else 0, 2, 0)
        body += struct.pack("HH", 4 + len(packed), 1) + packed
        body += struct.pack("HHI", 8, 4, socket.if_nametoindex("lo"))
        s.send(struct.pack("IHHII", 16 + len(body), 24, 0x405, 1, 0) + body)
        must(struct.unpack("i", s.recv(4096)[16:20])[0])


def question(data):
    """The name and the type that a query asks for, and where the question ends."""
    labels, at = [], 12
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode("latin-1"))
        at += 1 + data[at]
    return ".".join(labels).lower(), struct.unpack(">H", data[at + 1:at + 3])[0], at + 5


def serve_names(address_of):
    """A name server that answers with address_of(name), or each of a list; None is a name that does not exist."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.53", 53))

    def loop():
        while True:
            data, peer = s.recvfrom(2048)
            name, kind, end = question(data)
            known = address_of(name)
            family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
            found = [socket.inet_pton(family, one) for one in ([known] if isinstance(known, str) else known or [])
                     if family == (socket.AF_INET6 if ":" in one else socket.AF_INET)]
            answer = data[:2] + struct.pack(">HHHHH", 0x8183 if known is None else 0x8180, 1, len(found), 0, 0)
            answer += data[12:end]
            for address in found:
                answer += struct.pack(">HHHIH", 0xC00C, kind, 1, 0, len(address)) + address
            s.sendto(answer, peer)

    threading.Thread(target=loop, daemon=True).start()
