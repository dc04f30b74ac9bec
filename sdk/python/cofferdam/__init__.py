# SPDX-License-Identifier: Apache-2.0
"""Cofferdam for Python: every tool call of an agent in a boundary of its own. See README.md."""
from .aio import AsyncCoffer
from .client import Coffer
from .errors import (ApiError, ApprovalRequired, AuthError, BusyError, CallDenied, CallError, CallFailed, CallTerminated,
                     CallUnknown, CofferError, ConflictError, ConnectFailed, ConnectionLost, LocalDaemonError,
                     NotFoundError, ProtocolError, VerificationError)
from .receipts import Receipt, verify_receipt
from .types import CallResult, Denial, Event, FileInfo, LogPage, ProcessInfo, SessionInfo, ToolInfo

__version__ = "0.1.0"
__all__ = [
    "ApiError", "ApprovalRequired", "AsyncCoffer", "AuthError", "BusyError", "CallDenied", "CallError", "CallFailed",
    "CallResult", "CallTerminated", "CallUnknown", "Coffer", "CofferError", "ConflictError", "ConnectFailed",
    "ConnectionLost", "Denial", "Event", "FileInfo", "LocalDaemonError", "LogPage", "NotFoundError", "ProcessInfo",
    "ProtocolError", "Receipt", "SessionInfo", "ToolInfo", "VerificationError", "verify_receipt",
]
