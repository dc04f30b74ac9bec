# SPDX-License-Identifier: Apache-2.0
"""An HTTP proxy for CONNECT: writes down what it is asked for, and leads every name to this host's loopback. A name that
begins with "closed" gets 403. The server's first bytes may come together with the answer.

Usage: upstream_proxy.py FILE. Says "port PORT ." when it is ready, and ends with its input.
"""
import os
import socket
import sys
import threading


def pump(a, b):
    try:
        while True:
            data = a.recv(65536)
            if not data:
                break
            b.sendall(data)
    except OSError:
        pass
    try:
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(c):
    head = b""
    while b"\r\n\r\n" not in head:
        more = c.recv(1)
        if not more:
            return
        head += more
    line = head.split(b"\r\n")[0].decode()
    with open(sys.argv[1], "a") as asked:
        asked.write(line + "\n")
    host, port = line.split()[1].rsplit(":", 1)
    if host.startswith("closed"):
        c.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        c.close()
        return
    s = socket.create_connection(("127.0.0.1", int(port)), 10)
    first = s.recv(100) if "greeter" in host else b""
    c.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n" + first)
    threading.Thread(target=pump, args=(s, c), daemon=True).start()
    pump(c, s)


def accept(listener):
    while True:
        c, _ = listener.accept()
        threading.Thread(target=serve, args=(c,), daemon=True).start()


listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=accept, args=(listener,), daemon=True).start()
print("port", listener.getsockname()[1], ".", flush=True)
sys.stdin.read()
os._exit(0)
