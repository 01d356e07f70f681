#!/usr/bin/env bash
# Configures (once) and builds a preset: tools/build.sh release 2
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
jobs=$2
folder=build
case "$preset" in debug|asan|fuzz) folder="build-$preset" ;; esac
log="$folder/configure.log"
mkdir -p "$folder"

# `bench` shares the release folder: switching it on or off is a configuration of its own.
if [ ! -f "$folder/build.ninja" ] || [ "$(cat "$folder/.preset" 2>/dev/null)" != "$preset" ]; then
  cmake --preset "$preset" >"$log" 2>&1 || { cat "$log" >&2; exit 3; }
  echo "$preset" >"$folder/.preset"
fi
# Torch files need about 1.1 GB each while they compile.
memory_jobs=$(awk '/MemAvailable/{print int($2/1500000)}' /proc/meminfo)
[ "$memory_jobs" -lt 1 ] && memory_jobs=1
[ "$jobs" -gt "$memory_jobs" ] && jobs=$memory_jobs
ninja -C "$folder" -j "$jobs" --quiet

# `import holdfast` in .venv finds what was built here.
if [ "$folder" = build ] && [ -d build/python ] && [ -x .venv/bin/python ]; then
  link=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["platlib"])')/holdfast.pth
  [ "$(cat "$link" 2>/dev/null)" = "$PWD/build/python" ] || echo "$PWD/build/python" >"$link"
fi
