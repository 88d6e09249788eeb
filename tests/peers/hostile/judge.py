"""Judge: runs toolgate against one situation and judges its observable behaviour."""

import json
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PANIC = re.compile(rb"panicked at|RUST_BACKTRACE|has overflowed its stack|fatal runtime error|internal error: entered unreachable")
# Seconds after the end of toolgate until every process that it started has to be gone.
GONE = 5
# The size of the beginning and of the end that is read of longer output: a result of 40 MB is judged by these.
READ = 4 * 1024 * 1024


class Seen:
    """The observations of one run."""

    def __init__(self):
        self.exit = self.status = self.since_strike = None
        self.error = self.output = ""
        self.seconds = self.cpu_seconds = self.memory_mb = self.calls = self.slack = 0
        self.left, self.raw, self.events, self.log = [], b"", [], []



def configuration(situation, folder, port, pycache, mark):
    limits = situation.timeouts
    settings = {"start_timeout_s": limits.start, "call_timeout_s": limits.call, "total_timeout_s": limits.total}
    if situation.version != "auto":
        settings["protocol_version"] = situation.version
    if port is None:
        settings["stdio"] = program(situation, situation.table, situation.name, os.path.join(folder, "log"), pycache, mark)
    else:
        settings["http"] = {"url": f"http://127.0.0.1:{port}/mcp"}
    config = {"servers": {"hostile": {**settings, **situation.settings}}}
    if situation.command == "run":
        healthy = program(None, "healthy", "a healthy server", os.path.join(folder, "healthy"), pycache, mark)
        config["servers"]["healthy"] = {"stdio": healthy, "protocol_version": "2025-11-25"}
        config["models"] = {"played": {"scripted": {"file": "conversation.yaml"}}}
        config["agents"] = {"worker": {"model": "played", "servers": ["hostile", "healthy"], "policy": "bypass"}}
        turns = [{"latency_ms": situation.model_ms, "calls": [{"name": "mcp_hostile_echo"}, {"name": "mcp_healthy_echo"}]}, {"say": "over: {{last_result}}"}]
        write(os.path.join(folder, "conversation.yaml"), json.dumps({"turns": turns}))
    write(os.path.join(folder, "toolgate.yaml"), json.dumps(config, indent=1))


def program(situation, table, name, log, pycache, mark):
    environment = {"HOSTILE_LOG": log, "HOSTILE_MARK": mark}
    if situation and situation.program:
        command, *arguments = situation.program
        return {"command": command, "args": arguments, "env": environment}
    arguments = ["-S", "-E", "-X", f"pycache_prefix={pycache}", os.path.join(HERE, "peer.py"), table, name, "--stdio"]
    return {"command": sys.executable, "args": arguments, "env": environment}


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def command(binary, situation):
    words = {
        "call": ["mcp", "call", "--json", *situation.options, "hostile", situation.tool, situation.arguments],
        "list": ["mcp", "list", "--json", *situation.options, "hostile"],
        "run": ["run", "--json", *situation.options, "go"],
    }[situation.command]
    return [binary, *words]


