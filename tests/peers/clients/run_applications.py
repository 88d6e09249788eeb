#!/usr/bin/env python3
"""Runs the applications of examples/http as their users do. `run_applications.py TOOLGATE NODE PACKAGE [CHROMIUM]`

PACKAGE is the npm package of the client; that of Python has to be importable. Without CHROMIUM, the pages are not opened.
"""

import functools
import http.server
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from toolgate_client import Toolgate

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "gateway"))

from browser import Browser  # noqa: E402
from served import Served, until  # noqa: E402

ANSWER = "Order A-1077 is late and Ada knows by now; A-1041 was delivered."
SECONDS = 60


def started(command, **options):
    """A process in a pipe, and the lines that it prints."""
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def typescript(folder, node, toolgate):
    """The application answers, and one that is killed continues with the very next event."""
    place = os.path.join(folder, "typescript")
    whole = subprocess.run([node, "app.ts"], cwd=place, capture_output=True, text=True, timeout=SECONDS)
    assert whole.returncode == 0 and ANSWER in whole.stdout and "(to ada@example.com" in whole.stdout, whole
    lines = []
    with started([node, "app.ts"], cwd=place) as killed:
        for line in killed.stdout:
            lines.append(line)
            if "tool.external.requested" in line:
                killed.kill()
    again = subprocess.run([node, "app.ts", "ignored"], cwd=place, capture_output=True, text=True, timeout=SECONDS)
    assert again.returncode == 0 and again.stdout.splitlines()[0] == lines[0].strip(), (lines, again)
    lines += again.stdout.splitlines()
    run = lines[0].split()[1]
    seen = [found.group(1) for found in (re.match(r" *([\d.]+) \w", line) for line in lines) if found]
    expected = [event["id"] for event in toolgate.events(run)]
    # The kill can fall between the output of an event and the storage of its id.
    assert sorted(set(seen), key=expected.index) == expected and len(seen) <= len(expected) + 1, (seen, expected)


