"""Makes results short enough to be committed, and keeps what shows a change.

A long list of numbers becomes its count, its mean, and a mean weighted by position, which notices exchanged elements.
Both change by no more than the numbers themselves, so that they can be compared with a tolerance. A digest could not.
"""

import math
import zlib
from collections import Counter

import numpy as np

DIGITS = 6  # significant ones that are kept
LONGEST = 8  # lists up to this length are kept as they are
SHOWN = 1  # elements of a long list that are kept beside its means

# What says how, where and how fast a result was made, not what it is.
LEFT_OUT = {"seconds", "identity", "holdfast", "versions", "hardware", "started", "command", "out"}


def rounded(number, digits=DIGITS):
    """The number with few digits; None for what is not finite, as the program's JSON has it."""
    if isinstance(number, bool | int):
        return number
    if not math.isfinite(number):
        return None
    return float(f"{number:.{digits - 1}e}")


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def shorten_numbers(numbers):
    """Counts, sums and first elements of a list of numbers and Nones."""
    if all(isinstance(number, int) for number in numbers):
        weighted = sum((place + 1) * number for place, number in enumerate(numbers))
        return {"count": len(numbers), "sum": sum(numbers), "weighted": weighted}
    values = np.array([np.nan if number is None else number for number in numbers], dtype=np.float64)
    defined = np.isfinite(values)
    found = np.where(defined, values, 0)
    places = np.cos(np.arange(1, len(found) + 1))
    summary = {"count": len(numbers), "undefined": int((~defined).sum())}
    for name, number in (("scale", np.abs(found).mean()), ("mean", found.mean()), ("mixed", (found * places).mean())):
        summary[name] = rounded(float(number))
    return {**summary, "first": [rounded(float(number)) if np.isfinite(number) else None for number in values[:SHOWN]]}


WHOLE = ("count", "sum", "weighted")
REAL = ("count", "undefined", "scale", "mean", "mixed", "first")


def pack(value):
    """The value as it is stored: summaries of long lists are lists that begin with # (whole numbers) or ~ (real ones)."""
    if isinstance(value, dict):
        if tuple(value) == WHOLE:
            return ["#", *value.values()]
        if tuple(value) == REAL:
            return ["~", *list(value.values())[:-1], *value["first"]]
        return {key: pack(part) for key, part in value.items()}
    return [pack(part) for part in value] if isinstance(value, list) else value


def unpack(value):
    """The opposite of pack."""
    if isinstance(value, dict):
        return {key: unpack(part) for key, part in value.items()}
    if not isinstance(value, list) or not value:
        return value
    if value[0] == "#":
        return dict(zip(WHOLE, value[1:], strict=True))
    if value[0] == "~":
        return dict(zip(REAL, [*value[1:6], value[6:]], strict=True))
    return [unpack(part) for part in value]


def shorten_words(words):
    counts = Counter(map(str, words))
    summary = {"count": len(words), "digest": f"{zlib.crc32(chr(10).join(map(str, words)).encode()):08x}"}
    return {**summary, "words": dict(sorted(counts.items()))} if len(counts) <= LONGEST else summary


def columns_of(rows):
    """The columns of a list of objects; a key that a row does not have is None there."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: [row.get(key) for row in rows] for key in keys}


def shorten_list(values):
    if all(isinstance(value, dict) for value in values):
        return {"rows": len(values), **shorten(columns_of(values))}
    if all(isinstance(value, list) for value in values):
        return {
            "lengths": shorten_list([len(value) for value in values]),
            "all": shorten([one for value in values for one in value]),
        }
    if all(is_number(value) or value is None for value in values):
        return shorten_numbers(values)
    return shorten_words(values)


def shorten(value):
    """The value with long lists shortened, numbers rounded, and times and paths left out."""
    if isinstance(value, dict):
        return {key: shorten(part) for key, part in value.items() if key not in LEFT_OUT}
    if isinstance(value, list):
        return shorten_list(value) if len(value) > LONGEST else [shorten(part) for part in value]
    return rounded(value) if isinstance(value, float) else value


def shorten_array(array):
    """Shape, and the numbers in short."""
    array = np.asarray(array)
    kind = array.dtype.kind
    numbers = array.ravel().tolist() if kind == "f" else [int(number) for number in array.ravel()]
    return {"shape": list(array.shape), "numbers": shorten_numbers(numbers)}


def by(key, rows):
    """A list of objects as one object, by a key of theirs; those that share one are numbered."""
    found = {}
    for row in rows:
        name = str(row[key])
        while name in found:
            name += "'"
        found[name] = {part: value for part, value in row.items() if part != key}
    return found
