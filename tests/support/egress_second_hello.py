#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A TLS server that asks each client for a second hello, and a client that may name another host in that one.

usage: egress_second_hello.py serve DIR                 prints "port PORT ."; the name of each hello is a line of DIR/names
       egress_second_hello.py ask HOST PORT FIRST SECOND PROXY    PROXY: the port of a proxy on the loopback; 0 for none

The server takes P-521 alone. OpenSSL's clients offer a key for another curve, so the server asks again (HelloRetryRequest).
"""
import ctypes
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
    """By libssl itself, between two buffers: the name changes when the first hello has left and nothing has come yet."""
    lib = ctypes.CDLL("libssl.so.3")
    for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new", "BIO_s_mem", "BIO_new"):
        getattr(lib, name).restype = ctypes.c_void_p
    pointer = ctypes.c_void_p
    state = pointer(lib.SSL_new(pointer(lib.SSL_CTX_new(pointer(lib.TLS_client_method())))))
    come, go = (pointer(lib.BIO_new(pointer(lib.BIO_s_mem()))) for _ in range(2))
    lib.SSL_set_bio(state, come, go)
    text = ctypes.create_string_buffer(1 << 16)

    def set_name(name):
        lib.SSL_ctrl(state, SSL_CTRL_SET_TLSEXT_HOSTNAME, 0, name.encode())

    connection = connect(host, port, proxy)
    connection.settimeout(20)
    set_name(first)

    def until(step):
        """The answer of a step that may have to wait for the peer."""
        while True:
            code = step()
            size = lib.BIO_read(go, text, len(text))
            if size > 0:
                connection.sendall(text.raw[:size])
            if code > 0 or lib.SSL_get_error(state, code) != SSL_ERROR_WANT_READ:
                return code
            set_name(second)
            more = connection.recv(1 << 14)
            if not more:
                return 0
            lib.BIO_write(come, more, len(more))

    if until(lambda: lib.SSL_connect(state)) <= 0:
        return "refused"
    size = until(lambda: lib.SSL_read(state, text, 100))
    return text.raw[:max(size, 0)].decode().strip() or "silent"


if sys.argv[1] == "serve":
    serve(sys.argv[2])
else:
    try:
        print(ask(sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5], int(sys.argv[6])))
    except OSError as error:
        print(f"error {error}")
