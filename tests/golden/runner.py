"""Runs the program in a folder of its own, with copies of the files that the cases use."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from shorten import columns_of, shorten, shorten_array

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class Failed(Exception):
    """The program ended otherwise than expected."""


class Runner:
    def __init__(self, binary, folder, threads):
        self.binary, self.folder, self.threads = Path(binary).resolve(), folder, threads
        for source in (ROOT / "examples", HERE / "fixtures", HERE / "configs"):
            shutil.copytree(source, folder / source.name, dirs_exist_ok=True)

    def out(self, name):
        """A path for what a case writes; relative, so that results do not name the machine's folders."""
        path = Path("out") / name.replace("/", "_")
        (self.folder / "out").mkdir(exist_ok=True)
        return path

    def program(self, *arguments, code=0):
        return self._run([self.binary, *arguments], code).stdout

    def work(self, *arguments, code=0):
        """A command that computes: quietly, with the asked number of threads."""
        return self.program(*arguments, "--quiet", "--threads", self.threads, code=code)

    def python(self, script):
        """What a script that imports holdfast prints."""
        paths = {"PYTHONPATH": str(self.binary.parent / "python")}
        return self._run([sys.executable, script, self.threads], 0, paths).stdout

    def _run(self, command, code, more=None):
        environment = {**os.environ, "VIRTUAL_ENV": str(ROOT / ".venv"), **(more or {})}
        done = subprocess.run([str(part) for part in command], cwd=self.folder, capture_output=True, text=True, env=environment)
        if done.returncode != code:
            words = " ".join(map(str, command[1:]))
            raise Failed(f"exit code {done.returncode}, expected {code}: {words}\n{done.stderr.strip()[-2000:]}")
        return done

    def json(self, path):
        return json.loads((self.folder / path).read_text())

    def lines(self, path):
        """A file with one JSON object on each line."""
        return [json.loads(line) for line in (self.folder / path).read_text().splitlines()]

    def array(self, path):
        return shorten_array(np.load(self.folder / path))

    def table(self, path):
        """The columns of a CSV file; numbers where all fields of a column are numbers or empty."""
        with (self.folder / path).open(newline="") as lines:
            rows = list(csv.DictReader(lines))
        return {"rows": len(rows), "columns": {name: _column(fields) for name, fields in columns_of(rows).items()}}

    def junit(self, path):
        suite = ElementTree.parse(self.folder / path).getroot()
        return {key: suite.get(key) for key in ("tests", "failures")}


def _column(fields):
    try:
        return shorten([_number(field) for field in fields])
    except ValueError:
        return shorten(fields)


def _number(field):
    if field == "":
        return None
    return int(field) if field.lstrip("-").isdigit() else float(field)
