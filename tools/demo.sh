#!/usr/bin/env bash
# Trains and audits small models on data that the installed packages carry, then says where the report is.
set -euo pipefail
cd "$(dirname "$0")/.."
out=runs/demo
# The demo shows the whole way: what an earlier one left is done again.
rm -rf "$out"
start=$SECONDS
# scikit-learn in .venv carries the table, dataset-fashion-mnist the images.
VIRTUAL_ENV="$PWD/.venv" build/holdfast audit configs/demo.toml --out "$out"
printf '\nThe demo took %d s. Open the report in a browser:\n  file://%s/%s/report.html\n' "$((SECONDS - start))" "$PWD" "$out"
