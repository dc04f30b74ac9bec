# SPDX-License-Identifier: Apache-2.0
"""For the tests of sdk/python: servers that misbehave, and one way to run a test with both clients."""
import asyncio
import json
import os
import socket
import threading
import time
from pathlib import Path

from cofferdam import AsyncCoffer, Coffer

SOURCE = Path(os.environ.get("COFFER_SOURCE") or Path(__file__).resolve().parents[2])
KEY = "coffer_0123456789abcdef_" + "5ec2e7" * 8
CALL = "01a1ddf1-a908-7323-9069-8724c9a25bb1"
SESSION = "01a1ddf1-b2ab-765c-a8bd-b0845149770f"
DONE = {"call_id": CALL, "outcome": "success", "result": {
    "stdout": "4\n", "stderr": "", "truncated": False, "exit": {"code": 0, "signal": None}, "structured": None},
    "error": None, "denials": [], "log": None}
PATIENCE = 60.0  # until something that must happen is given up; no test depends on how long it takes


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("did not happen: " + what)
        time.sleep(0.02)


def answer(status, body, *fields):
    """An HTTP answer as bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", *fields, f"Content-Length: {len(data)}", "", ""]
    return "\r\n".join(lines).encode() + data


def problem(status, code, detail="no", **members):
    return answer(status, {"type": "x", "title": "x", "status": status, "detail": detail, "code": code, **members})


class Server:
    """A server on 127.0.0.1 that answers the n-th request with the n-th of `answers`, the last one again and again.

    An answer is bytes, or a function of the connection. `requests` holds what was asked, as text.
    """

    def __init__(self, *answers):
        self.answers, self.requests = answers, []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection:
            try:
                request = self._read(connection)
                if request is None:
                    return
                self.requests.append(request)
                said = self.answers[min(len(self.requests), len(self.answers)) - 1]
                if callable(said):
                    said(connection)
                else:
                    connection.sendall(said)
            except OSError:
                pass  # the client has gone, which is what many of these tests are about

    @staticmethod
    def _read(connection):
        data = b""
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more:
                return None
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        size = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        while len(body) < size:
            body += connection.recv(65536)
        return (head + b"\r\n\r\n" + body).decode()

    def header(self, number, name):
        for line in self.requests[number].split("\r\n"):
            if line.lower().startswith(name.lower() + ":"):
                return line.partition(":")[2].strip()
        return None


class Waiting:
    """The asynchronous client with the face of the blocking one, so that each test runs with both."""

    def __init__(self, *arguments, **options):
        self._inner = AsyncCoffer(*arguments, **options)

    def __getattr__(self, name):
        found = getattr(self._inner, name)

        def wait(*arguments, **options):
            async def work():
                made = found(*arguments, **options)
                if hasattr(made, "__aiter__"):
                    return [item async for item in made]
                return await made
            return asyncio.run(work())
        return wait


BOTH = (Coffer, Waiting)
