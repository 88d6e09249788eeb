"""`toolgate serve` as a process of its own: started, queried, killed, restarted. It needs only the standard library."""

import http.client
import json
import os
import re
import signal
import subprocess
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))


class Served:
    """A gateway over the files of one folder."""

    def __init__(self, binary, folder, config, conversation=None, prepare=None):
        self.binary, self.folder, self.prepare = os.path.abspath(binary), folder, prepare
        self.config = os.path.join(folder, "toolgate.yaml")
        write(self.config, config)
        if conversation:
            write(os.path.join(folder, "conversation.yaml"), conversation)
        self.process, self.port, self.said = None, 0, []
        self.key = self.toolgate("keys", "create", "tester", "--all", "--config", self.config).strip()

    def toolgate(self, *arguments):
        done = subprocess.run([self.binary, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise AssertionError(f"toolgate {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()

    def start(self, port=0):
        """Starts the server and waits until it listens; a restart uses the same port."""
        listen = f"127.0.0.1:{port or self.port}"
        self.process = subprocess.Popen(
            [self.binary, "serve", "--config", self.config, "--listen", listen],
            cwd=self.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, preexec_fn=self.prepare,
        )
        for line in self.process.stderr:
            self.said.append(line)
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found.group(1))
                threading.Thread(target=self._drain, args=(self.process,), daemon=True).start()
                return
        raise AssertionError(f"toolgate serve ended with {self.process.wait()}: {''.join(self.said[-20:])}")

    def _drain(self, process):
        for line in process.stderr:
            self.said.append(line)

    def kill(self):
        """Kills the process with SIGKILL."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        return self.process.wait(60)

    def ask(self, method, path, body=None, timeout=60, **headers):
        """Status, headers and body of a response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, *self._sent(body, headers))
            answer = connection.getresponse()
            text = answer.read()
            is_json = "json" in (answer.getheader("content-type") or "")
            return answer.status, answer.headers, json.loads(text) if is_json and text else text
        finally:
            connection.close()

    def must(self, method, path, body=None, **headers):
        """The body of a successful response."""
        status, _, answer = self.ask(method, path, body, **headers)
        assert status < 300, f"{method} {path}: {status} {answer}"
        return answer

    def events(self, run, after=None, timeout=60):
        """The events of a run, each with its id, until the stream ends or breaks."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {self.key}"}
        if after is not None:
            headers["Last-Event-ID"] = after
        try:
            connection.request("GET", f"/v1/runs/{run}/events", headers=headers)
            answer = connection.getresponse()
            if answer.status == 204:
                return
            assert answer.status == 200, f"{answer.status} {answer.read()}"
            event_id, data = None, []
            for line in answer:
                line = line.decode().rstrip("\r\n")
                if not line and data:
                    yield event_id, json.loads("\n".join(data))
                    event_id, data = None, []
                elif line.startswith("id:"):
                    event_id = line[3:].strip()
                elif line.startswith("data:"):
                    data.append(line[5:].lstrip())
        finally:
            connection.close()

    def memory_mib(self):
        """The memory of the process."""
        with open(f"/proc/{self.process.pid}/status") as status:
            kib = next(line for line in status if line.startswith("VmRSS:")).split()[1]
        return int(kib) / 1024

    def _sent(self, body, headers):
        sent = {"Authorization": f"Bearer {self.key}", **{name.replace("_", "-"): v for name, v in headers.items()}}
        if body is None:
            return None, sent
        sent["Content-Type"] = "application/json"
        return json.dumps(body), sent


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def until(what, condition, seconds):
    """Waits until a condition is true."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"after {seconds} s still not: {what}"
        time.sleep(0.1)
