# SPDX-License-Identifier: Apache-2.0
"""What belongs to one session or one call of the asynchronous client; the same as session.py."""
from __future__ import annotations

from types import TracebackType
from typing import Any, AsyncIterator, Callable, List, Mapping, Optional, Sequence, TYPE_CHECKING, Type, Union

from ._reading import given_id
from ._session_operations import place_of_process
from .types import Approval, CallResult, Event, FileInfo, Limits, LogPage, ProcessInfo, SessionInfo

if TYPE_CHECKING:
    from .aio import AsyncCoffer


class AsyncCallStream:
    """A running call. Iterating gives its events until it has ended."""

    def __init__(self, coffer: "AsyncCoffer", call_id: str) -> None:
        self._coffer = coffer
        self.call_id = call_id

    def __aiter__(self) -> AsyncIterator[Event]:
        return self._coffer.iterate(self._coffer.operations.events(self.call_id))

    async def result(self, *, timeout: Optional[float] = None, check: bool = True) -> CallResult:
        """Waits for the end."""
        return await self._coffer.wait(self.call_id, timeout=timeout, check=check)

    async def cancel(self) -> None:
        await self._coffer.cancel(self.call_id)


class AsyncProcess:
    """A process in the background of a session."""

    def __init__(self, coffer: "AsyncCoffer", session_id: str, process_id: str) -> None:
        self._coffer = coffer
        self._place = place_of_process(session_id, process_id)
        self.process_id = process_id

    async def info(self) -> ProcessInfo:
        return await self._coffer.run(self._coffer.operations.process(self._place))

    async def log(self, offset: int = 0, *, follow: int = 0) -> LogPage:
        """What it printed from `offset` on; `follow` waits so many seconds (at most 30) for something."""
        return await self._coffer.run(self._coffer.operations.process_log(self._place, offset, follow))

    def follow(self, offset: int = 0) -> AsyncIterator[LogPage]:
        """What it prints, until it has ended."""
        return self._coffer.iterate(self._coffer.operations.follow_log(self._place, offset))

    async def signal(self, name: str) -> None:
        """TERM, INT, QUIT, HUP, USR1 or USR2."""
        await self._coffer.run(self._coffer.operations.signal_process(self._place, name))

    async def kill(self) -> None:
        await self._coffer.run(self._coffer.operations.kill_process(self._place))


class AsyncSession:
    """Files that live as long as the session; calls and processes that share them."""

    def __init__(self, coffer: "AsyncCoffer", session_id: str) -> None:
        self._coffer = coffer
        self.session_id = session_id
        self._place = "/v1/sessions/" + given_id(session_id)

    async def __aenter__(self) -> "AsyncSession":
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                       trace: Optional[TracebackType]) -> None:
        await self.end()

    async def info(self) -> SessionInfo:
        return await self._coffer.run(self._coffer.operations.session(self.session_id))

    async def extend(self, lifetime_seconds: int) -> SessionInfo:
        return await self._coffer.run(self._coffer.operations.extend_session(self.session_id, lifetime_seconds))

    async def end(self) -> None:
        """Kills what runs in it and removes its files."""
        await self._coffer.run(self._coffer.operations.end_session(self.session_id))

    async def call(self, tool: str, args: Optional[Mapping[str, Any]] = None, *, limits: Optional[Limits] = None,
                   reason: Optional[str] = None, idempotency_key: Optional[str] = None, timeout: Optional[float] = None,
                   check: bool = True,
                   on_approval: Optional[Callable[[Approval], object]] = None) -> CallResult:
        return await self._coffer.call(tool, args, session_id=self.session_id, limits=limits, reason=reason,
                                 idempotency_key=idempotency_key, timeout=timeout, check=check, on_approval=on_approval)

    async def stream(self, tool: str, args: Optional[Mapping[str, Any]] = None, *, limits: Optional[Limits] = None,
                     reason: Optional[str] = None, idempotency_key: Optional[str] = None) -> AsyncCallStream:
        return await self._coffer.stream(tool, args, session_id=self.session_id, limits=limits, reason=reason,
                                   idempotency_key=idempotency_key)

    def files(self, prefix: Optional[str] = None) -> AsyncIterator[FileInfo]:
        return self._coffer.iterate(self._coffer.operations.files(self._place, prefix))

    async def read(self, path: Union[str, FileInfo], *, max_bytes: Optional[int] = None) -> bytes:
        return await self._coffer.run(self._coffer.operations.read_file(self._place, path, max_bytes))

    async def write(self, path: str, data: Union[bytes, str]) -> FileInfo:
        raw = data.encode("utf-8") if isinstance(data, str) else data
        return await self._coffer.run(self._coffer.operations.write_file(self._place, path, raw))

    async def remove(self, path: Union[str, FileInfo]) -> None:
        await self._coffer.run(self._coffer.operations.remove_file(self._place, path))

    async def start(self, tool: str, args: Optional[Mapping[str, Any]] = None, *, ports: Sequence[int] = (),
                    limits: Optional[Limits] = None, reason: Optional[str] = None) -> AsyncProcess:
        """Starts a process in the background; the session's later calls reach the `ports` that it listens on."""
        made = await self._coffer.run(self._coffer.operations.start_process(self.session_id, tool, args, ports, limits, reason))
        return AsyncProcess(self._coffer, self.session_id, made.process_id)

    async def processes(self) -> List[ProcessInfo]:
        return await self._coffer.run(self._coffer.operations.processes(self.session_id))