class Backend:
    """The backend on a free port."""

    def __init__(self, folder):
        command = [sys.executable, "-m", "uvicorn", "app:app", "--app-dir", os.path.join(folder, "fastapi"), "--port", "0"]
        self.process = started(command)
        for line in self.process.stdout:
            if found := re.search(r"http://[\d.:]+", line):
                self.url = found.group(0)
                threading.Thread(target=self.process.stdout.read, daemon=True).start()
                return
        raise AssertionError(f"the backend ended with {self.process.wait()}")

    def end(self, by=signal.SIGTERM):
        self.process.send_signal(by)
        self.process.wait(SECONDS)

    def ask(self):
        body = json.dumps({"text": "How are A-1077 and A-1041?"}).encode()
        request = urllib.request.Request(f"{self.url}/questions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            return json.load(response)["run"]

    def events(self, run, **headers):
        request = urllib.request.Request(f"{self.url}/questions/{run}/events", headers=headers)
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            frames = [frame.split("\n") for frame in response.read().decode().strip().split("\n\n")]
        return [dict(line.split(": ", 1) for line in frame if ": " in line) for frame in frames]


def fastapi(folder, toolgate):
    """The backend answers, passes on the events, and continues what was in progress when it was killed."""
    backend = Backend(folder)
    run = backend.ask()
    events = backend.events(run)
    assert [events[-1]["event"], events[-2]["event"]] == ["end", "execution.completed"], events[-2:]
    assert "llm.text.delta" in [event["event"] for event in events]
    ids = [event["id"] for event in events if "id" in event]
    assert ids == [event["id"] for event in toolgate.events(run)], ids
    later = backend.events(run, **{"Last-Event-ID": ids[4]})
    assert [event["id"] for event in later if "id" in event] == ids[5:], later
    try:
        backend.events("run_0199f3a07c1e7d0a8f3c9b1d2e4f5a6b")
        raise AssertionError("an unknown run is refused")
    except urllib.error.HTTPError as refused:
        assert (refused.code, json.load(refused)["code"]) == (404, "not_found")
    run = backend.ask()
    backend.end(signal.SIGKILL)
    backend = Backend(folder)
    ended = list(toolgate.events(run, include="content"))[-1]
    assert (ended["type"], ended["output"]["text"]) == ("execution.completed", ANSWER), ended
    backend.end()


def fastapi_page(folder, browser):
    backend = Backend(folder)
    browser.call("Page.navigate", url=backend.url)
    until("the page is shown", lambda: browser.evaluate("document.querySelector('form') !== null"), SECONDS)
    browser.evaluate("document.querySelector('button').click()")
    shown = "document.body.innerText"
    until("the answer is shown", lambda: "Done." in browser.evaluate(shown) and ANSWER in browser.evaluate(shown), SECONDS)
    assert "lookup_order" in browser.evaluate(shown)
    backend.end()


def inbox(browser, page, server, toolgate):
    """The page shows the pending calls, new ones too, and decides; changes elsewhere appear within a second."""
    def new_run():
        return toolgate.runs.create({"agent": "desk", "input": "Who is Ada?"})["id"]

    def cards(count):
        found = f"document.querySelectorAll('article').length === {count}"
        until(f"{count} calls are shown", lambda: browser.evaluate(found), SECONDS)

    def press(value):
        browser.evaluate(f"document.querySelector('button[value={value}]').click()")

    def decide_elsewhere(run):
        approval = next(one for one in toolgate.approvals.list()["data"] if one["run_id"] == run)
        toolgate.approvals.decide(approval["id"], {"decision": "deny"})

    approved = new_run()
    browser.call("Page.navigate", url=page)
    cards(1)
    press("approve")
    cards(0)
    denied = new_run()
    cards(1)
    browser.evaluate("document.querySelector('input').value = 'not before Friday'")
    press("deny")
    cards(0)
    ends = [list(toolgate.events(run))[-1]["type"] for run in (approved, denied)]
    assert ends == ["execution.completed"] * 2, ends
    assert "Ada Lindqvist" in toolgate.runs.export(approved)
    assert "not before Friday" in toolgate.runs.export(denied)
    changes = (decide_elsewhere, toolgate.runs.cancel, decide_elsewhere)
    begin = time.monotonic()
    for change in changes:
        elsewhere = new_run()
        cards(1)
        change(elsewhere)
        cards(0)
    seconds = (time.monotonic() - begin) / (2 * len(changes))
    assert seconds < 1, f"a change is shown after {seconds} s"
    assert not browser.refused(), browser.refused()
    inbox_interrupted(server, new_run, cards, press, browser)


def inbox_interrupted(server, new_run, cards, press, browser):
    """The page is right again after the server was killed, also if its cursor is no longer kept."""
    is_gone = lambda: [one for one in browser.refused() if one.startswith("410")]  # noqa: E731
    for is_kept in (True, False):
        new_run()
        cards(1)
        # While the server is stopped, the page waits. Only the restart is an interruption, too short for it to lose its cursor.
        server.process.send_signal(signal.SIGSTOP)
        server.toolgate("approvals", "deny", "last", "--all", "--config", server.config)
        # These end with a code that says that the run is pending.
        started = [server.binary, "run", "--quiet", "--agent", "desk", "Who is Ada?"]
        assert [subprocess.run(started, cwd=server.folder, capture_output=True).returncode for _ in range(2)] == [10, 10]
        if not is_kept:
            with sqlite3.connect(os.path.join(server.folder, "orders.db")) as store:
                store.execute("DELETE FROM commit_log WHERE position < (SELECT max(position) FROM commit_log)")
            store.close()
        server.kill()
        server.start()
        cards(2)
        assert bool(is_gone()) is not is_kept, browser.refused()
        for left in (1, 0):
            press("deny")
            cards(left)


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def main():
    binary, node, package, *chromium = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        shutil.copytree(os.path.join(REPOSITORY, "examples", "http"), folder, dirs_exist_ok=True)
        install = ["npm", "install", "--silent", "--offline", "--no-audit", "--no-fund", "--no-save", "--prefix", folder, package]
        subprocess.run(install, check=True)
        files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=folder))
        threading.Thread(target=files.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.1:{files.server_port}"
        path = f"{os.path.dirname(os.path.abspath(binary))}:{os.environ['PATH']}"
        os.environ |= {"INBOX_ORIGIN": origin, "PATH": path}
        with open(os.path.join(folder, "toolgate.yaml"), encoding="utf-8") as file:
            config = file.read()
        with Served(binary, folder, config) as server:
            os.environ["TOOLGATE_URL"] = f"http://127.0.0.1:{server.port}"
            with Toolgate() as toolgate:
                typescript(folder, node, toolgate)
                print("ok   typescript")
                fastapi(folder, toolgate)
                print("ok   fastapi")
                if chromium:
                    browser = Browser(chromium[0], profile)
                    try:
                        fastapi_page(folder, browser)
                        inbox(browser, f"{origin}/inbox/#url=http://127.0.0.1:{server.port}", server, toolgate)
                    finally:
                        browser.close()
                    print("ok   the page of fastapi, and inbox, in a browser")
        files.shutdown()


if __name__ == "__main__":
    main()
