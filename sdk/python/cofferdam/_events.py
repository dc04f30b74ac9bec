# SPDX-License-Identifier: Apache-2.0
"""Server-sent events, as far as the API writes them, in bounded memory."""
from __future__ import annotations

from typing import Iterator, Optional

from . import _reading as read
from .errors import ProtocolError
from .types import Event

MAX_EVENT = 4 * 1024 * 1024  # as much as the server keeps of a call's output
_KINDS = ("state", "stdout", "stderr", "gap")


class EventReader:
    """Takes bytes as they come and gives the events that are complete. `last_id` is where to go on after a cut."""

    def __init__(self, last_id: Optional[int] = None) -> None:
        self.last_id = last_id
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Event]:
        searched = max(0, len(self._buffer) - 1)
        self._buffer += data
        while True:
            end = self._buffer.find(b"\n\n", searched)
            searched = 0
            if max(end, len(self._buffer) if end < 0 else 0) > MAX_EVENT:
                raise ProtocolError("an event of the server is too large")
            if end < 0:
                return
            block = bytes(self._buffer[:end])
            del self._buffer[:end + 2]
            event = self._read(block)
            if event is not None:
                yield event

    def _read(self, block: bytes) -> Optional[Event]:
        kind, number, data = "", None, b""
        for line in block.split(b"\n"):
            name, _, value = line.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            if name == b"event":
                kind = value.decode("ascii", "replace")
            elif name == b"data":
                data += value
            elif name == b"id" and value.isdigit() and len(value) < 19:
                number = int(value)
        if kind not in _KINDS:
            return None  # a comment, `retry`, or a kind of a later version
        event = Event.read(kind, number, read.parse_object(data))
        if number is not None:
            self.last_id = number
        return event
