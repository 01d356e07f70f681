"""Interrupted work is not lost, and results do not depend on threads, tiles or interruptions."""

import os
import time

import numpy as np
from conftest import interrupt, save_inputs

AUDIT = ["--attack", "er(steps=400)", "--epsilon", "0.3", "--metric", "top_k(k=2)", "--tile", "4"]


def files(folder):
    return {name: (folder / name).read_bytes() for name in ["results.json", "samples.csv"]}


def test_threads_do_not_change_a_byte(holdfast, any_subject, tmp_path):
    holdfast("audit", *any_subject, *AUDIT, "--threads", "1", "--out", "one")
    holdfast("audit", *any_subject, *AUDIT, "--threads", "2", "--out", "two")
    assert files(tmp_path / "one") == files(tmp_path / "two")
    arrays = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one" / "arrays").rglob("*.npy"))
    assert arrays
    for path in arrays:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes()


def test_an_interrupted_audit_goes_on_to_the_same_bytes(holdfast, any_subject, tmp_path):
    save_inputs(tmp_path, 60)
    run = ["audit", *any_subject, *AUDIT, "--threads", "1"]
    process = holdfast.start(*run, "--out", "broken")
    tiles = tmp_path / "broken" / "tiles"
    deadline = time.monotonic() + 60
    while len(list(tiles.glob("*/*.safetensors"))) < 3:
        assert time.monotonic() < deadline and process.poll() is None, "the run ended before it could be interrupted"
        time.sleep(0.01)
    _, said = interrupt(process)
    assert process.returncode == 3 and "run the same command again" in said
    assert not (tmp_path / "broken" / "results.json").exists()
    done = len(list(tiles.glob("*/*.safetensors")))
    assert 3 <= done < 15

    holdfast(*run, "--out", "broken")
    holdfast(*run, "--out", "whole")
    assert files(tmp_path / "broken") == files(tmp_path / "whole")
    assert not tiles.exists()


def test_tile_sizes_agree_up_to_rounding(holdfast, any_subject, tmp_path):
    for tile in ["1", "7", "20"]:
        holdfast("explain", *any_subject, "--tile", tile, "--out", f"maps{tile}.npy")
    reference = np.load(tmp_path / "maps20.npy")
    for tile in ["1", "7"]:
        np.testing.assert_allclose(np.load(tmp_path / f"maps{tile}.npy"), reference, rtol=1e-5, atol=1e-6)


def test_a_signal_is_answered_where_nothing_looks_for_it(holdfast, tmp_path):
    """Writing to a pipe that nobody reads from cannot be interrupted by a look between two steps."""
    np.save(tmp_path / "maps.npy", np.random.default_rng(0).random((3, 4)))
    os.mkfifo(tmp_path / "never.csv")
    process = holdfast.start("measure", "maps.npy", "maps.npy", "--metric", "kendall", "--out", "never.csv")
    time.sleep(3)  # until the program has started and waits
    start = time.monotonic()
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3 and "interrupted; nothing was written" in said
    assert time.monotonic() - start < 30, "a second, and some for a busy machine"
