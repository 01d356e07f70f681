"""Faults on purpose: processes that are killed at their file calls, and inputs that are damaged.

    python tests/faults/faults.py --kills 24 --inputs 60                  as `make test` does, in well under a minute
    python tests/faults/faults.py --kills 1000 --inputs 10000 --write     as `make faults` does; writes docs/reliability.md

A kill counts as survived when the same command, run again, ends with the same exit code and the same bytes as one that was never
killed, and leaves nothing behind. A bad input counts as survived when the program ends by itself within a minute with an exit
code of its own and, unless it took the input, says why in one sentence.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import os
import platform
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import damage
import server
import subjects

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"
IN_FULL = 40  # one of so many damaged inputs is read by a program that starts and ends by itself


class Tried:
    """What was tried of one kind, how often, and what was lost."""

    def __init__(self, kind: str, what: str) -> None:
        self.kind, self.what, self.times, self.lost = kind, what, 0, []

    def add(self, loss: str | None, times: int = 1) -> None:
        self.times += times
        if loss:
            self.lost.append(loss)


def spread(count: int, wanted: int) -> list[int]:
    """`wanted` of the numbers 1 to `count`, the first and the last among them."""
    if wanted >= count:
        return list(range(1, count + 1))
    return sorted({1 + round(i * (count - 1) / (wanted - 1)) for i in range(wanted)}) if wanted > 1 else [count]


class Killer:
    """Kills one command at a call, runs it again and compares."""

    def __init__(self, name: str, base: Path, servers: server.Servers) -> None:
        self.command, self.base, self.servers = subjects.COMMANDS[name], base, servers
        with self.fresh() as folder:  # a program that starts by itself: the children of servers must write the same bytes
            done = subjects.run(self.command, folder, LD_PRELOAD=str(servers.library), HOLDFAST_KILL_AT="0")
            assert done.returncode in (0, 1), f"{name}: {done.returncode}\n{done.stderr}"
            self.calls = int(subjects.last_line(done).removeprefix("file calls: "))
            self.code, self.files = done.returncode, subjects.contents(folder / "out")
            assert not subjects.leftovers(folder), subjects.leftovers(folder)

    def fresh(self) -> tempfile.TemporaryDirectory:
        class Copy(tempfile.TemporaryDirectory):
            def __enter__(own) -> Path:
                folder = Path(super().__enter__())
                shutil.copytree(self.base, folder, dirs_exist_ok=True)
                return folder

        return Copy()

    def kill(self, calls: tuple[int, ...]) -> str | None:
        """What was lost, or nothing. Of several calls, each ends the run that goes on where the one before it was killed."""
        said = f"call {' and '.join(map(str, calls))}"
        with self.fresh() as folder:
            for call in calls:
                killed = self.servers.run(self.command, folder, str(call))
                if killed.returncode != -9 and killed.returncode != self.code:
                    return f"{said}: exit code {killed.returncode}, {subjects.last_line(killed)}"
            again = self.servers.run(self.command, folder)
            if again.returncode != self.code:
                return f"{said}: run again, exit code {again.returncode}: {subjects.last_line(again)}"
            files = subjects.contents(folder / "out")
            if files != self.files:
                names = sorted(name for name in files.keys() | self.files.keys() if files.get(name) != self.files.get(name))
                return f"{said}: other bytes in {', '.join(names)}"
            left = subjects.leftovers(folder)
            return f"{said}: left {left}" if left else None


def try_kills(base: Path, servers: server.Servers, kills: int, seed: int, pool: concurrent.futures.Executor) -> list[Tried]:
    killers = dict(zip(subjects.COMMANDS, pool.map(lambda name: Killer(name, base, servers), subjects.COMMANDS), strict=True))
    tried, left, waiting = [], kills, len(killers)
    # Commands of few calls are tried at all of them; the others share what is left.
    for name, killer in sorted(killers.items(), key=lambda item: item[1].calls):
        points = spread(killer.calls, max(1, left // waiting))
        row = Tried("kill", f"`{name}`, at {len(points)} of {killer.calls} file calls")
        for loss in pool.map(killer.kill, [(call,) for call in points]):
            row.add(loss)
        tried.append(row)
        left, waiting = left - len(points), waiting - 1
    if left < 2:
        return tried
    # All calls were tried: what is left goes to killing the run that recovers, too.
    rng, row = random.Random(seed), Tried("kill", "any of them, and again while it recovers")
    chosen = [
        killers[name] for name in rng.choices(list(killers), [killer.calls for killer in killers.values()], k=-(-left // 2))
    ]
    pairs = [(killer, (rng.randint(1, killer.calls), rng.randint(1, killer.calls))) for killer in chosen]
    for loss in pool.map(lambda pair: pair[0].kill(pair[1]), pairs):
        row.add(loss, times=2)
    return [*tried, row]


def try_input(base: Path, servers: server.Servers, case: damage.Case) -> str | None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(base, folder, dirs_exist_ok=True)
        for path, data in {**case.beside, case.file: case.data}.items():
            (folder / path).write_bytes(data)
        start = time.monotonic()
        try:
            command = [*case.command, "--memory", "2G"] if case.limited else case.command
            run = subjects.run if case.number % IN_FULL == 0 else servers.run
            done = run(command, folder, HOLDFAST_DATA=name)
        except subprocess.TimeoutExpired:
            return f"{case}: did not end"
        seconds, said = time.monotonic() - start, subjects.last_line(done)
        if done.returncode not in (0, 1, 2) or seconds > 60:
            return f"{case}: exit code {done.returncode} after {seconds:.0f} s: {said}"
        if done.returncode == 2 and not said.startswith("error: "):
            return f"{case}: said {said!r}"
        wrong = [word for word in ("unexpected failure", "torch failed", "Exception raised", "[json") if word in done.stderr]
        return f"{case}: said {said}" if wrong else None


def try_inputs(base: Path, servers: server.Servers, count: int, seed: int, pool: concurrent.futures.Executor) -> list[Tried]:
    rows: dict[str, Tried] = {}
    cases = list(damage.cases(base, count, random.Random(seed)))
    for case, loss in zip(cases, pool.map(lambda one: try_input(base, servers, one), cases), strict=True):
        rows.setdefault(case.kind, Tried("input", case.kind)).add(loss)
    return list(rows.values())


def table(tried: list[Tried], seconds: float) -> str:
    """The part of the page that is made here."""
    counts = collections.Counter()
    lines = ["| tried | times | lost |", "|---|---|---|"]
    for row in tried:
        counts[row.kind] += row.times
        lines.append(
            f"| {'killed: ' if row.kind == 'kill' else 'damaged: '}{row.what} | {row.times} | {len(row.lost) or 'nothing'} |"
        )
    lost = [loss for row in tried for loss in row.lost]
    lines += [
        "",
        f"{counts['kill']} kills and {counts['input']} damaged inputs in {seconds / 60:.0f} minutes, on {platform.machine()}, "
        f"{os.cpu_count()} cores, Linux {platform.release().split('-')[0]}.",
    ]
    lines += ["", "What was lost:", ""] + [f"- {loss}" for loss in lost] if lost else []
    return "\n".join(lines) + "\n"


def write_page(text: str) -> None:
    page = PAGE.read_text()
    begin, end = "<!-- made by make faults -->\n", "<!-- end -->\n"
    head, rest = page.split(begin)
    PAGE.write_text(head + begin + text + end + rest.split(end, 1)[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=24)
    parser.add_argument("--inputs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--write", action="store_true", help="write the table to docs/reliability.md")
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive")
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        base = Path(name) / "base"
        base.mkdir()
        subjects.prepare(base)
        servers, tried = server.Servers(Path(name)), []
        if options.kills:
            tried += try_kills(base, servers, options.kills, options.seed, pool)
        if options.inputs:
            tried += try_inputs(base, servers, options.inputs, options.seed, pool)
        servers.close()
    text = table(tried, time.monotonic() - start)
    print(text)
    print(f"largest process: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024**2:.2f} GiB")
    if options.write:
        write_page(text)
    return 1 if any(row.lost for row in tried) else 0


if __name__ == "__main__":
    sys.exit(main())
