# SPDX-License-Identifier: Apache-2.0
"""Carries out steps, blocking (SyncDriver) or with asyncio (AsyncDriver). Each wait ends at its step's deadline."""
from __future__ import annotations

import asyncio
import socket
import ssl
import time
from typing import Any, Awaitable, Optional, TypeVar, Union

from ._endpoint import Endpoint
from ._http import Answer, AnswerReader, Request
from ._steps import Open, Read, Send, Sleep, Step
from .errors import ConnectFailed, ConnectionLost

_PIECE = 65536
_T = TypeVar("_T")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise ConnectionLost("the server did not answer in time")
    return left


def _lost(error: Exception) -> ConnectionLost:
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        return ConnectionLost("the server did not answer in time")
    if isinstance(error, EOFError):
        return ConnectionLost("the connection was cut in the middle of the answer")
    return ConnectionLost(f"the connection was lost: {error}")


def _whole(reader: AnswerReader) -> Answer:
    assert reader.head is not None
    return Answer(reader.head.status, reader.head.headers, reader.take())


def _is_stream(reader: AnswerReader) -> bool:
    return reader.head is not None and reader.head.status == 200


class SyncDriver:
    """Not for two threads at once: each operation has a driver of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._socket: Optional[socket.socket] = None
        self._reader: Optional[AnswerReader] = None

    def do(self, step: Step) -> Any:
        if isinstance(step, Sleep):
            time.sleep(step.seconds)
        elif isinstance(step, Read):
            return self._more(step.deadline)
        else:
            return self._exchange(step)
        return None

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = self._reader = None

    def _exchange(self, step: Union[Send, Open]) -> Answer:
        self.close()
        self._socket = self._connect(step.deadline)
        keep = False
        try:
            self._send(self._socket, step.request, step.deadline)
            self._reader = reader = AnswerReader(step.request.max_body)
            while not reader.done:
                if isinstance(step, Open) and _is_stream(reader):
                    keep = True
                    assert reader.head is not None
                    return Answer(200, reader.head.headers, b"")
                self._receive(self._socket, reader, step.deadline)
            return _whole(reader)
        finally:
            if not keep:
                self.close()

    def _connect(self, deadline: float) -> socket.socket:
        place = self._endpoint
        try:
            if place.unix_path is not None:
                made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                made.settimeout(_left(deadline))
                try:
                    made.connect(place.unix_path)
                except OSError:
                    made.close()
                    raise
                return made
            made = socket.create_connection((place.host, place.port), timeout=_left(deadline))
            if place.ssl_context is None:
                return made
            try:
                return place.ssl_context.wrap_socket(made, server_hostname=place.host)
            except (OSError, ValueError):
                made.close()
                raise
        except (OSError, ValueError) as error:
            raise ConnectFailed(f"cannot connect to {place!r}: {error}") from None

    def _send(self, to: socket.socket, request: Request, deadline: float) -> None:
        key = self._endpoint.key
        # The head has no variable here: a program that prints the variables of a traceback must not print the key.
        try:
            to.settimeout(_left(deadline))
            to.sendall(request.head(self._endpoint.host_header, key.reveal() if key else None))
            to.settimeout(_left(deadline))
            to.sendall(request.body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # a server that refuses a large body answers before it has read it
        except OSError as error:
            raise _lost(error) from None

    def _receive(self, source: socket.socket, reader: AnswerReader, deadline: float) -> None:
        try:
            source.settimeout(_left(deadline))
            reader.feed(source.recv(_PIECE))
        except (OSError, EOFError, ssl.SSLError) as error:
            raise _lost(error) from None

    def _more(self, deadline: float) -> bytes:
        if self._socket is None or self._reader is None:
            return b""
        while not self._reader.pieces and not self._reader.done:
            self._receive(self._socket, self._reader, deadline)
        return self._reader.take()


class AsyncDriver:
    """The same with asyncio. A task that is cancelled closes the connection."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._from: Optional[asyncio.StreamReader] = None
        self._to: Optional[asyncio.StreamWriter] = None
        self._reader: Optional[AnswerReader] = None

    async def do(self, step: Step) -> Any:
        if isinstance(step, Sleep):
            await asyncio.sleep(step.seconds)
        elif isinstance(step, Read):
            return await self._more(step.deadline)
        else:
            return await self._exchange(step)
        return None

    def close(self) -> None:
        if self._to is not None:
            self._to.transport.abort()
        self._from = self._to = self._reader = None

    async def _exchange(self, step: Union[Send, Open]) -> Answer:
        self.close()
        await self._connect(step.deadline)
        keep = False
        try:
            await self._send(step.request, step.deadline)
            self._reader = reader = AnswerReader(step.request.max_body)
            while not reader.done:
                if isinstance(step, Open) and _is_stream(reader):
                    keep = True
                    assert reader.head is not None
                    return Answer(200, reader.head.headers, b"")
                await self._receive(reader, step.deadline)
            return _whole(reader)
        finally:
            if not keep:
                self.close()

    async def _connect(self, deadline: float) -> None:
        place = self._endpoint
        try:
            if place.unix_path is not None:
                made = asyncio.open_unix_connection(place.unix_path)
            else:
                made = asyncio.open_connection(place.host, place.port, ssl=place.ssl_context)
            self._from, self._to = await self._until(made, deadline)
        except (OSError, ValueError, asyncio.TimeoutError) as error:
            raise ConnectFailed(f"cannot connect to {place!r}: {error or 'it took too long'}") from None

    async def _send(self, request: Request, deadline: float) -> None:
        assert self._to is not None
        key = self._endpoint.key
        try:
            self._to.write(request.head(self._endpoint.host_header, key.reveal() if key else None))
            self._to.write(request.body)
            await self._until(self._to.drain(), deadline)
        except (BrokenPipeError, ConnectionResetError):
            pass
        except (OSError, asyncio.TimeoutError) as error:
            raise _lost(error) from None

    async def _receive(self, reader: AnswerReader, deadline: float) -> None:
        assert self._from is not None
        try:
            reader.feed(await self._until(self._from.read(_PIECE), deadline))
        except (OSError, EOFError, asyncio.TimeoutError) as error:
            raise _lost(error) from None

    async def _until(self, work: Awaitable[_T], deadline: float) -> _T:
        # Not wait_for: in Python 3.11 it can lose a cancellation.
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            return await work

    async def _more(self, deadline: float) -> bytes:
        if self._from is None or self._reader is None:
            return b""
        while not self._reader.pieces and not self._reader.done:
            await self._receive(self._reader, deadline)
        return self._reader.take()
