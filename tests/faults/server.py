"""Commands run by children of a program that waits before its main (fork_server.c): without the time that loading torch takes."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import threading
from pathlib import Path

import subjects


def build_library(folder: Path) -> Path:
    library = folder / "faults.so"
    sources = [Path(__file__).with_name(name) for name in ("kill_at.c", "fork_server.c")]
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-o", library, *sources, "-ldl"], check=True)
    return library


class Server:
    def __init__(self, library: Path, folder: Path) -> None:
        self.said = [folder / "stdout", folder / "stderr"]
        read, self.commands = os.pipe()
        self.answers, write = os.pipe()
        environment = {**os.environ, "LD_PRELOAD": str(library), "HOLDFAST_SERVER": f"{read},{write}"}
        self.process = subprocess.Popen([subjects.BINARY], env=environment, pass_fds=[read, write])
        os.close(read)
        os.close(write)

    def answer(self) -> int:
        data = os.read(self.answers, 4)
        if len(data) != 4:
            raise RuntimeError(f"the server ended with {self.process.wait()}")
        return struct.unpack("<i", data)[0]

    def run(self, arguments: list[str], folder: Path, kill_at: str = "", **environment: str) -> subprocess.CompletedProcess:
        """As subjects.run; `kill_at` is HOLDFAST_KILL_AT."""
        command = subjects.in_full(arguments)
        variables = [f"{name}={value}" for name, value in environment.items()]
        texts = [str(folder), *map(str, self.said), kill_at, str(len(variables)), *variables, *command]
        data = b"".join(os.fsencode(text) + b"\0" for text in texts)
        os.write(self.commands, struct.pack("<I", len(data)) + data)
        child = self.answer()
        late = threading.Event()

        def end() -> None:
            late.set()
            os.kill(child, signal.SIGKILL)

        timer = threading.Timer(subjects.PATIENCE, end)
        timer.start()
        status = self.answer()
        timer.cancel()
        if late.is_set():
            raise subprocess.TimeoutExpired(command, subjects.PATIENCE)
        out, err = (path.read_text(errors="replace") for path in self.said)
        return subprocess.CompletedProcess(command, os.waitstatus_to_exitcode(status), out, err)

    def close(self) -> None:
        os.close(self.commands)
        self.process.wait()
        os.close(self.answers)


class Servers:
    """One for each thread that asks."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.own, self.all = folder, threading.local(), []
        self.library = build_library(folder)

    def run(self, arguments: list[str], folder: Path, kill_at: str = "", **environment: str) -> subprocess.CompletedProcess:
        if not hasattr(self.own, "server"):
            place = self.folder / f"server{threading.get_ident()}"
            place.mkdir()
            self.own.server = Server(self.library, place)
            self.all.append(self.own.server)
        return self.own.server.run(arguments, folder, kill_at, **environment)

    def close(self) -> None:
        for server in self.all:
            server.close()
