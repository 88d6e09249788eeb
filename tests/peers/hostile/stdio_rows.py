"""Process faults: how a server starts, dies, writes and is orphaned."""

import os
import re
import signal
import subprocess
import sys
import time

from answers import FINE
from peer import encoded
from situation import Situation, fails, times_out

NODE_TRACE = b"""node:internal/modules/cjs/loader:1228
  throw err;
  ^

Error: Cannot find module 'zod'
Require stack:
- /srv/app/index.js
    at Function._resolveFilename (node:internal/modules/cjs/loader:1225:15)
    at Function._load (node:internal/modules/cjs/loader:1055:27)
    at TracingChannel.traceSync (node:diagnostics_channel:322:14)
    at wrapModuleLoad (node:internal/modules/cjs/loader:220:24)
    at Module.require (node:internal/modules/cjs/loader:1311:12)
    at require (node:internal/modules/helpers:136:16)
    at Object.<anonymous> (/srv/app/index.js:1:11)
    at Module._compile (node:internal/modules/cjs/loader:1554:14) {
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/srv/app/index.js' ]
}

Node.js v22.14.0
"""
NODE_THROWN = b"""file:///srv/app/dist/index.js:12
    throw new Error("SHOP_TOKEN is not set");
          ^

Error: SHOP_TOKEN is not set
    at file:///srv/app/dist/index.js:12:11
    at ModuleJob.run (node:internal/modules/esm/module_job:271:25)
    at async onImport.tracePromise.__proto__ (node:internal/modules/esm/loader:578:26)
    at async asyncRunEntryPointWithESMLoader (node:internal/modules/run_main:116:5)

Node.js v22.14.0
"""
PYTHON_TRACE = b"""Traceback (most recent call last):
  File "/srv/server.py", line 3, in <module>
    import shop
  File "/srv/shop.py", line 9, in <module>
    raise KeyError("SHOP_TOKEN")
KeyError: 'SHOP_TOKEN'
"""
PYTHON_CHAIN = b"""Traceback (most recent call last):
  File "/srv/a.py", line 3, in f
    1 / 0
ZeroDivisionError: division by zero

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/a.py", line 9, in <module>
    raise RuntimeError("SHOP_TOKEN is not set")
RuntimeError: SHOP_TOKEN is not set
"""
JAVA_TRACE = b"""Exception in thread "main" java.lang.IllegalStateException: SHOP_TOKEN is not set
\tat com.shop.Server.main(Server.java:12)
\tat java.base/jdk.internal.reflect.DirectMethodHandleAccessor.invoke(DirectMethodHandleAccessor.java:103)
\tat java.base/java.lang.reflect.Method.invoke(Method.java:580)
Caused by: java.lang.NullPointerException
\tat com.shop.Server.token(Server.java:40)
\t... 3 more
"""
GO_PANIC = b"""panic: SHOP_TOKEN is not set

goroutine 1 [running]:
main.main()
\t/srv/main.go:8 +0x25
exit status 2
"""
RUST_PANIC = b"""thread 'main' (1) panicked at src/main.rs:4:5:
SHOP_TOKEN is not set
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""
NPM = b"""npm error code E404
npm error 404 Not Found - GET https://registry.invalid/no-such-server - Not found
npm error A complete log of this run can be found in: /home/x/.npm/_logs/2026-11-23T00_00_00_000Z-debug-0.log
"""
TRACES = {"a Node stack over a missing module": (NODE_TRACE, "Cannot find module 'zod'"), "a Node error that was thrown": (NODE_THROWN, "SHOP_TOKEN is not set"),
          "a Python traceback": (PYTHON_TRACE, "KeyError: 'SHOP_TOKEN'"), "a chain of Python tracebacks": (PYTHON_CHAIN, "RuntimeError: SHOP_TOKEN is not set"),
          "a Java stack": (JAVA_TRACE, "SHOP_TOKEN is not set"), "a Go panic": (GO_PANIC, "SHOP_TOKEN is not set"),
          "npm's errors": (NPM, "404 Not Found"),
          "a line": (b"fatal: SHOP_TOKEN is not set\n", "SHOP_TOKEN is not set"), "a line without an end": (b"SHOP_TOKEN is not set", "SHOP_TOKEN is not set"),
          "terminal escapes": (b"\x1b[31mSHOP_TOKEN is not set\x1b[0m\n", "SHOP_TOKEN is not set"), "bytes that are no UTF-8": (b"caf\xe9: SHOP_TOKEN\n", "SHOP_TOKEN"),
          "a line of 1 MB": (b"SHOP_TOKEN is not set " + b"x" * 1_000_000 + b"\n", "")}


def die(code=4, stderr=b""):
    return lambda exchange: exchange.die(code, stderr)


def kill_self(number):
    return lambda exchange: os.kill(os.getpid(), number) or exchange.hang()


def write_all(descriptor, data):
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view):]


def then_well(before):
    def act(exchange):
        before(exchange)
        exchange.well()
    return act


def ignore_everything(exchange):
    """Keeps running when stdin ends and when it receives SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def grandchild(*words):
    def act(exchange):
        subprocess.Popen([sys.executable, "-S", "-E", "-c", *words])
    return act


