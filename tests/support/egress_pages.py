# SPDX-License-Identifier: Apache-2.0
"""What the servers of egress_server.py serve beside plain texts: an index for pip, a registry for npm, a
WebSocket that echoes, answers that lie, and pages under /v1/: bytes/N (N bytes), peer (the port that the request came from, and
whether its TLS session was resumed), meet (answered once a second request for it has come), until/NAME ("go on", and "end it" once
there is a file of that name in DIR), turn/take/WHO and turn/give/WHO (by turns, "elsewhere" first).

serve(handler) answers a request and says True, or says False if the path is none of these.
"""
import base64
import gzip
import hashlib
import io
import json
import os
import struct
import sys
import tarfile
import threading
import time
import zipfile

WHEEL = "coffer_probe-1.0-py3-none-any.whl"
BOMB = 64 << 20  # bytes of zeros in a short answer


def make_wheel():
    files = {"coffer_probe.py": "said = 'the wheel works'\n",
             "coffer_probe-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: coffer-probe\nVersion: 1.0\n",
             "coffer_probe-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    record = "".join(f"{name},,\n" for name in files) + "coffer_probe-1.0.dist-info/RECORD,,\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as wheel:
        for name, text in {**files, "coffer_probe-1.0.dist-info/RECORD": record}.items():
            wheel.writestr(name, text)
    return out.getvalue()


def make_package():
    files = {"package/package.json": json.dumps({"name": "coffer-probe", "version": "1.0.0", "main": "index.js"}),
             "package/index.js": "exports.said = 'the package works';\n"}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as package:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            package.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


wheel = make_wheel()
package = make_package()


def send(handler, body, kind="application/octet-stream", **fields):
    handler.send_response(200)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body)))
    for name, value in fields.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


def packument(host):
    return {"name": "coffer-probe", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
        "name": "coffer-probe", "version": "1.0.0", "main": "index.js", "dist": {
            "tarball": f"https://{host}/npm/coffer-probe/-/coffer-probe-1.0.0.tgz",
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(package).digest()).decode()}}}}


def registry(handler, path):
    if path == "/simple/coffer-probe/":
        digest = hashlib.sha256(wheel).hexdigest()
        send(handler, f'<a href="/simple/files/{WHEEL}#sha256={digest}">{WHEEL}</a>'.encode(), "text/html")
    elif path == "/simple/files/" + WHEEL:
        send(handler, wheel)
    elif path == "/npm/coffer-probe":
        send(handler, json.dumps(packument(handler.headers["Host"])).encode(), "application/json")
    elif path == "/npm/coffer-probe/-/coffer-probe-1.0.0.tgz":
        send(handler, package)
    else:
        return False
    return True


meeting = threading.Barrier(2)
turns = threading.Condition()
whose = ["elsewhere", "here"]  # the first one's turn


def take_turn(way, who):
    with turns:
        if way == "give":
            whose.sort(key=who.__eq__)
            turns.notify_all()
        else:
            turns.wait_for(lambda: whose[0] == who, 60)


def page(handler, path):
    name = path.split("/")[2] if path.startswith("/v1/") else ""
    if name == "bytes":
        send(handler, bytes(int(path.split("/")[3])))
    elif name == "peer":
        resumed = getattr(handler.connection, "session_reused", False)
        send(handler, f"port {handler.client_address[1]} resumed {resumed}".encode())
    elif name == "meet":
        try:
            meeting.wait(60)
            send(handler, b"met")
        except threading.BrokenBarrierError:
            send(handler, b"alone")
    elif name == "until":
        send(handler, b"end it" if os.path.exists(f"{sys.argv[1]}/{path.split('/')[3]}") else b"go on")
    elif name == "turn":
        take_turn(*path.split("/")[3:])
        send(handler, b"yours")
    else:
        return False
    return True


def read_frame(source):
    head = source.read(2)
    if len(head) < 2:
        return 8, b""
    size = head[1] & 127
    if size == 126:
        size = struct.unpack(">H", source.read(2))[0]
    mask = source.read(4)
    return head[0] & 15, bytes(b ^ mask[i % 4] for i, b in enumerate(source.read(size)))


def websocket(handler, note):
    accept = hashlib.sha1((handler.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode())
    handler.send_response(101)
    handler.send_header("Upgrade", "websocket")
    handler.send_header("Connection", "Upgrade")
    handler.send_header("Sec-WebSocket-Accept", base64.b64encode(accept.digest()).decode())
    handler.end_headers()
    handler.close_connection = True
    while True:
        kind, data = read_frame(handler.rfile)
        note(f"frame {kind} {len(data)}")
        size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + struct.pack(">H", len(data))
        handler.wfile.write(bytes([0x80 | kind]) + size + data)
        if kind == 8:
            return


def endless(handler, head, piece):
    handler.wfile.write(head)
    while True:
        handler.wfile.write(piece)


# Each ends its connection: nothing after it can be trusted.
def lie(handler, what, note):
    handler.close_connection = True
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    raw = {"chunk-size": chunked + b"zz\r\nabc\r\n0\r\n\r\n", "chunk-huge": chunked + b"fffffffffffffffff\r\nabc",
           "chunk-end": chunked + b"3\r\nabcXX0\r\n\r\n", "chunk-cut": chunked + b"10\r\nabc",
           "two-framings": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
           "not-http": b"SSH-2.0-liar\r\n\r\n", "nothing": b"", "half-head": b"HTTP/1.1 200 OK\r\nContent-",
           "switch": b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\nraw",
           "split": b"HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\nContent-Length: 0\r\n\r\n"}
    try:
        if what in raw:
            handler.wfile.write(raw[what])
        elif what == "silent":
            while handler.connection.recv(1):
                pass
            note("silent ended")
        elif what == "slow":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            while True:
                handler.wfile.write(b"s")
                time.sleep(0.2)
        elif what == "endless-body":
            endless(handler, chunked, b"10000\r\n" + bytes(0x10000) + b"\r\n")
        elif what == "endless-head":
            endless(handler, b"HTTP/1.1 200 OK\r\n", b"X-More: " + b"x" * 1000 + b"\r\n")
        elif what == "endless-interim":
            endless(handler, b"", b"HTTP/1.1 102 Processing\r\n\r\n")
        elif what in ("bare", "bare-cut"):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nwhole")
            if what == "bare":
                handler.connection.unwrap()  # close_notify; without it the end may be anybody's
        elif what == "loop":
            handler.wfile.write(b"HTTP/1.1 302 Found\r\nLocation: /lies/loop\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        elif what == "bomb":
            send(handler, gzip.compress(bytes(BOMB)), Content_Encoding="gzip")
        else:
            return False
    except OSError:
        note(f"{what} ended")
    return True


def serve(handler, note):
    path = handler.path.partition("?")[0]
    if path.startswith("/lies/"):
        return lie(handler, path[len("/lies/"):], note)
    if handler.headers.get("Upgrade", "").lower() == "websocket":
        websocket(handler, note)
        return True
    return page(handler, path) or registry(handler, path)
