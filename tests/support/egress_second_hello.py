#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A TLS server that asks each client for a second hello, and a client that may name another host in that one.

usage: egress_second_hello.py serve DIR                 prints "port PORT ."; the name of each hello is a line of DIR/names
       egress_second_hello.py ask HOST PORT FIRST SECOND PROXY    PROXY: the port of a proxy on the loopback; 0 for none

The server takes P-521 alone. OpenSSL's clients offer a key for another curve, so the server asks again (HelloRetryRequest).
"""
import ctypes
import select
import socket
import ssl
import sys
import threading

sys.dont_write_bytecode = True

SSL_ERROR_WANT_READ = 2
SSL_CTRL_SET_TLSEXT_HOSTNAME = 55


def serve(directory):
    import test_certificates
    context = test_certificates.make(directory)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_ecdh_curve("secp521r1")

    def note(connection, name, own):
        with open(f"{directory}/names", "a", encoding="utf-8") as names:
            names.write(f"{name}\n")

    context.sni_callback = note
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"port {listener.getsockname()[1]} .", flush=True)

    def answer(connection):
        try:
            connection.settimeout(20)
            with context.wrap_socket(connection, server_side=True) as tls:
                tls.sendall(b"hello from the server\n")
        except OSError:
            connection.close()

    def accept():
        while True:
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()


def connect(host, port, proxy):
    if not proxy:
        return socket.create_connection((host, port), 20)
    connection = socket.create_connection(("127.0.0.1", proxy), 20)
    connection.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte:
            raise OSError("closed")
        head += byte
    if b" 200 " not in head:
        raise OSError(head.split(b"\r\n")[0].decode())
    return connection


def ask(host, port, first, second, proxy):
    """By libssl itself: the name may change between the two hellos."""
    lib = ctypes.CDLL("libssl.so.3")
    for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
        getattr(lib, name).restype = ctypes.c_void_p
    state = ctypes.c_void_p(lib.SSL_new(ctypes.c_void_p(lib.SSL_CTX_new(ctypes.c_void_p(lib.TLS_client_method())))))

    def set_name(name):
        lib.SSL_ctrl(state, SSL_CTRL_SET_TLSEXT_HOSTNAME, 0, name.encode())

    connection = connect(host, port, proxy)
    connection.setblocking(False)
    lib.SSL_set_fd(state, connection.fileno())
    set_name(first)

    def until(step):
        """The answer of a step that may have to wait for the peer."""
        while True:
            code = step()
            if code > 0 or lib.SSL_get_error(state, code) != SSL_ERROR_WANT_READ:
                return code
            set_name(second)  # the first hello has left
            if not select.select([connection], [], [], 20)[0]:
                return 0

    if until(lambda: lib.SSL_connect(state)) <= 0:
        return "refused"
    text = ctypes.create_string_buffer(100)
    size = until(lambda: lib.SSL_read(state, text, 100))
    return text.raw[:max(size, 0)].decode().strip() or "silent"


if sys.argv[1] == "serve":
    serve(sys.argv[2])
else:
    try:
        print(ask(sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5], int(sys.argv[6])))
    except OSError as error:
        print(f"error {error}")
