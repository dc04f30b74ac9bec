# SPDX-License-Identifier: Apache-2.0
"""Ed25519, verification only (RFC 8032, 5.1.7), because Python's standard library has none.

There is no secret here, so nothing has to take the same time for every input. A signature is good only in one spelling:
S below the order of the group, R compared by its bytes, and no key of small order, for which one signature fits many
messages. docs/AUDIT_LOG.md asks for exactly this, and so does the C++ verifier.
"""
from __future__ import annotations

import hashlib
from typing import Optional, Tuple

_Point = Tuple[int, int, int, int]  # extended coordinates X, Y, Z, T

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_SQRT_M1 = pow(2, (_P - 1) // 4, _P)


def _recover_x(y: int, sign: int) -> Optional[int]:
    if y >= _P:
        return None
    x2 = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    if x2 == 0:
        return None if sign else 0
    x = pow(x2, (_P + 3) // 8, _P)
    if (x * x - x2) % _P != 0:
        x = x * _SQRT_M1 % _P
    if (x * x - x2) % _P != 0:
        return None
    return _P - x if x & 1 != sign else x


def _add(a: _Point, b: _Point) -> _Point:
    p = (a[1] - a[0]) * (b[1] - b[0]) % _P
    q = (a[1] + a[0]) * (b[1] + b[0]) % _P
    r = 2 * a[3] * b[3] * _D % _P
    s = 2 * a[2] * b[2] % _P
    e, f, g, h = q - p, s - r, s + r, q + p
    return (e * f % _P, g * h % _P, f * g % _P, e * h % _P)


def _multiply(scalar: int, point: _Point) -> _Point:
    result: _Point = (0, 1, 1, 0)
    while scalar > 0:
        if scalar & 1:
            result = _add(result, point)
        point = _add(point, point)
        scalar >>= 1
    return result


def _decompress(data: bytes) -> Optional[_Point]:
    y = int.from_bytes(data, "little")
    sign = y >> 255
    y &= (1 << 255) - 1
    x = _recover_x(y, sign)
    return None if x is None else (x, y, 1, x * y % _P)


def _compress(point: _Point) -> bytes:
    inverse = pow(point[2], _P - 2, _P)
    x, y = point[0] * inverse % _P, point[1] * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


_BASE = _decompress((4 * pow(5, _P - 2, _P) % _P).to_bytes(32, "little"))
_IDENTITY = _compress((0, 1, 1, 0))


def ed25519_verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """True if `signature` (64 bytes) over `message` was made with the private key of `public` (32 bytes)."""
    if len(signature) != 64 or len(public) != 32 or _BASE is None:
        return False
    a = _decompress(public)
    if a is None or _compress(_multiply(8, a)) == _IDENTITY:  # not a point, or of small order
        return False
    s = int.from_bytes(signature[32:], "little")
    if s >= _L:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % _L
    minus_a: _Point = (_P - a[0], a[1], a[2], _P - a[3])
    return _compress(_add(_multiply(s, _BASE), _multiply(h, minus_a))) == signature[:32]
