"""Runs the real binary through every case of cases.py and has check_spans.py judge what it exports.

run_cases.py BINARY [PART-OF-A-NAME]    one line per case; exit 1 if any failed
  --phoenix BIN    the most informative cases alone, also through a real Phoenix; or through one that runs, by its address
  --rotel BIN      the same with a real collector in between, which must not lose spans
"""

import argparse
import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed

from any_wire import AnyWire
from cases import CASES, TELLING
from check_spans import Phoenix, free_port
from provider import Provider

HERE = os.path.dirname(os.path.abspath(__file__))
# Cases wait much more than they compute.
AT_ONCE = 3
LEASE_S = 5
POLICY = os.path.join(HERE, "..", "..", "..", "examples", "demo", "policy.yaml")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("part", nargs="?", default="")
    parser.add_argument("--phoenix", metavar="BIN", type=lambda given: given if "://" in given else os.path.abspath(given))
    parser.add_argument("--rotel", metavar="BIN", type=os.path.abspath)
    given = parser.parse_args()
    chosen = [name for name in CASES if given.part in name and (name in TELLING or not (given.phoenix or given.rotel))]
    if not chosen:
        print(f"no case is called anything like {given.part!r}")
        return 1
    failed = 0
    with phoenix(given.phoenix) as flags, ThreadPoolExecutor(AT_ONCE) as pool:
        running = {pool.submit(in_a_folder, given.binary, CASES[name], flags, given.rotel): name for name in chosen}
        for ended in as_completed(running):
            problems, note = ended.result()
            print(f"{'FAIL' if problems else 'ok  '} {running[ended]}: {note}", flush=True)
            for problem in problems:
                print(f"     {problem}", flush=True)
            failed += bool(problems)
    print(f"{len(chosen) - failed} of {len(chosen)} cases are as they should be", flush=True)
    return 1 if failed else 0


def in_a_folder(*given):
    with tempfile.TemporaryDirectory(prefix="spans-") as folder:
        return run(folder, *given)


@contextlib.contextmanager
def phoenix(binary):
    """The flags of check_spans.py that name a Phoenix, which all cases share: it takes longer to start than a case takes."""
    if binary is None or "://" in binary:
        yield ["--phoenix", binary] if binary else []
        return
    with tempfile.TemporaryFile() as log:
        server = Phoenix(binary, log)
        print(f"Phoenix was there after {server.boot_s:.1f} s", flush=True)
        try:
            yield ["--phoenix", f"http://127.0.0.1:{server.http}"]
        finally:
            server.stop()


def run(folder, binary, case, flags, rotel):
    log, dump = os.path.join(folder, "oracle.jsonl"), os.path.join(folder, "dump.json")
    open(log, "w").close()
    turns, wire = case.get("turns", []), case.get("wire")
    provider = AnyWire(wire, turns, log) if wire else Provider(turns, log)
    try:
        with open(os.path.join(folder, "toolgate.yaml"), "w") as file:
            json.dump(config(binary, case, provider.url, log), file)  # JSON is YAML
        with open(os.path.join(folder, "policy.yaml"), "w") as file:
            json.dump(case.get("policy", {}), file)
        script = os.path.join(folder, "steps.sh")
        with open(script, "w") as file:
            file.write(collector(rotel) if rotel else "")
            file.write("".join(step(binary, case, log, *one) for one in case["steps"]))
            file.write("kill $collector; wait $collector || true\n" if rotel else "")
        command = [sys.executable, os.path.join(HERE, "check_spans.py"), "--profile", "toolgate", "--dump", dump]
        command += [word for pair in case["expect"].items() for word in ("--expect", "%s=%d" % pair)]
        if "protocol" in case:
            command += ["--protocol", case["protocol"]]
        command += case.get("flags", []) + flags
        if not case.get("demo"):
            command += ["--oracle", log, "--require-traceparent"]
        command += ["--settle", "0.2", "--", "bash", "-eu", script]
        checked = subprocess.run(command, cwd=folder, env={**clean_environment(), **case.get("environment", {})}, capture_output=True, text=True)
    finally:
        provider.stop()
    said = [line for line in checked.stdout.splitlines() if line]
    problems = [line for line in said if line.startswith(("FAIL", "INFRA"))]
    if checked.returncode != 0:
        problems = problems or [f"check_spans.py exited with {checked.returncode}"]
        problems += ["  " + line for line in checked.stderr.splitlines()[-8:]]
    elif not case.get("demo") and provider.served != len(case["turns"]):
        problems.append(f"the provider was asked {provider.served} times, not {len(case['turns'])}")
    if os.path.exists(dump):
        with open(dump) as file:
            problems += list(further_problems(case, json.load(file)["spans"]))
    problems += list(not_carried(case, log))
    counts = next((line for line in said if re.match(r"\d+ passed", line)), "nothing was checked")
    return problems, f"{counts}; {said[0] if said else 'no span'}"


