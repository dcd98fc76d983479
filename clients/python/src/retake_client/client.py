"""The client: the generated methods, events, and a few calls by their short names."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any, TypedDict

from .api import Api
from .transport import ApiError, Conflict

__all__ = ["ApiError", "Client", "Conflict", "Event"]

#: The server sends a comment more often than this.
SILENCE = 60.0

#: Seconds between attempts to reach the server again.
PAUSE = 0.5


class Event(TypedDict):
    """An event of the server."""

    #: Where it is in the stream: the argument `after` of `events`. Events of a running turn have none.
    id: str | None
    #: Its name, such as `operation`.
    event: str
    data: Any


class Client(Api):
    """A client of one server."""

    @classmethod
    def local(cls, url: str = "http://127.0.0.1:7878", *, program: str = "retake", **options: Any) -> Client:
        """A client of the server of this user, with the token that `retake serve token` prints."""
        shown = subprocess.run([program, "serve", "token"], check=True, capture_output=True, text=True)
        return cls(url, shown.stdout.strip(), **options)

    def get_session(self) -> list[dict[str, Any]]:
        """The entries of the current thread."""
        return self.get_api_session()["session"]["entries"]

    def set_session(self, entries: list[dict[str, Any]]) -> Any:
        """Replaces all entries of the current thread. One undo restores them."""
        return self.post_api_session(session={"entries": entries})

    def get_value(self, field: str) -> Any:
        """The value of a named field."""
        return self.get_api_field(field)["value"]

    def set_value(self, field: str, value: Any) -> Any:
        """Sets a named field."""
        return self.put_api_field(field, value=value)

    def call(self, callback: str, **arguments: Any) -> Any:
        """Calls a named callback."""
        return self.post_api_callback(callback, arguments=arguments)

    def events(
        self,
        *,
        after: str | int | None = None,
        thread: str | None = None,
        turns: bool | None = None,
        reconnect: bool = True,
    ) -> Iterator[Event]:
        """Events as they happen. After a lost connection, it continues behind the last event."""
        position = None if after is None else str(after)
        while True:
            try:
                query = {"after": position, "thread": thread, "turns": turns}
                headers = {"Accept": "text/event-stream"}
                with self.open("GET", "/v1/events", query=query, headers=headers, timeout=SILENCE) as stream:
                    for event in _parse(stream):
                        position = event["id"] or position
                        yield event
            except (urllib.error.URLError, HTTPException, OSError):
                if not reconnect:
                    raise
            if not reconnect:
                return
            time.sleep(PAUSE)


def _parse(stream: Any) -> Iterator[Event]:
    """The events of a stream. One that breaks off is dropped: it is sent again."""
    identity, name, lines = None, "message", []
    for raw in stream:
        line = raw.decode().rstrip("\r\n")
        if not line:
            if lines:
                text = "\n".join(lines)
                try:
                    data = json.loads(text)
                except ValueError:
                    data = text
                yield {"id": identity, "event": name, "data": data}
            identity, name, lines = None, "message", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            lines.append(value)
        elif field == "event":
            name = value
        elif field == "id":
            identity = value
