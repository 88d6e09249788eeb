"""Runs the real binary through every case of cases.py and has check_spans.py judge what it exports.

run_cases.py BINARY [PART-OF-A-NAME]    one line per case; exit 1 if any failed
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

from cases import CASES
from provider import Provider

HERE = os.path.dirname(os.path.abspath(__file__))
POLICY = os.path.join(HERE, "..", "..", "..", "examples", "demo", "policy.yaml")


def main():
    binary = os.path.abspath(sys.argv[1])
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    failed = 0
    for name, case in CASES.items():
        if wanted not in name:
            continue
        with tempfile.TemporaryDirectory(prefix="spans-") as folder:
            problems, note = run(binary, case, folder)
        print(f"{'FAIL' if problems else 'ok  '} {name}: {note}", flush=True)
        for problem in problems:
            print(f"     {problem}", flush=True)
        failed += bool(problems)
    return 1 if failed else 0


def run(binary, case, folder):
    log, dump = os.path.join(folder, "oracle.jsonl"), os.path.join(folder, "dump.json")
    open(log, "w").close()
    provider = Provider(case.get("turns", []), log)
    try:
        with open(os.path.join(folder, "toolgate.yaml"), "w") as file:
            json.dump(config(binary, case, provider.url, log), file)  # JSON is YAML
        with open(os.path.join(folder, "policy.yaml"), "w") as file:
            json.dump(case.get("policy", {}), file)
        script = os.path.join(folder, "steps.sh")
        with open(script, "w") as file:
            file.write("".join(step(binary, case, log, *one) for one in case["steps"]))
        command = [sys.executable, os.path.join(HERE, "check_spans.py"), "--profile", "toolgate", "--dump", dump]
        command += [word for pair in case["expect"].items() for word in ("--expect", "%s=%d" % pair)]
        command += case.get("flags", [])
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
    counts = next((line for line in said if re.match(r"\d+ passed", line)), "nothing was checked")
    return problems, f"{counts}; {said[0] if said else 'no span'}"


def further_problems(case, spans):
    """What is promised beyond the published conventions."""
    attributes = [{**dict(span["attrs"]), "start": span["start"], "links": span.get("links")} for span in spans]
    roots = [span for span in attributes if span["openinference.span.kind"] == "AGENT"]
    outcomes = [root.get("toolgate.run.outcome") for root in sorted(roots, key=lambda root: root["start"])]
    if outcomes != case["outcomes"]:
        yield f"the roots say {outcomes}, not {case['outcomes']}"
    for name in case.get("every_llm_span_has", []):
        if not all(name in span for span in attributes if span["openinference.span.kind"] == "LLM"):
            yield f"an LLM span lacks {name}"


def config(binary, case, url, log):
    refund = {"name": "issue_refund", "description": "Pay a customer back.", "input_schema": {"type": "object"}}
    recorder = [os.path.join(HERE, "recorder.py"), log, str(case.get("delay_ms", 50)), binary, "demo-server"]
    return {
        "store": {"sqlite": {"path": "runs.db"}},
        "models": {"main": {"openai_chat": {
            "base_url": url, "api_key": "none", "model": "gpt-5-mini", "temperature": 0.2, "max_tokens": 1000,
            "stream": False, **case.get("model", {}),
        }}},
        "servers": {"shop": {"stdio": {"command": sys.executable, "args": recorder}, "trusted": True}},
        "policies": {"desk": "policy.yaml" if "policy" in case else POLICY},
        "agents": {"desk": {
            "model": "main", "policy": "desk", "servers": ["shop"], "instructions": "You work at the desk of a shop.",
            "external_tools": [refund], **case.get("agent", {}),
        }},
        "telemetry": case.get("telemetry", {}),
    }


def step(binary, case, log, exit_code, *words):
    """One process, as lines of a shell script that fails when the process does not end as it has to."""
    if exit_code == "sleep":
        return f"sleep {words[0]}\n"
    line = shlex.join([binary, *words]) + " </dev/null >&2"
    if exit_code == "killed":
        # A call is on its way when the model was answered; the recorder holds its answer back much longer than this.
        wait = f"until grep -q llm {shlex.quote(log)}; do sleep 0.05; done; sleep 0.5"
        lease_runs_out = "sleep 5.5"
        return f"{line} & victim=$!\n{wait}\nkill -9 $victim; wait $victim || true; {lease_runs_out}\n"
    if exit_code == "cancelled":
        wait = f"until grep -q llm {shlex.quote(log)}; do sleep 0.05; done; sleep 0.5"
        cancel = shlex.join([binary, "runs", "cancel", "last"]) + " >&2"
        return f"{line} & victim=$!\n{wait}\n{cancel}\ncode=0; wait $victim || code=$?; test $code -eq 130\n"
    return f"code=0; {line} || code=$?; test $code -eq {exit_code}\n"


def clean_environment():
    ours = ("TOOLGATE_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "OTEL_", "OPENINFERENCE_", "TRACEPARENT", "TRACESTATE")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


if __name__ == "__main__":
    sys.exit(main())
