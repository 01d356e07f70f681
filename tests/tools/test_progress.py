"""tools/progress.sh shortens what set-up and build print, and loses no error."""

import pathlib
import subprocess

TOOL = pathlib.Path(__file__).parents[2] / "tools" / "progress.sh"


def shorten(lines, *arguments):
    return subprocess.run(
        [TOOL, *arguments], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_ninja_shows_every_tenth_and_whatever_is_no_progress():
    steps = [f"[{i}/230] Building part {i}" for i in range(1, 231)]
    lines = [
        "ninja: Entering directory `build'",
        "[1/2] Re-running CMake...",
        *steps[:100],
        "FAILED: a.o",
        "a.cpp:1: error: no",
        *steps[100:],
    ]
    shown = shorten(lines, "ninja")
    assert shown[:2] == ["[1/2] Re-running CMake...", "[23/230] Building part 23"]
    assert shown[-1] == "[230/230] Building part 230"
    assert "FAILED: a.o" in shown and "a.cpp:1: error: no" in shown
    assert len(shown) == 13


def test_apt_counts_packages_and_shows_errors():
    lines = ["Need to get 3 MB", *(f"Setting up package{i} (1.0) ..." for i in range(1, 41)), "E: no space"]
    shown = shorten(lines, "apt", "40")
    assert shown[:2] == ["Need to get 3 MB", "[4/40] package4"] and shown[-1] == "E: no space"
    assert len(shown) == 12


def test_pip_shows_large_downloads_and_errors():
    lines = [
        "Collecting torch",
        "  Downloading torch.whl (190.4 MB)",
        "  Downloading small.whl (20 kB)",
        "ERROR: no such version",
    ]
    assert shorten(lines, "pip") == ["Downloading torch.whl (190.4 MB)", "ERROR: no such version"]


def test_lines_come_as_they_are_written():
    with subprocess.Popen([TOOL, "ninja"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        process.stdin.write("[5/10] half\n")
        assert process.stdout.readline() == "[5/10] half\n"  # while the input is still open
        process.stdin.close()
