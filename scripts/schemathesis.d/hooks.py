"""Adjusts requests that would always be refused, or that could leave the temporary folder."""

import itertools
import os

import schemathesis

NUMBERS = itertools.count()
PLACE = os.environ["RETAKE_PLACE"]


@schemathesis.hook
def map_headers(context, headers):
    """Makes most idempotency keys unique; the others test reuse."""
    key = (headers or {}).get("Idempotency-Key")
    number = next(NUMBERS)
    if isinstance(key, str) and 0 < len(key) < 150 and number % 4:
        headers["Idempotency-Key"] = f"{key}-{number}"
    return headers


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    """The document describes imports only as text, so a third of the bodies is a real export."""
    if isinstance(value, str) and next(NUMBERS) % 3 == 0:
        with open(os.path.join(PLACE, "export"), "rb") as exported:
            return exported.read()
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


@schemathesis.hook
def before_call(context, case, kwargs):
    """Requests can name folders of this machine: redirects them into the temporary folder."""
    body = case.body
    folder = body.get("folder") if isinstance(body, dict) else None
    # Relative paths are refused by the server.
    if isinstance(folder, str) and folder.startswith("/") and not (folder.startswith(PLACE) and ".." not in folder):
        body["folder"] = os.path.join(PLACE, "folders", folder.replace("/", "_").replace("..", "_"))
