"""What schemathesis sends, mended where it would only ever be refused, or could leave the temporary place."""

import itertools
import os

import schemathesis

NUMBERS = itertools.count()
PLACE = os.environ["RETAKE_PLACE"]


@schemathesis.hook
def map_headers(context, headers):
    """A key is for one request: most of them are made different, the others are found to be used already."""
    key = (headers or {}).get("Idempotency-Key")
    number = next(NUMBERS)
    if isinstance(key, str) and 0 < len(key) < 150 and number % 4:
        headers["Idempotency-Key"] = f"{key}-{number}"
    return headers


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    """Of what can be imported, text is all that the document says; a share of it is something that was exported."""
    if isinstance(value, str) and next(NUMBERS) % 3 == 0:
        with open(os.path.join(PLACE, "export"), "rb") as exported:
            return exported.read()
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


@schemathesis.hook
def before_call(context, case, kwargs):
    """Folders of this machine can be named: only ever ones that are there for that."""
    body = case.body
    folder = body.get("folder") if isinstance(body, dict) else None
    # One that does not begin with a slash is refused.
    if isinstance(folder, str) and folder.startswith("/") and not (folder.startswith(PLACE) and ".." not in folder):
        body["folder"] = os.path.join(PLACE, "folders", folder.replace("/", "_").replace("..", "_"))