def play(binary, situation, folder, pycache):
    """Runs it, with an HTTP server beside it where that is the transport."""
    os.makedirs(folder)
    mark = f"{os.getpid()}-{os.path.basename(folder)}"
    server = port = None
    try:
        if situation.transport != "stdio":
            words = program(None, situation.table, situation.name, "", pycache, mark)["args"][:-1]
            server = subprocess.Popen([sys.executable, *words, "--http"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      env={**os.environ, "HOSTILE_LOG": os.path.join(folder, "log")})
            port = int(server.stdout.readline())
        configuration(situation, folder, port, pycache, mark)
        seen = run(command(binary, situation), situation, folder, mark)
        if server:
            server.kill()
            seen.cpu_seconds += reap(server)
        return seen
    finally:
        if server and server.returncode is None:
            server.kill()
            server.wait()
        for pid in marked(mark):
            kill(pid)


def run(words, situation, folder, mark):
    seen = Seen()
    environment = {"PATH": os.environ["PATH"], "HOME": folder, "LANG": "C.UTF-8"}
    out, err = os.path.join(folder, "out"), os.path.join(folder, "err")
    began = time.time()
    with open(out, "wb") as stdout, open(err, "wb") as stderr:
        process = subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
        while (cpu_seconds := reap(process, os.WNOHANG)) is None:
            seen.memory_mb = max(seen.memory_mb, peak_mb(process.pid))
            if time.time() - began > situation.bound:
                process.send_signal(signal.SIGKILL)
                cpu_seconds = reap(process)
                break
            time.sleep(0.03)
    ended = time.time()
    seen.cpu_seconds = cpu_seconds
    seen.exit, seen.seconds, seen.slack = process.returncode, ended - began, situation.slack
    seen.left = left_behind(mark, ended)
    stdout, stderr = head(out), head(err)
    seen.raw = stdout + stderr
    seen.output = seen.raw.decode(errors="replace")
    found = re.search(rb'^  "status": "(\w+)"', stdout, re.M)
    seen.status = found.group(1).decode() if found else None
    seen.error = "" if seen.status == "answered" else seen.output
    seen.log = lines_of(os.path.join(folder, "log"))
    seen.healthy = lines_of(os.path.join(folder, "healthy"))
    seen.began, seen.ended = began, ended
    seen.calls = sum(line.get("method") == "tools/call" for line in seen.log if line["event"] == "received")
    struck = [line["at"] for line in seen.log if line["event"] == "struck"]
    seen.since_strike = ended - struck[-1] if struck else None
    return seen


def reap(process, options=0):
    """The processor seconds of an ended process and of the children that it waited for; None while it runs."""
    pid, status, usage = os.wait4(process.pid, options)
    if not pid:
        return None
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def peak_mb(pid):
    try:
        with open(f"/proc/{pid}/status") as status:
            found = re.search(r"VmHWM:\s+(\d+)", status.read())
    except OSError:
        return 0
    return int(found.group(1)) / 1024 if found else 0


def marked(mark):
    """The processes whose environment has the mark: descendants of toolgate."""
    needle, found = f"HOSTILE_MARK={mark}\0".encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if needle in file.read():
                    found.append(int(pid))
        except OSError:
            continue
    return found


def left_behind(mark, ended):
    while (left := marked(mark)) and time.time() - ended < GONE:
        time.sleep(0.1)
    return left


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def head(path):
    """The output, without the middle if it is long."""
    with open(path, "rb") as file:
        beginning = file.read(READ)
        file.seek(max(file.tell(), os.path.getsize(path) - READ))
        return beginning + file.read()


def lines_of(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def faults(situation, seen):
    """The errors in the observations; empty if there are none."""
    found = []
    if seen.exit == -signal.SIGKILL and seen.seconds >= situation.bound:
        found.append(f"still running after {situation.bound} s")
    elif seen.exit < 0 or seen.exit in (101, 134):
        found.append(f"crashed with {seen.exit}")
    if PANIC.search(seen.raw):
        found.append("a panic was printed")
    if b"\x1b" in seen.raw:
        found.append("a raw terminal escape was printed")
    if seen.memory_mb > situation.memory:
        found.append(f"{seen.memory_mb:.0f} MB of memory, more than {situation.memory}")
    if seen.calls > situation.calls:
        found.append(f"the server received the call {seen.calls} times")
    if seen.left:
        found.append(f"{len(seen.left)} processes left {GONE} s after the end")
    misses = [(ending, ending.misses(seen)) for ending in situation.good]
    if misses and all(miss for _, miss in misses):
        found.append("; ".join(f"not '{ending}': {miss}" for ending, miss in misses))
    if (situation.acts or situation.opening) and seen.since_strike is None and not situation.program:
        found.append("the misbehaviour never happened")
    if situation.check and (wrong := situation.check(seen)):
        found.append(wrong)
    return found
