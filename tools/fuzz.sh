#!/usr/bin/env bash
# Runs every fuzz target so many times, starting from its corpus; what it finds is kept in build-fuzz/findings. The counts go into
# docs/reliability.md.
#   tools/fuzz.sh 1000000
#   tools/fuzz.sh 1000000 60       # or for a minute, where that is shorter
set -uo pipefail
cd "$(dirname "$0")/.."
runs=${1:-1000000}
seconds=${2:-0}
findings=build-fuzz/findings
page=docs/reliability.md
mkdir -p "$findings"
failed=0
rows=build-fuzz/table.md
printf '| reader | executions | found |\n|---|---|---|\n' >"$rows"
for target in build-fuzz/fuzz_*; do
  name=${target##*/fuzz_}
  { [ "$name" = replay ] || [ ! -x "$target" ] || [ -d "$target" ]; } && continue
  mkdir -p "build-fuzz/work/$name"
  log=build-fuzz/work/$name.log
  found=nothing
  "$target" -runs="$runs" -max_total_time="$seconds" -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="$findings/$name-" "build-fuzz/work/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1 || found="see $log" failed=1
  count=$(awk '/stat::number_of_executed_units/ {print $2}' "$log")
  printf '%-12s %s found in %s executions\n' "$name" "$found" "${count:-0}"
  printf '| `%s` | %s | %s |\n' "$name" "${count:-0}" "$found" >>"$rows"
done
# Between the two marks of the page.
awk -v rows="$rows" '
  /<!-- made by make fuzz -->/ {print; while ((getline line < rows) > 0) print line; skip = 1; next}
  /<!-- end -->/ {skip = 0}
  !skip {print}' "$page" >build-fuzz/page.md && cp build-fuzz/page.md "$page"
exit $failed
