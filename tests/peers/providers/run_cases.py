"""Runs the real binary against providers that check each request with the vendor's own SDK types.

run_cases.py BINARY [PART-OF-A-NAME]        one line per case; exit 1 if any failed
run_cases.py BINARY --bad-luck [RUNS]       how many runs survive a provider that fails half of all requests
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import time

from provider import Provider
from wires import WIRES

ORDERS = ("call_orders", "mcp_shop_list_orders", {"customer_id": "C-1001"})
POINTS = ("call_points", "mcp_shop_get_loyalty", {"customer_id": "C-1001"})
NO_INVOICE = ("call_invoice", "mcp_shop_get_invoice", {"order_id": "A-9999"})
UNKNOWN = ("call_unknown", "no_such_tool", {})
TURNS = [
    {"think": "Look both up.", "say": "Let me look.", "calls": [ORDERS, POINTS]},
    {"think": "And the invoice.", "calls": [NO_INVOICE]},
    {"say": "Let me try another.", "calls": [UNKNOWN, ("call_again", *POINTS[1:])]},
    {"think": "That is all.", "say": "Ada has 1280 points and an order that is late. 🙂"},
]
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII=")
ANSWER = TURNS[-1]["say"]
SCHEMA = {"type": "object", "properties": {"points": {"type": "integer"}}, "required": ["points"], "additionalProperties": False}
SETTINGS = {
    "openai_chat": {"parallel_tool_calls": True, "temperature": 0.2, "seed": 7},
    "openai_responses": {"parallel_tool_calls": True, "reasoning": {"effort": "low", "show": True}},
    "anthropic": {"reasoning": {"budget_tokens": 2048}, "max_tokens": 4096, "prompt_cache": "5m"},
    "gemini": {"reasoning": {"budget_tokens": 1024, "show": True}, "temperature": 0.2, "seed": 7},
}


def cases():
    for kind in WIRES:
        for stream in (True, False):
            how = "streamed" if stream else "whole"
            yield f"{kind}, {how}: a loop of four turns", lambda kind=kind, stream=stream: one_provider(kind, stream)
        yield f"{kind}: an answer by schema", lambda kind=kind: by_schema(kind)
        yield f"{kind}: pending, resumed by another process", lambda kind=kind: resumed(kind)
        yield f"{kind}: a picture and a document from the user", lambda kind=kind: attachments(kind)
    kinds = list(WIRES)
    for first, second in zip(kinds, kinds[1:] + kinds[:1]):
        yield f"{first} is lost in the middle of the loop, {second} goes on", lambda pair=(first, second): lost(*pair)


def one_provider(kind, stream):
    with Setting([(kind, TURNS, {"stream": stream, **SETTINGS[kind]}, {})]) as setting:
        setting.runs("run", "What about Ada?", says=ANSWER)
        setting.was_asked(0, 4)
        setting.used(input=400, output=40)
        return setting.problems


def by_schema(kind):
    turns = [{"calls": [POINTS]}, {"say": '{"points": 1280}'}]
    settings = {**SETTINGS[kind], "structured_output": True}
    with Setting([(kind, turns, settings, {})], agent={"output_schema": SCHEMA}) as setting:
        setting.runs("run", "How many points?", says='"points"')
        setting.was_asked(0, 2)
        return setting.problems


def resumed(kind):
    refund = ("call_refund", "ext_issue_refund", {"order_id": "A-1077"})
    turns = [{"think": "Both at once.", "calls": [ORDERS, refund]}, {"say": "It is refunded."}]
    with Setting([(kind, turns, SETTINGS[kind], {})]) as setting:
        setting.runs("run", "Refund it.", code=10)
        # Gemini gave the call no id: toolgate generated one.
        [owed] = json.loads(setting.command("runs", "show", "last", "--json").stdout)["pending"]
        setting.runs("resume", "last", "--result", owed["call_id"] + '={"status":"refunded"}', says="It is refunded.")
        return setting.problems


def attachments(kind):
    turns = [{"say": "A white dot, and a page."}]
    with Setting([(kind, turns, {**SETTINGS[kind], "media": ["images", "files"]}, {})]) as setting:
        words = ["run", "What is this?"]
        for name, content in (("dot.png", PNG), ("page.pdf", b"%PDF-1.4\n%%EOF\n"), ("note.txt", b"Just text.")):
            with open(os.path.join(setting.folder.name, name), "wb") as file:
                file.write(content)
            words += ["--attach", name]
        setting.runs(*words, says="A white dot")
        sent = json.dumps(setting.providers[0].last)
        for what, content in (("picture", PNG), ("document", b"%PDF-1.4\n%%EOF\n")):
            if base64.b64encode(content).decode() not in sent:
                setting.problems.append(f"the {what} was not sent")
        if "Just text." not in sent:
            setting.problems.append("the text was not sent as text")
        return setting.problems


def lost(first, second):
    chain = [(first, TURNS, SETTINGS[first], {"down_from": 2}), (second, TURNS, SETTINGS[second], {})]
    with Setting(chain) as setting:
        setting.runs("run", "What about Ada?", says=ANSWER)
        setting.was_asked(1, 2)
        if setting.providers[0].failed == 0:
            setting.problems.append("the first provider was never down")
        return setting.problems


class Setting:
    """A folder with a configuration, and a provider for each model of the chain."""

    def __init__(self, chain, agent=None):
        self.problems, self.folder = [], tempfile.TemporaryDirectory(prefix="providers-")
        self.providers = [Provider(kind, turns, **bad) for kind, turns, _, bad in chain]
        models = {
            f"model{number}": {kind: {"model": "m", "base_url": provider.url, "api_key": "sk-canary-0815-4711", **settings}}
            for number, ((kind, _, settings, _), provider) in enumerate(zip(chain, self.providers))
        }
        for name, model in models.items():
            model_kind = next(iter(model))
            if model_kind in ("openai_chat", "openai_responses"):
                model[model_kind]["model"] = "gpt-5.6-terra"
        refund = {"name": "issue_refund", "description": "Pay a customer back.", "input_schema": {"type": "object"}}
        config = {
            "store": {"sqlite": {"path": "runs.db"}},
            "models": models,
            "servers": {"shop": {"stdio": {"command": BINARY, "args": ["demo-server"]}, "trusted": True}},
            "agents": {"desk": {
                "model": "model0", "policy": "bypass", "servers": ["shop"], "external_tools": [refund],
                "instructions": "You work at the desk of a shop.",
                **({"fallback": list(models)[1:]} if len(models) > 1 else {}), **(agent or {}),
            }},
        }
        with open(os.path.join(self.folder.name, "toolgate.yaml"), "w") as file:
            json.dump(config, file)  # JSON is YAML

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for provider in self.providers:
            provider.stop()
            self.problems += provider.problems
        self.folder.cleanup()

    def command(self, *words):
        return subprocess.run(
            [BINARY, *words], cwd=self.folder.name, env=clean_environment(), capture_output=True, text=True, timeout=60,
            stdin=subprocess.DEVNULL,
        )

    def runs(self, *words, code=0, says=""):
        done = self.command(*words)
        if done.returncode != code or says not in done.stdout:
            self.problems.append(f"`{' '.join(words)}` ended with {done.returncode}, not {code}: {done.stdout[-600:]}{done.stderr[-600:]}")
        if "canary" in done.stdout + done.stderr:
            self.problems.append("the key was shown")

    def was_asked(self, number, times):
        asked = self.providers[number].asked
        if asked != times:
            self.problems.append(f"provider {number} was asked {asked} times, not {times}")

    def used(self, **expected):
        shown = json.loads(self.command("runs", "show", "last", "--json").stdout)
        usage = shown["budget"]["usage"]
        got = {"input": usage.get("input_tokens"), "output": usage.get("output_tokens")}
        if got != expected:
            self.problems.append(f"the run says it used {got}, not {expected}")


def bad_luck(count):
    """Runs of four turns against providers that fail half of all requests, each in one of six ways."""
    print("models, attempts at each   runs completed     expected   requests a run   seconds a run")
    for kinds, attempts in ((["anthropic"], 1), (["anthropic"], 3), (["anthropic"], 5), (["anthropic", "gemini"], 3)):
        completed = asked = 0
        began = time.time()
        for seed in range(count):
            chain = [(kind, TURNS, SETTINGS[kind], {"fails_half": f"{kind} {seed}"}) for kind in kinds]
            with Setting(chain, agent={"limits": {"max_attempts": attempts}}) as setting:
                completed += setting.command("run", "What about Ada?").returncode == 0
                asked += sum(provider.asked for provider in setting.providers)
            if setting.problems:
                print("FAIL", setting.problems)
                return 1
        expected = (1 - 0.5 ** (attempts * len(kinds))) ** len(TURNS)
        line = f"{len(kinds)} x {attempts:<22} {completed:4} of {count} ({completed / count:4.0%}) {expected:10.0%} {asked / count:16.1f}"
        print(f"{line} {(time.time() - began) / count:15.2f}", flush=True)
    return 0


def clean_environment():
    ours = ("TOOLGATE_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "OTEL_", "TRACEPARENT", "TRACESTATE", "BAGGAGE")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def main():
    if sys.argv[2:3] == ["--bad-luck"]:
        return bad_luck(int(sys.argv[3]) if len(sys.argv) > 3 else 40)
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    failed = 0
    for name, case in cases():
        if wanted not in name:
            continue
        problems = case()
        print(f"{'FAIL' if problems else 'ok  '} {name}", flush=True)
        for problem in problems:
            print(f"     {problem}", flush=True)
        failed += bool(problems)
    return 1 if failed else 0


BINARY = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""

if __name__ == "__main__":
    sys.exit(main())
