"""Writes documents that are wrong on purpose; prints the mistake, the file and the route of each."""

import copy
import json
import os
import sys
import urllib.request

PLACE = sys.argv[1]


def served():
    headers = {"Authorization": f"Bearer {os.environ['RETAKE_TOKEN']}"}
    request = urllib.request.Request(os.environ["RETAKE_URL"] + "/openapi.json", headers=headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def answer_of(document, operation):
    for methods in document["paths"].values():
        for described in methods.values():
            if described["operationId"] == operation:
                return described["responses"]
    raise SystemExit(f"there is no operation {operation}")


def other_field(document):
    """Requires a field that the response does not have."""
    schema = {"type": "object", "required": ["statuz"], "properties": {"statuz": {"type": "string"}}}
    answer_of(document, "get_health")["200"]["content"]["application/json"]["schema"] = schema


def other_status(document):
    """Documents a status that is never returned."""
    responses = answer_of(document, "post_v1_threads")
    responses["200"] = responses.pop("201")


def other_kind(document):
    """Documents another content type."""
    content = answer_of(document, "get_docs_css")["200"]["content"]
    content["text/plain"] = content.pop(next(iter(content)))


MISTAKES = [(other_field, "get_health"), (other_status, "post_v1_threads"), (other_kind, "get_docs_css")]


def main():
    right = served()
    for mistake, operation in MISTAKES:
        document = copy.deepcopy(right)
        mistake(document)
        file = f"{mistake.__name__}.json"
        with open(os.path.join(PLACE, file), "w", encoding="utf-8") as written:
            json.dump(document, written)
        print(mistake.__name__, file, operation)


main()
