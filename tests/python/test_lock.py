"""The interpreter lock is free while the engine works, and Ctrl-C ends the work."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import holdfast
import pytest
import torch
from conftest import make_network


def ticks_during(work):
    """How often another thread gets to run within the work, and how long that took."""
    ticks = 0
    stop = threading.Event()

    def tick():
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    try:
        work()
    finally:
        seconds = time.perf_counter() - begin
        stop.set()
        thread.join()
    return ticks, seconds


@pytest.mark.parametrize("native", [False, True], ids=["python", "native"])
def test_other_threads_run_during_an_attack(threat, native):
    network = make_network(inputs=30, hidden=256)
    inputs = torch.rand(256, 30, generator=torch.Generator().manual_seed(0))
    model = holdfast.load_model(network, inputs) if native else network
    ticks, seconds = ticks_during(
        lambda: holdfast.attack(model, inputs, "er(steps=150)", metric="top_k(k=4)", threat=threat, threads=1)
    )
    # A thread that had to wait for the whole attack would tick once or twice.
    assert ticks > 20 * seconds, f"{ticks} ticks in {seconds:.2f} s"


def test_other_threads_run_during_one_backward_pass():
    """A single pass through a deep network; Python's code takes part at its two ends only."""
    model = torch.nn.Sequential(*[torch.nn.Linear(400, 400) for _ in range(40)], torch.nn.Linear(400, 3))
    inputs = torch.rand(1000, 400, generator=torch.Generator().manual_seed(0))
    ticks, seconds = ticks_during(lambda: holdfast.explain(model, inputs, targets=0, tile=1000))
    assert ticks > 20 * seconds, f"{ticks} ticks in {seconds:.2f} s"


def test_two_threads_explain_side_by_side(network, inputs):
    expected = holdfast.explain(network, inputs)
    found = {}

    def work(name):
        for _ in range(20):
            found[name] = holdfast.explain(make_network(), inputs)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(maps, expected) for maps in found.values()) and len(found) == 3


INTERRUPTED = """
import os, signal, sys, threading, time
import holdfast, torch
sys.path.insert(0, {tests!r})
from conftest import make_network

network = make_network()
network.train()
inputs = torch.rand(500, 6)
model = holdfast.load_model(network, inputs) if {native} else network
threat = holdfast.Threat(epsilon=0.5)
threads = torch.get_num_threads()
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begin = time.perf_counter()
try:
    holdfast.attack(model, inputs, "er(steps=10000000)", metric="top_k(k=2)", threat=threat)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted", time.perf_counter() - begin < 5)
print(network.training, torch.get_num_threads() == threads, torch.is_grad_enabled())
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
print(holdfast.attack(model, inputs, "er(steps=2)", metric="top_k(k=2)", threat=threat).perturbed.shape)
"""


@pytest.mark.parametrize("native", [False, True], ids=["python", "native"])
def test_ctrl_c_ends_an_attack_and_leaves_all_in_order(native):
    code = INTERRUPTED.format(tests=str(Path(__file__).parent), native=native)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["interrupted True", "True True True", "True", "torch.Size([500, 6])"], done.stderr
