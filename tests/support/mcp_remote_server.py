#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An MCP server of Streamable HTTP on this host's loopback, with TLS, that tells the truth and lies.

Usage: mcp_remote_server.py DIR. DIR/tools.json has its tools. Makes a CA in DIR (ca.pem), writes a line to DIR/seen for each
request before it answers, and says "ports TLS PLAIN" when it is ready. A file DIR/forget makes it forget its sessions, a file
DIR/notify makes it say that its tools have changed; it removes both.
"""
import http.server
import json
import os
import sys
import threading
import time
import uuid

sys.dont_write_bytecode = True  # the checkout may be read-only, or another user's
import test_certificates  # noqa: E402

DIR = sys.argv[1]
lock = threading.Lock()
sessions = set()


def note(text):
    with lock, open(DIR + "/seen", "a") as seen:
        seen.write(text + "\n")


def taken(name):
    try:
        os.unlink(DIR + "/" + name)
        return True
    except FileNotFoundError:
        return False


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *words):
        pass

    def reply(self, status, body=b"", type=None, **fields):
        self.send_response(status)
        if type:
            self.send_header("Content-Type", type)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self):
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()

    def event(self, message, **fields):
        for name, value in fields.items():
            self.wfile.write(f"{name}: {value}\n".encode())
        self.wfile.write(b"data: " + json.dumps(message).encode() + b"\n\n")

    def no_session(self):
        if taken("forget"):
            sessions.clear()
        if self.headers.get("Mcp-Session-Id") in sessions:
            return False
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no such session"}}
        self.reply(404, json.dumps(error).encode(), "application/json")
        return True

    def do_DELETE(self):
        note("DELETE " + self.path)
        sessions.discard(self.headers.get("Mcp-Session-Id"))
        self.reply(200)

    def do_GET(self):
        note("GET " + self.path)
        if self.path != "/mcp":
            return self.reply(200, b"stolen", "text/plain")
        if self.no_session():
            return
        resumed = self.headers.get("Last-Event-ID", "")
        self.stream()
        if resumed.startswith("rest-"):
            return self.event({"jsonrpc": "2.0", "id": int(resumed[5:]),
                               "result": {"content": [{"type": "text", "text": "resumed"}]}}, id="end")
        while True:
            self.wfile.write(b": nothing new\n\n")
            if taken("notify"):
                self.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            time.sleep(0.1)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = message.get("method", "")
        params = message.get("params", {})
        note(f"POST {self.path} {method} {params.get('name', '')}")
        if method == "initialize":
            session = uuid.uuid4().hex
            sessions.add(session)
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                      "serverInfo": {"name": "remote", "version": "1"}}
            return self.answer(message, result, Mcp_Session_Id=session)
        if self.no_session():
            return
        if self.headers.get("MCP-Protocol-Version") != "2025-11-25":
            return self.reply(400)
        if "id" not in message or not method:
            return self.reply(202)
        if method == "tools/list":
            with open(DIR + "/tools.json") as tools:
                return self.answer(message, {"tools": json.load(tools)})
        self.call(message, params["name"], params["arguments"]["words"])

    def answer(self, message, result, **fields):
        text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        self.reply(200, text.encode(), "application/json; charset=utf-8", **fields)

    def text(self, message, words):
        return {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": words}]}}

    def raw(self, head, pieces=()):
        self.close_connection = True
        self.wfile.write(("HTTP/1.1 200 OK\r\n" + head + "\r\n").encode())
        for piece in pieces:
            self.wfile.write(piece)

    def call(self, message, name, words):
        def without_end(piece):
            while True:
                yield piece

        if name == "echo":
            self.answer(message, self.text(message, words)["result"])
        elif name == "whoami":
            sent = self.headers.get("Authorization", "none")
            with open(DIR + "/sent", "w") as file:
                file.write(sent)
            self.reply(200, json.dumps(self.text(message, "you are " + sent)).encode(), "application/json")
        elif name == "events":  # in pieces, with other things between them, and an end that never comes
            self.stream()
            self.wfile.write(b"\xef\xbb\xbf: hello\r\nretry: 100\r\n\r\nevent: other\ndata: {}\n\n")
            self.event({"jsonrpc": "2.0", "id": 77, "method": "sampling/createMessage", "params": {}})
            text = json.dumps(self.text(message, words), indent=1).replace("\n", "\ndata: ")
            for piece in ("data: " + text + "\r\n\r\n").split(" "):
                self.wfile.write((piece + " ").encode() if not piece.endswith("\n") else piece.encode())
            time.sleep(300)
        elif name == "in_two":  # the stream ends, and goes on at another request
            self.stream()
            self.wfile.write(b"retry: 100\n")
            self.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "wait"}},
                       id="rest-" + str(message["id"]))
        elif name == "redirect":
            self.reply(307, b"", None, Location=f"https://other.test:{tls.server_port}/stolen")
        elif name == "html":
            self.reply(200, b"<html>log in</html>", "text/html")
        elif name == "no_json":
            self.reply(200, b"hello", "application/json")
        elif name == "deep":
            self.reply(200, b"[" * 200000, "application/json")
        elif name == "nothing":
            self.reply(202)
        elif name == "status":
            self.reply(500, b"Internal Server Error", "text/plain")
        elif name == "denied":
            self.reply(401, b"", None, WWW_Authenticate="Bearer")
        elif name == "wrong_id":
            self.answer({"id": message["id"] + 1000}, {"content": []})
        elif name == "endless":
            self.raw("Content-Type: application/json\r\n", without_end(b" " * 65536))
        elif name == "huge":
            self.raw("Content-Type: application/json\r\nContent-Length: 100000000\r\n", [b"x" * 1000000] * 100)
        elif name == "endless_event":
            self.raw("Content-Type: text/event-stream\r\n", without_end(b"data: " + b"x" * 65536 + b"\n"))
        elif name == "endless_head":
            self.close_connection = True
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            for piece in without_end(b"X-Y: " + b"x" * 1000 + b"\r\n"):
                self.wfile.write(piece)
        elif name == "half":
            self.raw("Content-Type: application/json\r\nContent-Length: 1000\r\n", [b'{"jsonrpc"'])
        elif name == "two_lengths":
            self.raw("Content-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 3\r\n", [b"{} "])
        elif name == "packed":
            self.raw("Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n", [b"\x1f\x8b"])
        elif name == "bare_end":
            self.close_connection = True
        elif name == "silent_stream":  # it lives, and never answers
            self.stream()
            while True:
                self.wfile.write(b": still here\n\n")
                time.sleep(0.1)


class Server(http.server.ThreadingHTTPServer):
    context = None
    daemon_threads = True

    def finish_request(self, request, client_address):
        if self.context is not None:
            request = self.context.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        pass


open(DIR + "/seen", "w").close()
tls = Server(("127.0.0.1", 0), Handler)
tls.context = test_certificates.make(DIR)
plain = Server(("127.0.0.1", 0), Handler)
for server in (tls, plain):
    threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"ports {tls.server_port} {plain.server_port} .", flush=True)
sys.stdin.read()
