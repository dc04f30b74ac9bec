# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 as far as this client needs it, without input or output: a request as bytes, and a reader of answers.

One connection carries one request. The reader bounds everything that a server sends: the head, the lines of chunks, and the
body. It follows no redirect, takes no compressed answer and no second length, so an answer is read in one way only.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

from .errors import ProtocolError

MAX_HEAD = 32 * 1024
MAX_JSON = 64 * 1024 * 1024
MAX_FILE = 256 * 1024 * 1024  # as much as can be uploaded
UNBOUNDED = 2**62  # of an event stream: it is consumed as it comes, and each event is bounded
_MAX_CHUNK_LINE = 256
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00\r\n]*)")


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: Tuple[Tuple[str, str], ...] = ()
    body: bytes = field(default=b"", repr=False)
    max_body: int = MAX_JSON

    def head(self, host: str, key: Optional[str]) -> bytes:
        """The request's head. What it holds is checked: nothing may begin a second field or request."""
        lines = [f"{self.method} {self.target} HTTP/1.1", f"Host: {host}", "Connection: close", "Accept-Encoding: identity",
                 "User-Agent: cofferdam-python/0.1"]
        if key is not None:
            lines.append("Authorization: Bearer " + key)
        if self.body or self.method in ("POST", "PUT"):
            lines.append(f"Content-Length: {len(self.body)}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        if not all(line.isascii() and line.isprintable() for line in lines) or self.target.count(" "):
            raise ValueError("a path or header of the request holds a character that it may not hold")
        return "\r\n".join([*lines, "", ""]).encode("ascii")


@dataclass(frozen=True)
class Head:
    status: int
    headers: Dict[str, str]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Dict[str, str]
    body: bytes = field(repr=False)


class AnswerReader:
    """Takes the bytes of one answer as they come. `pieces` holds body that was not taken yet."""

    def __init__(self, max_body: int) -> None:
        self.head: Optional[Head] = None
        self.done = False
        self.pieces: List[bytes] = []
        self._max_body = max_body
        self._buffer = bytearray()
        self._seen = 0
        self._left: Optional[int] = None  # bytes of the body or chunk that are to come
        self._chunked = False
        self._state = "head"

    def feed(self, data: bytes) -> None:
        """More bytes; b"" says that the connection has ended."""
        if not data:
            self._end()
            return
        self._buffer += data
        while not self.done and self._step():
            pass

    def take(self) -> bytes:
        body = b"".join(self.pieces)
        self.pieces.clear()
        return body

    def _end(self) -> None:
        if self._state == "until_close":
            self.done = True
        if not self.done:
            raise EOFError

    def _step(self) -> bool:
        if self._state == "head":
            return self._read_head()
        if self._state == "size":
            return self._read_size()
        if self._state == "chunk_end":
            return self._read_chunk_end()
        if self._state == "trailer":
            return self._read_trailer()
        return self._read_body()

    def _line(self, limit: int) -> Optional[bytes]:
        end = self._buffer.find(b"\r\n")
        if end > limit or (end < 0 and len(self._buffer) > limit + 1):  # + 1: the \r may be here already
            raise ProtocolError("a line of the server's answer is too long")
        if end < 0:
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[:end + 2]
        return line

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end > MAX_HEAD or (end < 0 and len(self._buffer) > MAX_HEAD):
            raise ProtocolError("the head of the server's answer is too large")
        if end < 0:
            return False
        first, *lines = bytes(self._buffer[:end]).split(b"\r\n")
        del self._buffer[:end + 4]
        status = re.fullmatch(rb"HTTP/1\.[01] ([1-5][0-9][0-9])(?: [^\x00\r\n]*)?", first)
        if status is None:
            raise ProtocolError("the server does not speak HTTP/1.1; https and http may be confused")
        if status.group(1).startswith(b"1"):
            return True  # 100 and its kind: the answer follows. Bounded by the caller's deadline
        headers: Dict[str, str] = {}
        for line in lines:
            match = _FIELD.fullmatch(line)
            name = match.group(1).decode("ascii").lower() if match else ""
            if match is None or (name in headers and name in ("content-length", "transfer-encoding")):
                raise ProtocolError("the head of the server's answer is malformed")
            headers[name] = match.group(2).decode("latin-1").strip()
        self.head = Head(int(status.group(1)), headers)
        self._frame(self.head)
        return True

    def _frame(self, head: Head) -> None:
        length, coding = head.headers.get("content-length"), head.headers.get("transfer-encoding")
        if head.headers.get("content-encoding", "identity").lower() != "identity":
            raise ProtocolError("the server compressed its answer, which was not asked for")
        if 300 <= head.status < 400:
            raise ProtocolError(f"the server redirects elsewhere (status {head.status}); this client follows no redirect")
        if coding is not None and (length is not None or coding.lower() != "chunked"):
            raise ProtocolError("the server's answer can be read in two ways")
        if length is not None and (not length.isascii() or not length.isdigit() or len(length) > 15):
            raise ProtocolError("the length of the server's answer is not a number")
        if head.status in (204, 304):
            self.done = True
        elif coding is not None:
            self._chunked, self._state = True, "size"
        elif length is not None:
            self._left, self._state = int(length), "body"
            self._check(int(length))
            self.done = self._left == 0
        else:
            self._state = "until_close"

    def _check(self, more: int) -> None:
        if self._seen + more > self._max_body:
            raise ProtocolError(f"the server's answer has more than {self._max_body} bytes")

    def _read_size(self) -> bool:
        line = self._line(_MAX_CHUNK_LINE)
        if line is None:
            return False
        match = re.fullmatch(rb"([0-9A-Fa-f]{1,12})(?:;[^\x00]*)?", line)
        if match is None:
            raise ProtocolError("a chunk of the server's answer is malformed")
        self._left = int(match.group(1), 16)
        self._check(self._left)
        self._state = "body" if self._left else "trailer"
        return True

    def _read_chunk_end(self) -> bool:
        line = self._line(0)
        if line is not None:
            self._state = "size"
        return line is not None

    def _read_trailer(self) -> bool:
        line = self._line(MAX_HEAD)
        self._seen += len(line or b"") + 1
        self._check(0)
        self.done = line == b""
        return line is not None

    def _read_body(self) -> bool:
        if not self._buffer:
            return False
        size = len(self._buffer) if self._left is None else min(self._left, len(self._buffer))
        self._check(size)
        self._seen += size
        self.pieces.append(bytes(self._buffer[:size]))
        del self._buffer[:size]
        if self._left is not None:
            self._left -= size
            if self._left == 0:
                self._state = "chunk_end"
                self.done = not self._chunked
        return True