SLEEPS = "import time; time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGHUP, signal.SIG_IGN); time.sleep(60)"


def rows():
    row = lambda name, acts, good, **more: Situation(name, "stdio", acts, good, group=more.pop("group", "processes"), **more)
    for name, (stderr, quote) in TRACES.items():
        source = "issue 17, item 11: a quote of stderr finds the reason"
        quote = re.escape(quote).replace("'", "['\\\\]*")
        yield row(f"a process dies at its start with {name}", {}, fails(quote), opening=die(1, stderr), command="list", source=source)
        yield row(f"a process dies in a call with {name}", {"tools/call": die(1, stderr)}, fails(quote), source=source)
    # A panic of the server is quoted, so its text alone cannot be distinguished from a panic of toolgate; the exit
    # code can.
    for moment, name in [("initialize", "initialize"), ("tools/list", "the list"), ("tools/call", "a call")]:
        command = "call" if moment == "tools/call" else "list"
        for code in (0, 1, 127):
            yield row(f"a process exits with {code} in {name}", {moment: die(code)}, fails(f"exit status: {code}|ended|exit"), command=command)
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
            yield row(f"a process dies of {number.name} in {name}", {moment: kill_self(number)}, fails(f"signal|{number.name}|ended"), command=command)
        yield row(f"a process closes only stdout in {name}", {moment: lambda exchange: (os.close(1), exchange.hang())}, fails("clos|ended|broke|stdout"), command=command)
        yield row(f"a process closes stdin and stdout in {name}", {moment: lambda exchange: (os.close(0), os.close(1), exchange.hang())}, fails("clos|ended|broke|stdout"), command=command)
        yield row(f"a process is silent in {name}", {moment: lambda exchange: exchange.hang()}, times_out("within|for"), command=command)
        yield row(f"a process is stopped in {name}", {moment: kill_self(signal.SIGSTOP)}, times_out("within|for"), command=command, slack=5)
    yield row("a process exits after the list", {"tools/list": lambda exchange: (exchange.well(), time.sleep(0.02), exchange.die(4))},
              (FINE, fails("ended|exit")), source="the next use may start it again")
    yield row("a process closes only stdin after the list", {"tools/list": lambda exchange: (exchange.well(), os.close(0))}, (FINE, fails(), times_out()))
    yield row("a process answers a call and exits at once", {"tools/call": lambda exchange: (exchange.well(), os._exit(0))}, FINE)
    yield row("a process answers a call and dies of SIGSEGV", {"tools/call": lambda exchange: (exchange.well(), os.kill(os.getpid(), signal.SIGSEGV))}, FINE)
    yield row("a process answers half a call and exits", {"tools/call": lambda exchange: (exchange.bytes(encoded(exchange.answer(exchange.result()))[:-30]), os._exit(3))},
              fails("exit status: 3|ended"))
    yield row("a process answers a call without a final line end and exits", {"tools/call": lambda exchange: (exchange.bytes(encoded(exchange.answer(exchange.result()))), os._exit(0))},
              (FINE, fails()))
    yield row("a process answers a call without a final line end and lives on", {"tools/call": lambda exchange: (exchange.bytes(encoded(exchange.answer(exchange.result()))), exchange.hang())},
              (FINE, times_out()))
    yield row("a process answers byte by byte", {"tools/call": lambda exchange: [exchange.bytes(bytes([byte])) for byte in encoded(exchange.answer(exchange.result())) + b"\n"]}, FINE)
    yield row("a process never reads stdin", {}, times_out("handshake"), opening=lambda exchange: exchange.hang(), command="list")
    yield row("a process exits at once with 0", {}, fails("exit status: 0|ended"), opening=lambda exchange: os._exit(0), command="list")
    yield row("a program does not exist", {}, fails("not found"), program=["/nonexistent/server"], command="list")
    yield row("a program is a folder", {}, fails("permission|cannot|not|directory"), program=["/tmp"], command="list")
    yield row("a program is no program", {}, fails(), program=["/etc/passwd"], command="list")
    yield row("a program reads stdin and says nothing", {}, times_out("handshake"), program=["sleep", "60"], command="list")
    yield row("a program returns what it hears", {}, (fails(), times_out()), program=["cat"], command="list")
    # These compete with their reader for the processors, as long as the machine has other work.
    loud = {"command": "list", "source": "everything is bounded", "bound": 90, "slack": 60}
    yield row("a program prints without end", {}, (fails(), times_out()), program=["yes"], **loud)
    yield row("a program prints zeros without a line end", {}, (fails(), times_out()), program=["cat", "/dev/zero"], **loud)
    yield row("a program prints noise", {}, (fails(), times_out()), program=["cat", "/dev/urandom"], **loud)
    yield row("a program prints noise to stderr", {}, (fails(), times_out()), program=["sh", "-c", "cat /dev/urandom >&2"], **loud)
    yield row("a program prints its usage and exits", {}, fails("usage"), program=["sh", "-c", "echo 'usage: server PORT' >&2; exit 2"], command="list")
    yield row("a program prints why to stdout and exits", {}, fails("SHOP_TOKEN"), program=["sh", "-c", "echo 'SHOP_TOKEN is not set'; exit 2"], command="list",
              source="the reason is what it printed, wherever")
    yield row("a program listens on a port instead", {}, times_out("stdin and stdout"), program=["sh", "-c", "echo 'Listening on 3000' >&2; sleep 60"], command="list",
              source="docs/mcp-servers.md: does it speak MCP on stdin and stdout")
    yield row("a program needs a terminal", {}, fails("tty|terminal"), program=["sh", "-c", "test -t 0 || { echo 'not a tty' >&2; exit 1; }"], command="list")

    banner = b"  ____ ___\n | |  | _ |   FancyMCP 2.0\n\nServer started.\n"
    yield row("a banner on stdout before anything else", {}, FINE, opening=lambda exchange: exchange.bytes(banner))
    yield row("63 lines of a banner on stderr", {}, FINE, opening=lambda exchange: write_all(2, banner * 16))
    yield row("a banner without a line end on stdout", {}, (FINE, fails("stdout"), times_out("stdout")), opening=lambda exchange: exchange.bytes(b"ready> "))
    yield row("a prompt before each answer", {method: lambda exchange: exchange.bytes(b"> " + encoded(exchange.answer(exchange.result())) + b"\n") for method in ("tools/call",)},
              (FINE, fails(), times_out("stdout")))
    yield row("log lines before and after each message", {method: then_well(lambda exchange: exchange.bytes(b"DEBUG: handling\n")) for method in ("initialize", "tools/list", "tools/call")}, FINE)
    yield row("JSON log lines before each message", {method: then_well(lambda exchange: exchange.bytes(b'{"level":30,"msg":"handling","id":1}\n')) for method in ("initialize", "tools/list", "tools/call")}, FINE)
    yield row("empty lines before each message", {method: then_well(lambda exchange: exchange.bytes(b"\n\r\n  \n")) for method in ("initialize", "tools/list", "tools/call")}, FINE)
    yield row("colours around a log line on stdout", {"tools/call": then_well(lambda exchange: exchange.bytes(b"\x1b[32mINFO\x1b[0m ok\n"))}, FINE)
    yield row("2 MB of a log on stdout in a call", {"tools/call": then_well(lambda exchange: exchange.bytes(b"DEBUG: handling\n" * 130_000))}, FINE, source="everything is bounded")
    yield row("a log line of 20 MB on stdout in a call", {"tools/call": then_well(lambda exchange: exchange.bytes(b"x" * 20_000_000 + b"\n"))}, (FINE, fails()), source="everything is bounded")
    yield row("10 MB of a log on stderr in a call", {"tools/call": then_well(lambda exchange: write_all(2, b"DEBUG: handling\n" * 650_000))}, FINE, source="everything is bounded", slack=10)
    yield row("a line of 10 MB on stderr in a call", {"tools/call": then_well(lambda exchange: write_all(2, b"x" * 10_000_000))}, FINE, source="everything is bounded", slack=10)
    yield row("a message of 100 MB without a line end", {"tools/call": lambda exchange: (exchange.bytes(b'{"jsonrpc":"2.0","id":%d,"result":"' % exchange.id + b"x" * 100_000_000), exchange.hang())},
              (fails("long|MiB"), times_out()), source="everything is bounded", slack=10)

    ends = "MCP, stdio shutdown: close stdin, SIGTERM, SIGKILL"
    yield row("a process ignores the end of stdin", {}, FINE, closing=lambda exchange: exchange.hang(), source=ends, slack=5)
    yield row("a process ignores SIGTERM and the end of stdin", {}, FINE, opening=ignore_everything, closing=lambda exchange: exchange.hang(), source=ends, slack=8)
    yield row("a process floods stdout when stdin ends", {}, FINE, closing=lambda exchange: [exchange.bytes(b"bye\n" * 10_000) for _ in range(10**6)], source=ends, slack=8)
    yield row("a process floods stderr when stdin ends", {}, FINE, closing=lambda exchange: [write_all(2, b"bye\n" * 10_000) for _ in range(10**6)], source=ends, slack=8)
    yield row("a process exits with 1 when stdin ends", {}, FINE, closing=lambda exchange: os._exit(1), source=ends)
    left = "issue 17: no process is left behind"
    yield row("a process leaves a child behind", {"tools/call": then_well(grandchild(SLEEPS))}, FINE, source=left, slack=5)
    yield row("a process leaves a child behind that ignores signals", {"tools/call": then_well(grandchild(STUBBORN))}, FINE, source=left, slack=5)
    yield row("a process dies in a call and leaves a child that holds stdout", {"tools/call": lambda exchange: (grandchild(SLEEPS)(exchange), exchange.die(4, b"gone\n"))},
              fails("gone|ended"), source=left, slack=5)
    yield row("a process dies at its start and leaves a child that holds stdout", {}, fails("gone|ended"),
              opening=lambda exchange: (grandchild(SLEEPS)(exchange), exchange.die(4, b"gone\n")), command="list", source=left, slack=5)
    yield row("a silent call leaves no process behind", {"tools/call": lambda exchange: exchange.hang()}, times_out(), source=left, slack=5)
