# SPDX-License-Identifier: Apache-2.0
"""The steps that an operation asks for. Operations (_operations.py) are generators that do no input or output: they yield
steps and get their outcome. So the blocking and the asynchronous client share every decision, retries included."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generator, TypeVar, Union

from ._http import Request


@dataclass(frozen=True)
class Send:
    """One request and its whole answer (an Answer)."""

    request: Request
    deadline: float  # of time.monotonic()


@dataclass(frozen=True)
class Open:
    """One request whose answer is a stream: an Answer without its body, or a whole one if its status is not 200."""

    request: Request
    deadline: float


@dataclass(frozen=True)
class Read:
    """The next bytes of the open stream; b"" at its end."""

    deadline: float


@dataclass(frozen=True)
class Sleep:
    seconds: float


Step = Union[Send, Open, Read, Sleep]
T = TypeVar("T")
Operation = Generator[Step, Any, T]
Items = Generator[Union[Step, T], Any, None]  # an operation that also yields what its caller wants
STEPS = (Send, Open, Read, Sleep)
