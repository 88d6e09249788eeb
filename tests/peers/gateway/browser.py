#!/usr/bin/env python3
"""The `/docs` page in a real browser, without `public_url`. `browser.py TOOLGATE CHROMIUM`

Chromium is driven by its DevTools protocol over two pipes, so that the standard library is enough."""

import json
import os
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from served import Served, until  # noqa: E402

SECONDS = 120

CONFIG = """
store: { sqlite: { path: runs.db } }
gateway: { listen: "127.0.0.1:0", anonymous: true }
models: { played: { scripted: { file: conversation.yaml } } }
agents:
  worker: { model: played }
"""

CONVERSATION = """
turns:
  - say: Hello from the script.
"""

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe",
]

# All text of the page, including the shadow trees of its elements.
SHOWN = """(() => {
  const texts = [];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) texts.push(node.data);
    if (node.shadowRoot) walk(node.shadowRoot);
    if (node.nodeName !== 'STYLE' && node.nodeName !== 'SCRIPT') node.childNodes.forEach(walk);
  };
  walk(document.body ?? document);
  return texts.join(' ');
})()"""

# The TRY button of an operation, whose component is in the shadow trees.
TRY = """(async () => {
  const all = [];
  const walk = (node) => { all.push(node); if (node.shadowRoot) walk(node.shadowRoot); node.childNodes.forEach(walk); };
  walk(document);
  const api = all.find((node) => node.nodeName === 'API-REQUEST' && node.path === '/v1/agents' && node.method === 'get');
  if (!api) return 'no operation';
  const button = [...api.shadowRoot.querySelectorAll('button')].find((button) => /try/i.test(button.textContent));
  if (!button) return 'no button';
  button.click();
  return 'clicked';
})()"""

POSTED = """fetch('/v1/runs', {
  method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ input: 'Hello' }),
}).then(async (answer) => `${answer.status} ${(await answer.json()).output?.text}`)"""


class Browser:
    """A page of a headless Chromium with its own profile."""

    def __init__(self, chromium, profile):
        (self.reads, writes), (reads, self.writes) = os.pipe(), os.pipe()

        def descriptors():
            # The protocol reads from descriptor 3 and writes to 4.
            high = [os.dup2(reads, 103), os.dup2(writes, 104)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        command = [chromium, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(
            command, preexec_fn=descriptors, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(reads)
        os.close(writes)
        self.number, self.answers, self.heard, self.session = 0, {}, [], None
        threading.Thread(target=self._read, daemon=True).start()
        pages = lambda: [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]  # noqa: E731
        page = until("a page is open", pages, SECONDS)[0]["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        try:
            os.write(self.writes, b'{"id": 0, "method": "Browser.close"}\0')
            self.process.wait(20)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()

    def call(self, method, **parameters):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        answer = until(f"an answer to {method}", lambda: self.answers.pop(number, None), SECONDS)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def evaluate(self, script):
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def refused(self):
        """Every error response, and every error of the console."""
        said = []
        for event in self.heard:
            params = event["params"]
            if event["method"] == "Network.responseReceived" and params["response"]["status"] >= 400:
                said.append(f"{params['response']['status']} {params['response']['url']}")
            if event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
                said.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        return [one for one in said if "favicon" not in one]

    def _read(self):
        pending = b""
        while piece := os.read(self.reads, 65536):
            *messages, pending = (pending + piece).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self.answers[message["id"]] = message
                else:
                    self.heard.append(message)


def main():
    binary, chromium = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        with Served(binary, folder, CONFIG, CONVERSATION) as server:
            browser = Browser(chromium, profile)
            try:
                for name in ("127.0.0.1", "localhost"):
                    looked_at(browser, f"http://{name}:{server.port}")
            finally:
                browser.close()
    print("ok   /docs shows the API, and requests from it are answered")


def looked_at(browser, address):
    browser.call("Page.navigate", url=f"{address}/docs")
    until("the page lists the operations", lambda: "Start a run" in (browser.evaluate(SHOWN) or ""), SECONDS)
    clicked = until("the button to try a request", lambda: browser.evaluate(TRY) == "clicked", SECONDS)
    assert clicked
    until("the answer of the tried request is shown", lambda: tried(browser, address), SECONDS)
    posted = browser.evaluate(POSTED)
    assert posted == "201 Hello from the script.", posted
    assert not browser.refused(), browser.refused()


def tried(browser, address):
    """The statuses of requests that the page's own button sent."""
    for event in browser.heard:
        if event["method"] == "Network.responseReceived":
            response = event["params"]["response"]
            if response["url"] == f"{address}/v1/agents":
                assert response["status"] == 200, response
                return True
    return False


if __name__ == "__main__":
    main()
