"""Summarises the server's log: the number of requests, how many succeeded, and the routes that never did.

A route whose requests were all refused was not really tested.
"""

import collections
import json
import sys


def main():
    routes = collections.defaultdict(collections.Counter)
    for line in sys.stdin:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event.get("message") == "answered" and event["route"] != "other":
            routes[f"{event['method']} {event['route']}"][event["status"] // 100] += 1
    asked = sum(sum(counts.values()) for counts in routes.values())
    done = sum(counts[2] for counts in routes.values())
    print(f"schemathesis: {asked} requests to {len(routes)} routes, {done} succeeded")
    never = sorted(route for route, counts in routes.items() if not counts[2])
    if never:
        print(f"schemathesis: never succeeded: {', '.join(never)}")


main()