def further_problems(case, spans):
    """The promises beyond the published conventions."""
    attributes = [{**dict(span["attrs"]), "start": span["start"], "links": span.get("links")} for span in spans]
    roots = [span for span in attributes if span["openinference.span.kind"] == "AGENT"]
    outcomes = [root.get("toolgate.run.outcome") for root in sorted(roots, key=lambda root: root["start"])]
    if outcomes != case["outcomes"]:
        yield f"the roots say {outcomes}, not {case['outcomes']}"
    for name in case.get("every_llm_span_has", []):
        if not all(name in span for span in attributes if span["openinference.span.kind"] == "LLM"):
            yield f"an LLM span lacks {name}"


def not_carried(case, log):
    """The parts of the caller's context that the MCP server missed, or received against its settings."""
    with open(log) as file:
        calls = [record for record in map(json.loads, file) if record["kind"] == "tool"]
    for field, value in case.get("carried", {}).items():
        for call in calls:
            if call[field] != value:
                yield f"the server of {call['name']} heard the {field} {call[field]!r}, not {value!r}"


def collector(rotel):
    """Lines of shell that put a collector between the processes and the checker. It flushes its data when it is stopped."""
    http, grpc = free_port(), free_port()
    line = shlex.join([
        rotel, "start", "--otlp-http-endpoint", f"127.0.0.1:{http}", "--otlp-grpc-endpoint", f"127.0.0.1:{grpc}",
        "--exporter", "otlp", "--otlp-exporter-protocol", "http", "--otlp-exporter-compression", "none",
    ])
    return (
        f'{line} --otlp-exporter-endpoint "$OTEL_EXPORTER_OTLP_ENDPOINT" >&2 & collector=$!\n'
        f"until (echo >/dev/tcp/127.0.0.1/{http}) 2>/dev/null; do kill -0 $collector; sleep 0.1; done\n"
        f"export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{http}\n"
    )


def config(binary, case, url, log):
    refund = {"name": "issue_refund", "description": "Pay a customer back.", "input_schema": {"type": "object"}}
    recorder = [os.path.join(HERE, "recorder.py"), log, str(case.get("delay_ms", 50)), str(case.get("start_ms", 0)), binary, "demo-server"]
    model = {"model": "gpt-5-mini", "temperature": 0.2, "max_tokens": 1000, "stream": False}
    model = {"base_url": url, "api_key": "none", **({"model": "m"} if "wire" in case else model), **case.get("model", {})}
    return {
        "store": {"sqlite": {"path": "runs.db"}},
        "lease_s": LEASE_S,
        "models": {"main": {case.get("wire", "openai_chat"): model}},
        "servers": {"shop": {"stdio": {"command": sys.executable, "args": recorder}, "trusted": True}},
        "policies": {"desk": "policy.yaml" if "policy" in case else POLICY},
        "agents": {"desk": {
            "model": "main", "policy": "desk", "servers": ["shop"], "instructions": "You work at the desk of a shop.",
            "external_tools": [refund], **case.get("agent", {}),
        }},
        "telemetry": case.get("telemetry", {}),
        "gateway": case.get("gateway", {}),
    }


def step(binary, case, log, exit_code, *words):
    """One process, as lines of a shell script that fails when the process does not end as it has to."""
    if exit_code == "sleep":
        return f"sleep {words[0]}\n"
    helper = lambda name, *words: shlex.join([sys.executable, os.path.join(HERE, name), *words]) + " >&2\n"
    if exit_code == "served":
        return helper("served_runs.py", binary, log, *words)
    line = shlex.join([binary, *words]) + " </dev/null >&2"
    if exit_code == "killed":
        # A call is in flight once the model was answered; the recorder delays its answer much longer than this.
        wait = f"until grep -q llm {shlex.quote(log)}; do sleep 0.05; done; sleep 0.5\n" + helper("lease.py", "runs.db")
        alive = helper("lease.py", "runs.db", str(LEASE_S), log)
        return f"{line} & victim=$!\n{wait}kill -9 $victim; wait $victim || true\n{alive}sleep {LEASE_S + 0.5}\n"
    if exit_code == "cancelled":
        wait = f"until grep -q llm {shlex.quote(log)}; do sleep 0.05; done; sleep 0.5"
        cancel = shlex.join([binary, "runs", "cancel", "last"]) + " >&2"
        return f"{line} & victim=$!\n{wait}\n{cancel}\ncode=0; wait $victim || code=$?; test $code -eq 130\n"
    return f"code=0; {line} || code=$?; test $code -eq {exit_code}\n"


def clean_environment():
    ours = ("TOOLGATE_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "OTEL_", "OPENINFERENCE_", "TRACEPARENT", "TRACESTATE", "BAGGAGE")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


if __name__ == "__main__":
    sys.exit(main())
