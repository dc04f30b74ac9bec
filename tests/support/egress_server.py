#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers on this host's loopback for the tests of egress: one with TLS, one without, one that answers nothing, and one
that greets as an SSH server does and writes down the client's greeting.

Usage: egress_server.py DIR. Makes a CA in DIR (ca.pem), writes one line to DIR/seen for each connection and request, before
it is answered, and says "ports TLS PLAIN MUTE SETTLED GREETER" when it is ready. A connection to SETTLED is answered once every
connection that was made before it is written down.

If there is a directory DIR/bytes, each connection to TLS and PLAIN has a file there with every byte that came: NUMBER while it is
open, NUMBER.all when it has ended.
"""
import http.server
import io
import itertools
import os
import socket
import sys
import threading

sys.dont_write_bytecode = True
import egress_git  # noqa: E402
import egress_pages  # noqa: E402
import test_certificates  # noqa: E402

DIR = sys.argv[1]
lock = threading.Lock()
own = {}  # by port
numbers = itertools.count()


def note(text):
    with lock, open(DIR + "/seen", "a") as seen:
        seen.write(text + "\n")


class KeptBytes(io.RawIOBase):
    """What comes over a connection, written down as it is read."""

    def __init__(self, connection):
        self.connection = connection
        self.name = f"{DIR}/bytes/{next(numbers)}"
        self.file = open(self.name, "wb")

    def readable(self):
        return True

    def readinto(self, buffer):
        count = self.connection.recv_into(buffer)
        self.file.write(memoryview(buffer)[:count])
        self.file.flush()
        return count

    def end(self):
        self.file.close()
        os.rename(self.name, self.name + ".all")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a head and a body are two writes

    kept = None

    def setup(self):
        super().setup()
        if os.path.isdir(DIR + "/bytes"):
            self.kept = KeptBytes(self.connection)
            self.rfile = io.BufferedReader(self.kept)

    def finish(self):
        if self.kept is not None:
            self.kept.end()
        super().finish()

    def answer(self):
        # As many servers answer a GET: what comes behind the head is read as the next request.
        body = b"" if self.path.startswith("/v1/unread") else egress_git.read_body(self)
        note(f"request {self.command} {self.path} host={self.headers.get('Host')} body={len(body)}")
        if egress_git.serve(self, body) or egress_pages.serve(self, note):
            return
        if self.path.startswith("/v1/redirect?to="):
            self.send_response(302)
            self.send_header("Location", self.path[len("/v1/redirect?to="):])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.path == "/half":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"half")
            self.close_connection = True
            return
        if self.path == "/two-lengths":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd")
            self.close_connection = True
            return
        text = b"hello " + self.path.encode()
        if self.path.startswith("/v1/repo.git/info/refs"):
            # What a repository says of itself to clients that only read files.
            text = b"0123456789012345678901234567890123456789\trefs/heads/main\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = answer

    def log_message(self, *words):
        pass


class Server(http.server.ThreadingHTTPServer):
    context = None
    label = "plain"

    def get_request(self):
        connection, peer = self.socket.accept()
        if peer[1] in own:
            own[peer[1]].set()
            connection.close()
            raise OSError("our own")
        note("connection " + self.label)
        connection.settimeout(60)
        return connection, peer

    def finish_request(self, request, client_address):
        if self.context is not None:
            request = self.context.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        pass


def settle():
    # Connections are accepted in their order: when one of ours is, none from before it is waiting.
    while True:
        asked, _ = settled.accept()
        for address in (tls.server_address, plain.server_address, greeter.getsockname()):
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                came = own[s.getsockname()[1]] = threading.Event()
                s.connect(address)
                came.wait(60)
                del own[s.getsockname()[1]]
        asked.sendall(b"settled")
        asked.close()


def greet():
    while True:
        client, peer = greeter.accept()
        if peer[1] in own:
            own[peer[1]].set()
            client.close()
            continue
        note("connection greeter")
        client.settimeout(20)
        try:
            client.sendall(b"SSH-2.0-greeter\r\n")
            note("greeting " + client.recv(256).split(b"\n")[0].strip().decode("latin-1"))
        except OSError:
            pass
        client.close()


def start(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


open(DIR + "/seen", "w").close()

tls = Server(("127.0.0.1", 0), Handler)
tls.label = "tls"
tls.context = test_certificates.make(DIR)
plain = Server(("127.0.0.1", 0), Handler)
mute = socket.create_server(("127.0.0.1", 0))
settled = socket.create_server(("127.0.0.1", 0))
greeter = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=settle, daemon=True).start()
threading.Thread(target=greet, daemon=True).start()
print(f"ports {start(tls)} {start(plain)} {mute.getsockname()[1]} {settled.getsockname()[1]} {greeter.getsockname()[1]} .",
      flush=True)
sys.stdin.read()
