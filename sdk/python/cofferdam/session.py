# SPDX-License-Identifier: Apache-2.0
"""What belongs to one session or one call of the blocking client."""
from __future__ import annotations

from types import TracebackType
from typing import Any, Callable, Iterator, List, Mapping, Optional, Sequence, TYPE_CHECKING, Type, Union

from ._reading import given_id
from ._session_operations import place_of_process
from .types import Approval, CallResult, Event, FileInfo, Limits, LogPage, ProcessInfo, SessionInfo

if TYPE_CHECKING:
    from .client import Coffer


class CallStream:
    """A running call. Iterating gives its events until it has ended."""

    def __init__(self, coffer: "Coffer", call_id: str) -> None:
        self._coffer = coffer
        self.call_id = call_id

    def __iter__(self) -> Iterator[Event]:
        return self._coffer.iterate(self._coffer.operations.events(self.call_id))

    def result(self, *, timeout: Optional[float] = None, check: bool = True) -> CallResult:
        """Waits for the end."""
        return self._coffer.wait(self.call_id, timeout=timeout, check=check)

    def cancel(self) -> None:
        self._coffer.cancel(self.call_id)


class Process:
    """A process in the background of a session."""

    def __init__(self, coffer: "Coffer", session_id: str, process_id: str) -> None:
        self._coffer = coffer
        self._place = place_of_process(session_id, process_id)
        self.process_id = process_id

    def info(self) -> ProcessInfo:
        return self._coffer.run(self._coffer.operations.process(self._place))

    def log(self, offset: int = 0, *, follow: int = 0) -> LogPage:
        """What it printed from `offset` on; `follow` waits so many seconds (at most 30) for something."""
        return self._coffer.run(self._coffer.operations.process_log(self._place, offset, follow))

    def follow(self, offset: int = 0) -> Iterator[LogPage]:
        """What it prints, until it has ended."""
        return self._coffer.iterate(self._coffer.operations.follow_log(self._place, offset))

    def signal(self, name: str) -> None:
        """TERM, INT, QUIT, HUP, USR1 or USR2."""
        self._coffer.run(self._coffer.operations.signal_process(self._place, name))

    def kill(self) -> None:
        self._coffer.run(self._coffer.operations.kill_process(self._place))


class Session:
    """Files that live as long as the session; calls and processes that share them."""

    def __init__(self, coffer: "Coffer", session_id: str) -> None:
        self._coffer = coffer
        self.session_id = session_id
        self._place = "/v1/sessions/" + given_id(session_id)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.end()

    def info(self) -> SessionInfo:
        return self._coffer.run(self._coffer.operations.session(self.session_id))

    def extend(self, lifetime_seconds: int) -> SessionInfo:
        return self._coffer.run(self._coffer.operations.extend_session(self.session_id, lifetime_seconds))

    def end(self) -> None:
        """Kills what runs in it and removes its files."""
        self._coffer.run(self._coffer.operations.end_session(self.session_id))

    def call(self, tool: str, args: Optional[Mapping[str, Any]] = None, *, limits: Optional[Limits] = None,
             reason: Optional[str] = None, idempotency_key: Optional[str] = None, timeout: Optional[float] = None,
             check: bool = True,
             on_approval: Optional[Callable[[Approval], object]] = None) -> CallResult:
        return self._coffer.call(tool, args, session_id=self.session_id, limits=limits, reason=reason,
                                 idempotency_key=idempotency_key, timeout=timeout, check=check, on_approval=on_approval)

    def stream(self, tool: str, args: Optional[Mapping[str, Any]] = None, *, limits: Optional[Limits] = None,
               reason: Optional[str] = None, idempotency_key: Optional[str] = None) -> CallStream:
        return self._coffer.stream(tool, args, session_id=self.session_id, limits=limits, reason=reason,
                                   idempotency_key=idempotency_key)

    def files(self, prefix: Optional[str] = None) -> Iterator[FileInfo]:
        return self._coffer.iterate(self._coffer.operations.files(self._place, prefix))

    def read(self, path: Union[str, FileInfo], *, max_bytes: Optional[int] = None) -> bytes:
        return self._coffer.run(self._coffer.operations.read_file(self._place, path, max_bytes))

    def write(self, path: str, data: Union[bytes, str]) -> FileInfo:
        raw = data.encode("utf-8") if isinstance(data, str) else data
        return self._coffer.run(self._coffer.operations.write_file(self._place, path, raw))

    def remove(self, path: Union[str, FileInfo]) -> None:
        self._coffer.run(self._coffer.operations.remove_file(self._place, path))

    def start(self, tool: str, args: Optional[Mapping[str, Any]] = None, *, ports: Sequence[int] = (),
              limits: Optional[Limits] = None, reason: Optional[str] = None) -> Process:
        """Starts a process in the background; the session's later calls reach the `ports` that it listens on."""
        made = self._coffer.run(self._coffer.operations.start_process(self.session_id, tool, args, ports, limits, reason))
        return Process(self._coffer, self.session_id, made.process_id)

    def processes(self) -> List[ProcessInfo]:
        return self._coffer.run(self._coffer.operations.processes(self.session_id))
