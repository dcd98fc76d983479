"""What schemathesis sends, mended where it would only ever be refused."""

import itertools

import schemathesis

NUMBERS = itertools.count()


@schemathesis.hook
def map_headers(context, headers):
    """A key is for one request: most of them are made different, the others are found to be used already."""
    key = (headers or {}).get("Idempotency-Key")
    number = next(NUMBERS)
    if isinstance(key, str) and 0 < len(key) < 150 and number % 4:
        headers["Idempotency-Key"] = f"{key}-{number}"
    return headers
