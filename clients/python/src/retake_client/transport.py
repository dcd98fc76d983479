"""Sends requests. The generated methods call `Transport.request`."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any


class ApiError(Exception):
    """The server refused a request. The message says what happened and what to do next."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        #: The error code, such as `not_found`; `docs/json.md` lists them.
        self.code: str | None = problem.get("code")
        #: The whole problem document (RFC 9457).
        self.problem = dict(problem)
        super().__init__(problem.get("detail") or problem.get("title") or f"HTTP status {status}")


class Conflict(ApiError):
    """The thread is not at the expected version. Nothing was changed."""

    @property
    def current(self) -> int | None:
        """The version of the thread."""
        return self.problem.get("current")


class Transport:
    """A server and the token for it."""

    def __init__(self, url: str, token: str, *, name: str | None = None, timeout: float = 60.0) -> None:
        """`name` is recorded as the author of changes."""
        self.url = url.rstrip("/")
        self.timeout = timeout
        self.headers = {"Authorization": f"Bearer {token}"}
        if name is not None:
            self.headers["Retake-Client"] = name
        # A proxy of the environment must not see the token.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def open(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Sends a request and returns the open response."""
        pairs: list[tuple[str, str]] = []
        for key, value in (query or {}).items():
            for item in value if isinstance(value, (list, tuple)) else [value]:
                if item is not None:
                    pairs.append((key, str(item).lower() if isinstance(item, bool) else str(item)))
        url = self.url + path + ("?" + urllib.parse.urlencode(pairs) if pairs else "")
        request = urllib.request.Request(url, data=data, method=method, headers={**self.headers, **(headers or {})})
        try:
            return self._opener.open(request, timeout=timeout or self.timeout)
        except urllib.error.HTTPError as error:
            with error:
                raise _failure(error.code, error.read()) from None

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, Any] | None = None,
        body: Any = None,
        media: str | None = None,
    ) -> Any:
        """Sends a request and returns the answer: an object if it is JSON, and text otherwise."""
        sent = {name: _header(name, value) for name, value in (headers or {}).items() if value is not None}
        data = None
        if media is not None:
            sent["Content-Type"] = media
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
        with self.open(method, path, query=query, headers=sent, data=data) as response:
            text = response.read().decode()
            kind = response.headers.get_content_type()
        if kind == "application/json" or kind.endswith("+json"):
            return json.loads(text)
        return text


def _header(name: str, value: Any) -> str:
    """An expected version is a number here, and a quoted one in HTTP."""
    return f'"{value}"' if name == "If-Match" and isinstance(value, int) else str(value)


def _failure(status: int, body: bytes) -> ApiError:
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {"detail": body.decode(errors="replace")[:500]}
    kind = Conflict if problem.get("code") == "version_conflict" else ApiError
    return kind(status, problem)
