#!/usr/bin/env bash
# Runs every fuzz target so many times, starting from its corpus; what it finds is kept in build-fuzz/findings.
#   tools/fuzz.sh 1000000
set -uo pipefail
cd "$(dirname "$0")/.."
runs=${1:-1000000}
findings=build-fuzz/findings
mkdir -p "$findings"
failed=0
for target in build-fuzz/fuzz_*; do
  name=${target##*/fuzz_}
  [ "$name" = replay ] && continue
  mkdir -p "build-fuzz/work/$name"
  if "$target" -runs="$runs" -rss_limit_mb=2048 -max_len=65536 -print_final_stats=0 -verbosity=0 -artifact_prefix="$findings/$name-" \
      "build-fuzz/work/$name" "tests/fuzz/corpus/$name" >"build-fuzz/work/$name.log" 2>&1; then
    printf '%-12s nothing found in %s executions\n' "$name" "$runs"
  else
    printf '%-12s FAILED, see build-fuzz/work/%s.log\n' "$name" "$name"
    failed=1
  fi
done
exit $failed
