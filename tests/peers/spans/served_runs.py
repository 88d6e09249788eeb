"""served_runs.py BINARY LOG QUESTION... - starts one run for each question at a server, and waits until they have ended.

The second run is started once the provider answered the first one, so that a call of the first run is in progress. With
`runs.max_active: 1` the second run then waits for admission until that call has ended, and rule O5 of check_spans.py
requires a span for this time.
"""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request

binary, log, questions = sys.argv[1], sys.argv[2], sys.argv[3:]


def main():
    server = subprocess.Popen([binary, "serve"], stderr=subprocess.PIPE, text=True)
    address = next(found[0] for line in server.stderr if (found := re.search(r"http://[0-9.]+:[0-9]+", line)))
    try:
        runs = []
        for question in questions:
            runs.append(ask(f"{address}/v1/runs", {"agent": "desk", "input": question})["id"])
            until(lambda: '"llm"' in open(log).read())
        until(lambda: all(ask(f"{address}/v1/runs/{run}")["status"] == "completed" for run in runs))
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate()
    return server.returncode


def ask(address, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"content-type": "application/json", "prefer": "respond-async"})
    return json.load(urllib.request.urlopen(request, timeout=60))


def until(is_true):
    while not is_true():
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
