"""Runs the matrix of hostile MCP servers against a toolgate binary and reports how many situations it handled well."""

import argparse
import fnmatch
import json
import os
import shlex
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor

import judge
import matrix


def options():
    parser = argparse.ArgumentParser(prog="scripts/check-hostile", description=__doc__)
    parser.add_argument("--binary", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[],
                        help="plays only the situation of this name, or those whose name or class has this text (* and ? match)")
    parser.add_argument("--all", action="store_true",
                        help="plays each misbehaviour in every way: each transport, protocol version and moment (default: they take turns)")
    parser.add_argument("--json", metavar="FILE", help="writes a report of each situation")
    parser.add_argument("--jobs", type=int, default=4, metavar="N",
                        help="situations at the same time, and as many more that only wait (4)")
    parser.add_argument("--list", action="store_true", help="prints the names and plays nothing")
    parser.add_argument("--verbose", action="store_true", help="prints what toolgate printed, also where it was good")
    return parser.parse_args()


def chosen(patterns, whole):
    rows = matrix.rows()
    if not patterns:
        return rows if whole else matrix.core()
    named = [row for row in rows if row.name in patterns]
    if named:
        return named
    wanted = [f"*{pattern.lower()}*" for pattern in patterns]
    return [row for row in rows if any(fnmatch.fnmatchcase(f"{row.group}: {row.name}".lower(), one) for one in wanted)]


class Progress:
    def __init__(self, total):
        self.total, self.done, self.failed = total, 0, 0
        self.lock = threading.Lock()
        self.live = sys.stderr.isatty()

    def add(self, failed):
        with self.lock:
            self.done += 1
            self.failed += failed
            if self.live:
                print(f"\r{self.done}/{self.total}, {self.failed} failed", end="", file=sys.stderr, flush=True)
            elif self.done % 100 == 0:
                print(f"{self.done}/{self.total}, {self.failed} failed", file=sys.stderr, flush=True)


def excerpt(seen, longest=900):
    text = seen.output.strip()
    return text if len(text) <= longest else f"{text[:longest // 2]}\n ...\n{text[-longest // 2:]}"


def main():
    asked = options()
    rows = chosen(asked.only, asked.all)
    if asked.list:
        print(*(f"{row.group}: {row.name}" for row in rows), sep="\n")
        return 0
    if not rows:
        print(f"no situation has {' or '.join(asked.only)} in its name; --list prints all names", file=sys.stderr)
        return 2
    began, progress, report = time.time(), Progress(len(rows)), []
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(asked.jobs) as busy, \
            ThreadPoolExecutor(asked.jobs) as idle:
        pycache = os.path.join(work, "pycache")

        def one(numbered):
            number, row = numbered
            folder = os.path.join(work, str(number))
            if row.skip:
                progress.add(False)
                return row, None, []
            try:
                seen = judge.play(os.path.abspath(asked.binary), row, folder, pycache)
                wrong = judge.faults(row, seen)
            except Exception as error:  # The matrix continues; only this row cannot be judged.
                seen, wrong = judge.Seen(), [f"the situation cannot be played: {error!r}"]
            for name in ("out", "err", "log"):
                if os.path.exists(path := os.path.join(folder, name)):
                    os.remove(path)
            progress.add(bool(wrong))
            return row, seen, wrong

        played = [(idle if row.is_idle() else busy).submit(one, (number, row)) for number, row in enumerate(rows)]
        for row, seen, wrong in map(Future.result, played):
            report.append((row, seen, wrong))
            describe(asked, row, seen, wrong)
    if progress.live:
        print(file=sys.stderr)
    return summary(asked, report, time.time() - began)


def describe(asked, row, seen, wrong):
    """One situation that failed, or each with --verbose."""
    if seen is None:
        print(f"\nskipped: {row.name}\n  {row.skip}")
    elif wrong or asked.verbose:
        print(f"\n{verdict(seen, wrong)}: {row.name}  [{row.group}]")
        print("  expected: " + " | ".join(map(str, row.good)) + (f"   ({row.source})" if row.source else ""))
        for one in wrong:
            print(f"  wrong:    {one}")
        print(f"  seen:     exit {seen.exit}, {seen.seconds:.1f} s, {seen.memory_mb:.0f} MB, {seen.calls} calls received")
        print("  printed:  " + excerpt(seen).replace("\n", "\n            "))
        print("  again:    scripts/check-hostile --verbose --only " + shlex.quote(row.name), flush=True)


def verdict(seen, wrong):
    return "skipped" if seen is None else "failed" if wrong else "passed"


def summary(asked, report, seconds):
    groups = {row.group: Counter() for row, _, _ in report}
    for row, seen, wrong in report:
        groups[row.group][verdict(seen, wrong)] += 1
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump([{
                "name": row.name, "class": row.group, "transport": row.transport, "protocol_version": row.version,
                "verdict": verdict(seen, wrong),
                "expected": [str(ending) for ending in row.good], "source": row.source, "wrong": wrong,
                **({} if seen is None else {"exit": seen.exit, "status": seen.status, "seconds": round(seen.seconds, 2), "cpu_seconds": round(seen.cpu_seconds, 2),
                                            "memory_mb": round(seen.memory_mb), "calls": seen.calls, "printed": excerpt(seen, 4000)}),
            } for row, seen, wrong in report], file, indent=1)
    print()
    total = Counter()
    for group, counted in groups.items():
        total += counted
        print(f"{group:24} {counted['passed']:4} of {sum(counted.values()):4} good")
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped in {seconds:.0f} s")
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
