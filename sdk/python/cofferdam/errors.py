# SPDX-License-Identifier: Apache-2.0
"""Every error of this package, with a stable class to decide by.

`error_class` is what the API says: `code` of a problem (`auth.key`, `session.unknown`), `error.class` of a call
(`policy.args.schema`, `limit.memory`). Errors that arise here have classes that begin with `client.`.

An error's text may come from a hostile server. It is cut, what is not printable is escaped, and the key of the client never
stands in it. So it can be logged and shown on a terminal.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Tuple

if TYPE_CHECKING:
    from .types import Approval, CallResult, Denial

_MAX_TEXT = 2000


def printable(text: str, limit: int = _MAX_TEXT) -> str:
    """`text` in one line without anything that could act on a terminal, and not too long."""
    cut = text if len(text) <= limit else text[:limit] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode("ascii") for c in cut)


class CofferError(Exception):
    """Base of all errors of this package."""

    error_class: str = "client.error"

    def __init__(self, message: str, error_class: Optional[str] = None) -> None:
        super().__init__(printable(message))
        if error_class is not None:
            self.error_class = printable(error_class, 200)

    @property
    def message(self) -> str:
        return str(self.args[0])


class ConnectFailed(CofferError):
    """No connection could be made; nothing was sent."""

    error_class = "client.connect"


class ConnectionLost(CofferError):
    """The connection was cut, or no answer came in time. The request may have been carried out."""

    error_class = "client.connection"


class ProtocolError(CofferError):
    """The answer is not one of Cofferdam's: not JSON, a redirect, too large, or of another shape."""

    error_class = "client.protocol"


class LocalDaemonError(CofferError):
    """The private daemon could not be started."""

    error_class = "client.local"


class VerificationError(CofferError):
    """A receipt does not verify. The message says what does not hold."""

    error_class = "client.receipt"


class ApiError(CofferError):
    """A problem (RFC 9457): the request was not carried out."""

    def __init__(self, status: int, code: str, detail: str, *, hint: Optional[str] = None,
                 retry_after: Optional[int] = None, call_id: Optional[str] = None,
                 pointers: Tuple[Tuple[str, str], ...] = ()) -> None:
        text = f"{code}: {detail}" + (f" ({hint})" if hint else "")
        super().__init__(text, code)
        self.status = status
        self.detail = printable(detail)
        self.hint = printable(hint) if hint is not None else None
        self.retry_after = retry_after
        self.call_id = call_id
        self.pointers = pointers  # (JSON Pointer into the request, what is wrong there)


class AuthError(ApiError):
    """401 or 403: no valid credential, or not for this role."""


class NotFoundError(ApiError):
    """404: not there, or not yours."""


class ConflictError(ApiError):
    """409 or 422: not in this state, or an idempotency key that belongs to another request."""


class BusyError(ApiError):
    """429 or 503: later. `retry_after` says when, in seconds. 502 and 504: something before the daemon answered for it."""

    @property
    def refused(self) -> bool:
        """The daemon itself said so: the request was not carried out."""
        return self.status in (429, 503) and self.error_class != "client.unavailable"


class CallError(CofferError):
    """A call that did not end by itself. `result` has everything that was answered, output included."""

    def __init__(self, result: "CallResult") -> None:
        error = result.error
        super().__init__(f"{error.error_class}: {error.message}" if error else f"the call's outcome is {result.outcome}",
                         error.error_class if error else f"outcome.{result.outcome}")
        self.result = result

    @property
    def call_id(self) -> str:
        return self.result.call_id

    @property
    def denials(self) -> "List[Denial]":
        return self.result.denials

    @property
    def retry_after(self) -> Optional[int]:
        return self.result.retry_after


class CallDenied(CallError):
    """Refused; nothing ran. `denials` says by which rule, and what would allow it."""


class CallTerminated(CallError):
    """Killed: by a limit, a cancellation, a switch or a signal. `result` may hold partial output."""


class CallFailed(CallError):
    """Cofferdam or the host failed, not the tool."""


class CallUnknown(CallError):
    """It was started and its end was not seen. It is never run again."""


class ApprovalRequired(CofferError):
    """A person has to decide first. Nothing ran; `approval.url` is where it is decided.

    The API has the answer, but the daemon of this version has no gate and never gives it: it does not load a tool that asks
    for approval, and denies its calls (CallDenied, `policy.tool`).
    """

    def __init__(self, call_id: str, approval: "Approval") -> None:
        super().__init__(f"the call waits for a person: {approval.url}", "approval.required")
        self.call_id = call_id
        self.approval = approval
