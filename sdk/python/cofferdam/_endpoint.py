# SPDX-License-Identifier: Apache-2.0
"""Where the daemon is, and the key for it. The key goes to this one place: there is no proxy and no redirect."""
from __future__ import annotations

import ipaddress
import os
import re
import ssl
from typing import Optional
from urllib.parse import urlsplit

_KEY = re.compile(r"[A-Za-z0-9._~+/-]+=*")


class Secret:
    """A text that is never printed, by repr, str, format or pickle."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "<secret>"

    def __reduce__(self) -> str:
        raise TypeError("a key cannot be pickled")

    def reveal(self) -> str:
        return self._text


class Endpoint:
    """`http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`."""

    def __init__(self, url: str, key: Optional[str], *, ssl_context: Optional[ssl.SSLContext] = None,
                 allow_plain_http: bool = False) -> None:
        if key is not None and not _KEY.fullmatch(key):
            raise ValueError("the key is malformed: it looks like coffer_0123..._4567...")
        self.key = None if key is None else Secret(key)
        self.unix_path: Optional[str] = None
        self.host, self.port = "", 0
        self.ssl_context: Optional[ssl.SSLContext] = None
        if url.startswith("unix:"):
            self.unix_path = url[len("unix:"):]
            self.host_header = "localhost"
            if not self.unix_path.startswith("/") or "\0" in self.unix_path:
                raise ValueError("a socket is named by its absolute path: unix:/var/lib/coffer/coffer.sock")
            return
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None or \
                parts.path not in ("", "/") or parts.query or parts.fragment:
            raise ValueError("the URL must be http://HOST:PORT, https://HOST:PORT or unix:PATH, and nothing more")
        self.host = parts.hostname
        self.port = parts.port or (443 if parts.scheme == "https" else 80)
        name = f"[{self.host}]" if ":" in self.host else self.host
        self.host_header = f"{name}:{self.port}"
        if parts.scheme == "https":
            self.ssl_context = ssl_context or ssl.create_default_context()
        elif self.key is not None and not allow_plain_http and not _is_loopback(self.host):
            raise ValueError("http:// would send the key over the network as it is: use https://, or say "
                             "allow_plain_http=True if something else encrypts the way")

    def __repr__(self) -> str:
        return f"unix:{self.unix_path}" if self.unix_path else f"{'https' if self.ssl_context else 'http'}://{self.host_header}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def from_environment(url: Optional[str], key: Optional[str]) -> "tuple[str, Optional[str]]":
    """The arguments, or COFFER_URL and COFFER_KEY. A key from the environment goes only where the environment says."""
    if url is not None:
        return url, key
    found = os.environ.get("COFFER_URL")
    if not found:
        raise ValueError("no URL: give one, set COFFER_URL and COFFER_KEY, or use Coffer.local()")
    return found, key if key is not None else os.environ.get("COFFER_KEY")
