#!/usr/bin/env bash
# A build folder that was made for another Python environment finds the torch of this one.  tests/install/again.sh PYTHON
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake -S "$here/../.." -B "$work" -G Ninja -DHOLDFAST_PYTHON="$1" -DHOLDFAST_TESTS=OFF -DHOLDFAST_TORCH_OF:INTERNAL=/of/another/python3 \
  -DTorch_DIR=/of/another/torch -DTORCH_LIBRARY=/of/another/libtorch.so -DHOLDFAST_TORCH_PYTHON=/of/another/libtorch_python.so \
  >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
! grep /of/another "$work/CMakeCache.txt" "$work/build.ninja" || { echo "what was found for another environment is kept"; exit 1; }
echo "again: nothing of another environment is kept"
