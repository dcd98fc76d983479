"""Fills the server with a small world, and writes schemathesis's configuration with the names of what is in it.

Random ids name nothing: without this, nearly every request would end at "it is not there".
"""

import json
import os
import sys
import urllib.request

URL, TOKEN = os.environ["RETAKE_URL"], os.environ["RETAKE_TOKEN"]


def ask(method, path, body=None):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def make():
    """Threads with entries and takes, something to redo, and a draft."""
    names = {name: [] for name in ("thread", "take", "entry", "project")}
    for number in range(3):
        thread = ask("POST", "/v1/threads", {"title": f"Thread {number}"})["thread"]
        home = f"/v1/threads/{thread}"
        names["thread"].append(thread)
        for said in range(4):
            pair = [{"role": "User", "content": f"question {said}"}, {"role": "AI", "content": f"answer {said}"}]
            ask("POST", f"{home}/entries", {"entries": pair})
        entries = [item["id"] for item in ask("GET", f"{home}/entries")["items"]]
        names["entry"] += entries[:4]
        ask("POST", f"{home}/branch", {"entry": entries[3]})
        names["take"] += [take["id"] for take in ask("GET", f"{home}/takes")["items"]]
        ask("PUT", f"{home}/draft", {"text": "a draft"})
        ask("POST", f"{home}/save", {"name": "a moment"})
        ask("POST", f"{home}/undo")
        names["project"].append(ask("GET", home)["home"])
    names["project"] = sorted(set(names["project"]))
    return names


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        print(file.read())
    names = make()
    # Folders that a request may name: nothing outside of the temporary place is ever touched.
    names["folder"] = [f"{os.environ['RETAKE_PLACE']}/{folder}" for folder in ("project", "home", "nowhere")]
    for name, values in names.items():
        print(f"[dictionaries.{name}]\nvalues = {json.dumps(values)}\n")
    print("[parameters]")
    for name in names:
        for place in ("path", "query", "body"):
            if place == "path" and name == "folder":
                continue
            share = 1.0 if name == "folder" else 0.7
            print(f'"{place}.{name}" = {{ dictionary = "{name}", probability = {share} }}')


main()
