#!/usr/bin/env bash
# Runs every benchmark. Each compares its results with its rival's first and then prints a ratio of medians of interleaved
# runs; the exit code is 1 when one is above its limit.
set -uo pipefail
cd "$(dirname "$0")/.."
export OMP_NUM_THREADS=1
failed=0
run() { printf '\n== %s\n' "$*"; "$@" || failed=1; }
run build/er_attack
OMP_NUM_THREADS=2 run .venv/bin/python bench/er_authors.py build/holdfast
run .venv/bin/python bench/gauntlet_tables.py build/holdfast
run build/thickness
run build/train_stack
run build/train_step
run .venv/bin/python bench/at_authors.py build/holdfast
run build/lens_train
OMP_NUM_THREADS=2 run .venv/bin/python bench/lens_attack.py build/holdfast
run build/network_forward
run build/explain_passes
run build/valid_effect
run build/explain_memory attribute
run build/explain_memory pullback
run .venv/bin/python bench/explain_captum.py
run .venv/bin/python bench/transformer_passes.py
run .venv/bin/python bench/stability_quantus.py
run .venv/bin/python bench/decode_images.py build/decode_images
run .venv/bin/python bench/metric_rivals.py
run .venv/bin/python bench/python_calls.py build/holdfast
run .venv/bin/python bench/streamed_memory.py
exit $failed
