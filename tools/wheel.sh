#!/usr/bin/env bash
# Makes a wheel out of what is built already: tools/wheel.sh BUILD_FOLDER DIST_FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
dist=$2
# The folder stays configured for what it builds.
tests=$(sed -n 's/^HOLDFAST_TESTS:BOOL=//p' "$build/CMakeCache.txt")
.venv/bin/python -c 'import scikit_build_core' 2>/dev/null ||
  .venv/bin/python -m pip install --disable-pip-version-check --quiet "$(grep '^scikit-build-core' requirements-test.txt)"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
.venv/bin/python -m pip wheel . --disable-pip-version-check --no-deps --no-build-isolation --no-index --quiet -w "$dist" \
  -C build-dir="$build" -C cmake.define.HOLDFAST_TESTS="$tests" >"$log" 2>&1 || { cat "$log" >&2; exit 3; }
ls "$dist"/holdfast-*.whl
