#!/usr/bin/env bash
# Configures (once) and builds: tools/build.sh WHAT JOBS
#   program    build/holdfast and nothing else: no tests, no Python package
#   python     the program and the Python package
#   release    everything
#   bench, debug, asan, sanitize, fuzz, lint    the preset of that name; lint is configured only
# HOLDFAST_WERROR=ON in the environment makes warnings errors; without it a build folder keeps what it has.
set -euo pipefail
cd "$(dirname "$0")/.."
what=$1
jobs=$2
preset=$what
folder="build-$what"
targets=()
case "$what" in
  program) folder=build targets=(holdfast) ;;
  python) folder=build targets=(holdfast holdfast_python) ;;
  release|bench) folder=build ;;
esac
mkdir -p "$folder"

# `program`, `python`, `release` and `bench` share a folder, so that nothing is compiled twice. What is configured for more builds less.
configured=$(cat "$folder/.preset" 2>/dev/null || true)
is_configured() {
  [ -f "$folder/build.ninja" ] || return 1
  case "$what:$configured" in
    "$what:$what"|program:python|program:release|program:bench|python:release|python:bench) ;;
    *) return 1 ;;
  esac
  [ -z "${HOLDFAST_WERROR:-}" ] || grep -qx "HOLDFAST_WERROR:BOOL=$HOLDFAST_WERROR" "$folder/CMakeCache.txt"
}
if ! is_configured; then
  echo "build: configuring $folder for $what" >&2
  log="$folder/configure.log"
  cmake --preset "$preset" ${HOLDFAST_WERROR:+-DHOLDFAST_WERROR="$HOLDFAST_WERROR"} >"$log" 2>&1 || { cat "$log" >&2; exit 3; }
  echo "$preset" >"$folder/.preset"
fi
[ "$what" = lint ] && exit 0

# Torch files need about 1.1 GB each while they compile.
memory_jobs=$(awk '/MemAvailable/{print int($2/1500000)}' /proc/meminfo)
[ "$memory_jobs" -lt 1 ] && memory_jobs=1
[ "$jobs" -gt "$memory_jobs" ] && jobs=$memory_jobs
if [ -t 1 ]; then
  ninja -C "$folder" -j "$jobs" "${targets[@]}"
else
  ninja -C "$folder" -j "$jobs" "${targets[@]}" | tools/progress.sh ninja
fi

# `import holdfast` in .venv finds what was built here.
if [ "$folder" = build ] && [ -d build/python ] && [ -x .venv/bin/python ]; then
  link=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["platlib"])')/holdfast.pth
  [ "$(cat "$link" 2>/dev/null)" = "$PWD/build/python" ] || echo "$PWD/build/python" >"$link"
fi
