"""What the engine says while it works: warnings become Python's, progress becomes a bar."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from . import _core


class HoldfastWarning(UserWarning):
    """A result that must not be read as robustness, or data that looks wrong."""


class _Bar:
    """One bar of tqdm for each piece of work; in a notebook it is the notebook's. It beats while a long tile is computed."""

    _SECONDS_BETWEEN_BEATS = 1.0

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # notebooks without ipywidgets get the bar of terminals
            from tqdm.auto import tqdm

        self._make = tqdm
        self._bar: Any = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def __call__(self, what: str, done: int, total: int, seconds_left: float | None, note: str, finished: bool) -> None:
        with self._lock:
            shape = None
            if total > 0:
                left = "?" if seconds_left is None else self._make.format_interval(seconds_left)
                shape = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<" + left + "{postfix}"
            if self._bar is None:
                self._bar = self._make(total=total or None, desc=what, leave=False, bar_format=shape)
            self._bar.bar_format = shape
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(done - self._bar.n)
        if finished:
            self._take_down()

    def _beat(self) -> None:
        while not self._ended.wait(self._SECONDS_BETWEEN_BEATS):
            with self._lock:
                if self._bar is not None:
                    self._bar.refresh()

    def _take_down(self) -> None:
        with self._lock:
            if self._bar is not None:
                self._bar.close()
                self._bar = None

    def close(self) -> None:
        self._ended.set()
        self._take_down()


def _wants_bar(progress: bool | None) -> bool:
    if progress is None:
        progress = sys.stderr.isatty() or "ipykernel" in sys.modules
    if not progress:
        return False
    try:
        import tqdm  # noqa: F401
    except ImportError:
        return False
    return True


_SHOWING = threading.Lock()  # one bar at a time: calls of other threads go on without


@contextmanager
def listening(progress: bool | None = False) -> Iterator[list[str]]:
    """Collects the engine's warnings in the list that it gives."""
    found: list[str] = []
    bar = _Bar() if _wants_bar(progress) and _SHOWING.acquire(blocking=False) else None
    if bar is not None:
        _core.show_progress_with(bar)
    try:
        yield found
    finally:
        if bar is not None:
            _core.show_progress_with(None)
            bar.close()
            _SHOWING.release()
        found += _core.take_warnings()


def warn(messages: Iterable[str]) -> None:
    """Warns where the caller of the function that calls this stands; once of what was said several times."""
    for message in dict.fromkeys(messages):
        warnings.warn(message, HoldfastWarning, stacklevel=3)
