"""Compares values with stored ones, and differences with those that are intended."""

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase

MISSING = "missing"


@dataclass(frozen=True)
class Tolerance:
    """A number may differ by `absolute` + `relative` times its size: what rounding does on CPUs of one kind.

    Whole numbers, words and structure must be equal. The means of a long list are held to the mean size of its elements.
    """

    relative: float
    absolute: float


# Trainings carry rounding on from step to step.
TOLERANCES = {"train": Tolerance(2e-4, 1e-5), "audit": Tolerance(2e-4, 1e-5), "experiment": Tolerance(5e-4, 1e-5)}
DEFAULT = Tolerance(5e-5, 1e-6)
OF_LISTS = 0.2  # Lists are held to a smaller part of the tolerance: one element moves their means little.


@dataclass(frozen=True)
class Difference:
    case: str
    path: str
    old: object
    new: object

    def __str__(self):
        return f"{self.case}: {self.path}: {self.old!r} is now {self.new!r}"


def tolerance_of(case):
    return TOLERANCES.get(case.split("/")[0], DEFAULT)


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(old, new, tolerance, scale=None):
    if not (is_number(old) and is_number(new)):
        return type(old) is type(new) and old == new
    if isinstance(old, int) and isinstance(new, int):
        return old == new
    return abs(old - new) <= tolerance.absolute + tolerance.relative * (abs(old) if scale is None else scale)


def _value(written):
    """TOML has no null."""
    return None if written == "null" else written


def is_list_summary(value):
    return "mixed" in value and is_number(value.get("scale"))


class Comparison:
    """Collects the differences of a case, and the paths of what is there in addition.

    Without `numbers` only structure and words count: another kind of processor rounds otherwise, and an attack may end elsewhere.
    """

    def __init__(self, case, old, new, numbers=True):
        self.case, self.differences, self.additional, self._numbers = case, [], [], numbers
        self._walk("", old, new, tolerance_of(case), None)

    def _walk(self, path, old, new, tolerance, scale):
        if isinstance(old, dict) and isinstance(new, dict):
            self._walk_object(path, old, new, tolerance)
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            for place, (before, now) in enumerate(zip(old, new, strict=True)):
                self._walk(f"{path}/{place}", before, now, tolerance, scale)
        elif not self._numbers and all(value is None or is_number(value) for value in (old, new)):
            return
        elif not equal(old, new, tolerance, scale):
            self._differ(path, old, new)

    def _walk_object(self, path, old, new, tolerance):
        scale = None
        if is_list_summary(old):
            scale = abs(old["scale"])
            tolerance = Tolerance(tolerance.relative * OF_LISTS, tolerance.absolute * OF_LISTS)
        for key, before in old.items():
            inside = f"{path}/{key}" if path else key
            if key in new:
                self._walk(inside, before, new[key], tolerance, scale)
            else:
                self._differ(inside, before, MISSING)
        self.additional += [f"{path}/{key}" if path else key for key in new if key not in old]

    def _differ(self, path, old, new):
        self.differences.append(Difference(self.case, path, old, new))


class Intended:
    """The differences that changed.toml lists. Each entry must apply, and to nothing else than it says."""

    def __init__(self, file):
        self.entries = tomllib.loads(file.read_text()).get("changed", []) if file.exists() else []
        for entry in self.entries:
            self._check(entry)
        self._uses = [0] * len(self.entries)

    @staticmethod
    def _check(entry):
        for key in ("case", "path", "reason"):
            if not isinstance(entry.get(key), str) or not entry[key]:
                raise SystemExit(f"changed.toml: an entry needs {key}, a text: {entry}")
        known = {"case", "path", "reason", "old", "new", "count"}
        if unknown := set(entry) - known:
            raise SystemExit(f"changed.toml: unknown key {', '.join(sorted(unknown))}: {entry}")
        if ("old" in entry) != ("new" in entry) or ("old" in entry) == ("count" in entry):
            raise SystemExit(f"changed.toml: an entry has old and new, or the count of differences it stands for: {entry}")

    def accepts(self, difference):
        for place, entry in enumerate(self.entries):
            if self._matches(entry, difference):
                self._uses[place] += 1
                return True
        return False

    @staticmethod
    def _matches(entry, difference):
        if not (fnmatchcase(difference.case, entry["case"]) and fnmatchcase(difference.path, entry["path"])):
            return False
        if "count" in entry:
            return True
        tolerance = tolerance_of(difference.case)
        return all(equal(_value(entry[key]), getattr(difference, key), tolerance) for key in ("old", "new"))

    def wrong(self, stored, compared):
        """Sentences about entries that did not apply as they say, of those whose cases were all compared."""
        for entry, uses in zip(self.entries, self._uses, strict=True):
            cases = [case for case in stored if fnmatchcase(case, entry["case"])]
            if not cases:
                yield f"changed.toml: no case is called {entry['case']}"
                continue
            expected = entry.get("count", 1)
            if set(cases) <= compared and uses != expected:
                yield f"changed.toml: {entry['case']}: {entry['path']} stands for {expected} differences, found {uses}"
