# SPDX-License-Identifier: Apache-2.0
"""The asynchronous client: the same as client.py, for asyncio. Tasks may share it; cancelling one closes its connection."""
from __future__ import annotations

import asyncio
import ssl
from types import TracebackType
from typing import Any, AsyncIterator, Callable, Dict, List, Mapping, Optional, Type, TypeVar, Union

from ._endpoint import Endpoint, from_environment
from ._session_operations import Operations
from ._steps import STEPS, Items, Operation
from ._transport import AsyncDriver
from .aio_session import AsyncCallStream, AsyncSession
from .errors import CofferError
from .local import LocalDaemon, default_socket, is_listening
from .receipts import Receipt
from .types import Approval, CallResult, Checkpoint, FileInfo, Limits, SessionInfo, ToolInfo

T = TypeVar("T")


async def _start(state: Optional[str], tools: Optional[List[str]]) -> LocalDaemon:
    """Starts a daemon in a thread. If this task is cancelled meanwhile, the daemon is ended when it has started."""
    work = asyncio.ensure_future(asyncio.to_thread(LocalDaemon, state=state, tools=tools))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        daemon = await work
        await asyncio.to_thread(daemon.close)
        raise


class AsyncCoffer:
    """A daemon of Cofferdam, reached at `url` with `key`; without `url`, at COFFER_URL with COFFER_KEY.

    `timeout` is for one operation with all its retries, in seconds. Sends the key to no other place: no redirect is
    followed and no proxy is used.
    """

    def __init__(self, url: Optional[str] = None, key: Optional[str] = None, *, timeout: float = 300.0, retries: int = 4,
                 ssl_context: Optional[ssl.SSLContext] = None, allow_plain_http: bool = False) -> None:
        place, secret = from_environment(url, key)
        endpoint = Endpoint(place, secret, ssl_context=ssl_context, allow_plain_http=allow_plain_http)
        self.operations = Operations(endpoint, timeout, retries)
        self._daemon: Optional[LocalDaemon] = None

    @classmethod
    async def local(cls, *, private: bool = False, state: Optional[str] = None, tools: Optional[List[str]] = None,
                    timeout: float = 300.0, retries: int = 4) -> "AsyncCoffer":
        """The daemon of this user if one runs; otherwise a private one, which ends with this program.

        `private`, `state` or `tools` always start one of its own. A private daemon's record is removed at its end;
        `state` names a directory that keeps it. `tools` are directories of manifests.
        """
        socket = default_socket()
        if socket and not private and state is None and not tools and await asyncio.to_thread(is_listening, socket):
            return cls("unix:" + socket, timeout=timeout, retries=retries)
        daemon = await _start(state, tools)
        try:
            made = cls(daemon.url, timeout=timeout, retries=retries)
        except BaseException:
            await asyncio.to_thread(daemon.close)
            raise
        made._daemon = daemon
        return made

    def __repr__(self) -> str:
        return f"AsyncCoffer({self.operations.endpoint!r})"

    async def __aenter__(self) -> "AsyncCoffer":
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                       trace: Optional[TracebackType]) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the private daemon, if there is one."""
        if self._daemon is not None:
            daemon, self._daemon = self._daemon, None
            await asyncio.to_thread(daemon.close)

    # ---- Calls ------------------------------------------------------------------------------------------------------

    async def call(self, tool: str, args: Optional[Mapping[str, Any]] = None, *, session_id: Optional[str] = None,
                   parent_id: Optional[str] = None, dry_run: bool = False, limits: Optional[Limits] = None,
                   reason: Optional[str] = None, idempotency_key: Optional[str] = None, timeout: Optional[float] = None,
                   check: bool = True,
                   on_approval: Optional[Callable[[Approval], object]] = None) -> CallResult:
        """Runs a tool and waits for its end.

        A tool that ends with another status than 0 is a result (`ok` is False). A call that was refused, killed or lost is
        an error: CallDenied, CallTerminated, CallUnknown, CallFailed; with `check=False` it is a result too.

        A call that waits for a person is ApprovalRequired. With `on_approval` that function is told where it is decided, and
        the call is waited for: give it a `timeout` that a person can keep.
        """
        return await self.run(self.operations.call(
            tool, args, session_id=session_id, parent_id=parent_id, dry_run=dry_run, limits=limits, reason=reason,
            idempotency_key=idempotency_key, timeout=timeout, later=False, check=check, on_approval=on_approval))

    async def stream(self, tool: str, args: Optional[Mapping[str, Any]] = None, *, session_id: Optional[str] = None,
                     parent_id: Optional[str] = None, limits: Optional[Limits] = None, reason: Optional[str] = None,
                     idempotency_key: Optional[str] = None) -> AsyncCallStream:
        """Starts a call; what is returned gives its events as they come, then its result."""
        begun = await self.run(self.operations.call(
            tool, args, session_id=session_id, parent_id=parent_id, dry_run=False, limits=limits, reason=reason,
            idempotency_key=idempotency_key, timeout=None, later=True, check=True))
        return AsyncCallStream(self, begun.call_id)

    async def get(self, call_id: str) -> CallResult:
        return await self.run(self.operations.get(call_id))

    async def wait(self, call_id: str, *, timeout: Optional[float] = None, check: bool = True) -> CallResult:
        """Waits until a call that was started elsewhere has ended."""
        return await self.run(self.operations.wait(call_id, timeout, check))

    async def cancel(self, call_id: str) -> None:
        await self.run(self.operations.cancel(call_id))

    async def receipt(self, call_id: str) -> Receipt:
        return await self.run(self.operations.receipt(call_id))

    async def transcript(self, call_id: str) -> Optional[Dict[str, Any]]:
        """What it ran and printed, or None if that is not kept."""
        return await self.run(self.operations.transcript(call_id))

    def call_files(self, call_id: str) -> AsyncIterator[FileInfo]:
        return self.iterate(self.operations.files(self.operations.place_of_call(call_id), None))

    async def read_call_file(self, call_id: str, path: Union[str, FileInfo], *, max_bytes: Optional[int] = None) -> bytes:
        return await self.run(self.operations.read_file(self.operations.place_of_call(call_id), path, max_bytes))

    async def checkpoint(self) -> Checkpoint:
        return await self.run(self.operations.checkpoint())

    # ---- Tools and sessions -----------------------------------------------------------------------------------------

    async def tools(self) -> List[ToolInfo]:
        return await self.run(self.operations.tools())

    async def tool(self, name: str) -> ToolInfo:
        return await self.run(self.operations.tool(name))

    async def new_session(self, *, lifetime_seconds: Optional[int] = None, max_calls: Optional[int] = None,
                          label: Optional[str] = None) -> AsyncSession:
        """A session; as a context manager it ends with the block, and its files with it."""
        made = await self.run(self.operations.new_session(lifetime_seconds, max_calls, label))
        return AsyncSession(self, made.session_id)

    async def session(self, session_id: str) -> AsyncSession:
        """A session that exists already."""
        return AsyncSession(self, (await self.run(self.operations.session(session_id))).session_id)

    def sessions(self) -> AsyncIterator[SessionInfo]:
        return self.iterate(self.operations.sessions())

    # ---- How operations are carried out -----------------------------------------------------------------------------

    async def run(self, operation: Operation[T]) -> T:
        """Carries out one operation of `operations`."""
        driver = AsyncDriver(self.operations.endpoint)
        try:
            step = next(operation)
            while True:
                try:
                    outcome = await driver.do(step)
                except CofferError as error:
                    step = operation.throw(error)
                else:
                    step = operation.send(outcome)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            driver.close()

    async def iterate(self, items: Items[T]) -> AsyncIterator[T]:
        """The same for an operation that gives one thing after the other."""
        driver = AsyncDriver(self.operations.endpoint)
        try:
            step = next(items)
            while True:
                if not isinstance(step, STEPS):
                    yield step
                    step = next(items)
                    continue
                try:
                    outcome = await driver.do(step)
                except CofferError as error:
                    step = items.throw(error)
                else:
                    step = items.send(outcome)
        except StopIteration:
            return
        finally:
            driver.close()


