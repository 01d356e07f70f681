#!/usr/bin/env python3
"""Golden values of the whole program: makes them, or checks that they are as they were.

.venv/bin/python tests/golden/golden.py check                       every command, experiments left out
.venv/bin/python tests/golden/golden.py check --small               the part that belongs to `make test`
.venv/bin/python tests/golden/golden.py check --full                experiments at quick scale too: `make golden`
.venv/bin/python tests/golden/golden.py check --only 'attack/er*'
.venv/bin/python tests/golden/golden.py make --only 'train/*'       stores values anew
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

from cases import NOT_COVERED, all_cases
from compare import Comparison, Intended
from runner import ROOT, Failed, Runner
from shorten import pack, unpack

HERE = Path(__file__).resolve().parent
VALUES = HERE / "values"
MACHINE = HERE / "machine.json"  # on which the values were made
COVERED_KINDS = ("explainers", "attacks", "metrics", "measures", "recipes", "models", "datasets", "experiments")


def read_stored():
    """Every stored value by the name of its case."""
    files = [json.loads(file.read_text()) for file in sorted(VALUES.glob("*.json"))]
    return {name: unpack(value) for file in files for name, value in file.items()}


def group_of(name):
    return name.split("/")[0]


def write_stored(values, group):
    """A file for each group of cases, with a line for each part of a value."""
    VALUES.mkdir(exist_ok=True)
    blocks = [f"{json.dumps(name)}: {_lines(pack(values[name]))}" for name in sorted(values) if group_of(name) == group]
    (VALUES / f"{group}.json").write_text("{\n" + ",\n".join(blocks) + "\n}\n")


def _lines(value):
    parts = [f" {json.dumps(key)}: {json.dumps(part, separators=(',', ':'))}" for key, part in value.items()]
    return "{\n" + ",\n".join(parts) + "\n}"


def choose(cases, options):
    parts = {"small"} if options.small else {"small", "rest", "full"} if options.full else {"small", "rest"}
    if options.only:
        return [case for case in cases if any(fnmatchcase(case.name, pattern) for pattern in options.only)]
    return [case for case in cases if case.part in parts]


def missing_data(case):
    """The folders of HOLDFAST_DATA that the case needs and that are not there."""
    folder = Path(os.environ.get("HOLDFAST_DATA", Path.home() / ".cache" / "holdfast"))
    return [name for name in case.data if not (folder / name).is_dir()]


def run_cases(cases, runner, jobs):
    """The value of each case, or what went wrong."""

    def run(case):
        start = time.monotonic()
        try:
            value = json.loads(json.dumps(case.make(runner)))
        except (Failed, KeyError, OSError, ValueError) as error:
            value = error if isinstance(error, Failed) else Failed(f"{type(error).__name__}: {error}")
        return case.name, value, time.monotonic() - start

    with ThreadPoolExecutor(jobs) as pool:
        for done, (name, value, seconds) in enumerate(pool.map(run, cases), 1):
            print(f"[{done}/{len(cases)}] {name} ({seconds:.1f} s)", flush=True)
            yield name, value


def methods_without_case(cases, listing):
    covered = {method for case in cases for method in case.covers} | NOT_COVERED
    names = {(kind, method["name"]) for kind in COVERED_KINDS for method in listing.get(kind, [])}
    return sorted(names - covered)


def this_machine():
    """What decides how numbers are rounded."""
    capability = "import torch; print(torch.__version__.split('+')[0], torch.backends.cpu.get_cpu_capability())"
    torch, instructions = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", capability], capture_output=True, text=True, check=True
    ).stdout.split(maxsplit=1)
    cpuinfo = Path("/proc/cpuinfo")
    names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("vendor_id")] if cpuinfo.exists() else []
    return {
        "processor": names[0].split(":")[1].strip() if names else "unknown",
        "instructions": instructions.strip(),
        "torch": torch,
    }


def check_value(name, stored, value, intended, numbers=True):
    """Prints what differs; gives the number of differences that nobody intended."""
    if isinstance(value, Failed):
        print(f"  {name}: {value}")
        return 1
    if name not in stored:
        return 0  # mismatched_names has said so
    comparison = Comparison(name, stored[name], value, numbers)
    for path in comparison.additional:
        print(f"  {name}: {path} is new (allowed)")
    unexpected = [difference for difference in comparison.differences if not intended.accepts(difference)]
    for difference in unexpected:
        print(f"  {difference}")
    return len(unexpected)


def mismatched_names(stored, cases, options):
    """Sentences about cases without a stored value, and about stored values without a case."""
    names = {case.name for case in cases}
    for name in sorted(names - set(stored)):
        yield f"{name}: has no stored value; make it with golden.py make --only '{name}'"
    for name in sorted(set(stored) - names if not options.only else ()):
        yield f"{name}: is stored, but no longer a case"


def check(cases, chosen, runner, options, listing):
    stored, intended, bad = read_stored(), Intended(HERE / "changed.toml"), 0
    for kind, name in methods_without_case(cases, listing):
        print(f"  {kind}: {name} has no golden case; add one to tests/golden/cases.py")
        bad += 1
    for sentence in mismatched_names(stored, chosen if options.only else cases, options):
        print(f"  {sentence}")
        bad += 1
    made_on, here = json.loads(MACHINE.read_text()), this_machine()
    numbers = made_on == here
    if not numbers:
        print(f"made on another kind of machine ({made_on}, this is {here}): structure and words are compared, numbers are not")
    compared = set()
    for name, value in run_cases(chosen, runner, options.jobs):
        bad += check_value(name, stored, value, intended, numbers)
        compared.add(name)
    for sentence in intended.wrong(stored, compared) if numbers else ():
        print(f"  {sentence}")
        bad += 1
    print(f"{len(compared)} golden cases, {bad} unexpected differences" if bad else f"{len(compared)} golden cases, as they were")
    return 1 if bad else 0


def make(cases, chosen, runner, options, listing):
    if without := methods_without_case(cases, listing):
        print("without a golden case: " + ", ".join(f"{kind}: {name}" for kind, name in without))
        return 1
    names = {case.name for case in cases}
    stored = {name: value for name, value in read_stored().items() if name in names}
    failures = 0
    MACHINE.write_text(json.dumps(this_machine()) + "\n")
    for name, value in run_cases(chosen, runner, options.jobs):
        if isinstance(value, Failed):
            print(f"  {name}: {value}")
            failures += 1
            continue
        stored[name] = value
        write_stored(stored, group_of(name))
    return 1 if failures else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["make", "check"])
    parser.add_argument("--binary", default=ROOT / "build" / "holdfast", help="the program; the Python package lies beside it")
    parser.add_argument("--only", action="append", help="cases whose name matches; * stands for anything; may be repeated")
    parser.add_argument("--small", action="store_true", help="only what `make test` checks")
    parser.add_argument("--full", action="store_true", help="experiments at quick scale too; they take minutes")
    parser.add_argument("--threads", type=int, default=1, help="of each command")
    parser.add_argument("--jobs", type=int, default=2, help="commands that run side by side")
    parser.add_argument("--keep", type=Path, help="folder for what the commands write; it is kept")
    return parser.parse_args()


def main():
    options = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="holdfast-golden-") as temporary:
        runner = Runner(options.binary, options.keep or Path(temporary), options.threads)
        listing = json.loads(runner.program("list", "--json"))
        cases = all_cases([method["name"] for method in listing["experiments"]])
        chosen = []
        for case in choose(cases, options):
            if missing := missing_data(case):
                print(f"{case.name}: skipped, HOLDFAST_DATA has no {', '.join(missing)}")
            else:
                chosen.append(case)
        if not chosen:
            print("no case was chosen")
            return 2
        return (make if options.action == "make" else check)(cases, chosen, runner, options, listing)


if __name__ == "__main__":
    sys.exit(main())
