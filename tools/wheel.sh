#!/usr/bin/env bash
# Makes a wheel out of what is built already, and leaves the build folder as it is: tools/wheel.sh BUILD_FOLDER DIST_FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(cd "$1" && pwd)
dist=$2
.venv/bin/python -c 'import scikit_build_core' 2>/dev/null ||
  .venv/bin/python -m pip install --disable-pip-version-check --quiet "$(grep '^scikit-build-core' requirements-test.txt)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
.venv/bin/python -m pip wheel . --disable-pip-version-check --no-deps --no-build-isolation --no-index --quiet -w "$dist" \
  -C cmake.source-dir=tools/wheel -C build-dir="$work" -C cmake.define.HOLDFAST_BUILD="$build" >"$work/log" 2>&1 ||
  { cat "$work/log" >&2; exit 3; }
ls "$dist"/holdfast-*.whl
