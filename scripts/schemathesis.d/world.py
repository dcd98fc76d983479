"""Creates sample data in the server, and lists its ids.

    world.py make TEMPLATE   creates the data; writes the configuration of schemathesis with its ids
    world.py tend FILE       jumps back to the version that `make` left, again and again, until it is killed

Random ids do not exist: without real ones, nearly every request would end with 404. Random requests also archive and clear
threads soon, so that `tend` restores the data by a jump.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request

URL, TOKEN, PLACE = (os.environ[name] for name in ("RETAKE_URL", "RETAKE_TOKEN", "RETAKE_PLACE"))
# The header is enough to be recognised as a picture.
PICTURE = "R0lGODlhIGE="
WORDS = ["a name", "another name", "x"]
PROMPTS = ["say hello", "create b.txt with two", "read a.txt", "list", "wait 1", "ask which", "fail always", "run true"]


def fetch(method, path, body=None):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read()


def ask(method, path, body=None):
    return json.loads(fetch(method, path, body))


def run(home, prompt):
    ask("POST", f"{home}/turns", {"prompt": prompt, "approve": "edits"})
    while ask("GET", f"{home}/turn")["running"]:
        time.sleep(0.05)


def make():
    """Creates a thread with entries, takes, turns that wrote files, a saved version and a draft with a picture."""
    thread = ask("POST", "/v1/threads", {"title": "A thread"})["thread"]
    home = f"/v1/threads/{thread}"
    ask("POST", f"{home}/current")
    run(home, "create a.txt with one")
    run(home, "create a.txt with two")
    for said in range(3):
        pair = [{"role": "User", "content": f"question {said}"}, {"role": "AI", "content": f"answer {said}"}]
        ask("POST", f"{home}/entries", {"entries": pair})
    entries = [item["id"] for item in ask("GET", f"{home}/entries")["items"]]
    ask("POST", f"{home}/branch", {"entry": entries[-1]})
    ask("PUT", f"{home}/draft", {"text": "say a draft"})
    ask("POST", f"{home}/draft/pictures", {"pictures": [PICTURE]})
    pictures = [attached["picture"] for attached in ask("GET", f"{home}/draft")["pictures"]]
    version = ask("POST", f"{home}/save", {"name": "a moment"})["version"]
    takes = [take["id"] for take in ask("GET", f"{home}/takes")["items"]]
    return {
        "thread": [thread],
        "version": [version, version - 1, 2],
        "entry": entries,
        "take": takes,
        "one": takes[:1],
        "other": takes[1:],
        "project": [ask("GET", home)["home"]],
        "callback": [callback["name"] for callback in ask("GET", "/api/callbacks")["callbacks"]],
        "field": [field["name"] for field in ask("GET", "/api/fields")["fields"]],
        "number": [1, 2],
        "snapshot": [moment["after"] for moment in ask("GET", f"/v1/snapshots?thread={thread}")["items"]],
        "picture": pictures,
        "path": ["a.txt"],
        "q": ["question", "one"],
        "title": WORDS,
        "name": WORDS,
        "role": ["User", "AI"],
        "prompt": PROMPTS,
        "message": WORDS,
        "text": ["say a draft"],
        "provider": ["offline"],
        "model": ["offline/offline"],
        # Only folders in the temporary folder.
        "folder": [f"{PLACE}/{folder}" for folder in ("project", "home", "nowhere")],
        "If-Match": ["*"],
    }


def tend(file):
    with open(file, encoding="utf-8") as written:
        names = json.load(written)
    thread, version = names["thread"][0], names["version"][0]
    while True:
        time.sleep(0.5)
        try:
            ask("POST", f"/v1/threads/{thread}/jump", {"version": version})
        except (urllib.error.URLError, OSError):
            # A turn is running, or the server has stopped: try again.
            pass


def main():
    if sys.argv[1] == "tend":
        tend(sys.argv[2])
    names = make()
    with open(os.path.join(PLACE, "export"), "wb") as exported:
        exported.write(fetch("GET", f"/v1/threads/{names['thread'][0]}/export"))
    with open(os.path.join(PLACE, "names.json"), "w", encoding="utf-8") as written:
        json.dump(names, written)
    with open(sys.argv[2], encoding="utf-8") as template:
        print(template.read())
    for name, values in names.items():
        print(f"[dictionaries.{name}]\nvalues = {json.dumps(values)}\n")
    print("[parameters]")
    for name in names:
        share = 1.0 if name == "folder" else 0.9
        for place in ("header",) if name == "If-Match" else ("path", "query", "body"):
            print(f'"{place}.{name}" = {{ dictionary = "{name}", probability = {share} }}')


main()
