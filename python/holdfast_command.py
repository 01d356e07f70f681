"""The command ``holdfast`` of an installed package: starts the program that lies in it. Imports neither torch nor the package."""

import importlib.util
import os
import sys
from pathlib import Path


def main() -> None:
    found = importlib.util.find_spec("holdfast")
    folder = Path(next(iter(found.submodule_search_locations))) if found and found.submodule_search_locations else Path()
    program = folder / "bin" / "holdfast"
    if not program.is_file():
        sys.exit(f"holdfast: the program is missing: {program}; install the package again")
    os.execv(program, ["holdfast", *sys.argv[1:]])


if __name__ == "__main__":
    main()
