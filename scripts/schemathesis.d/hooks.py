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


@schemathesis.hook
def before_call(context, case, kwargs):
    """Folders of this machine can be named: only ever ones that are there for that."""
    body = case.body
    if isinstance(body, dict) and isinstance(body.get("folder"), str) and not body["folder"].startswith(PLACE):
        body["folder"] = os.path.join(PLACE, "folders", body["folder"].replace("/", "_").replace("..", "_"))
