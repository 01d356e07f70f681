#!/usr/bin/env bash
# Runs fuzz targets so many times, starting from their corpora; what is found is kept in build-fuzz/findings. Executions of
# the same program count together, over several calls. When all targets have done so many, the counts go into docs/reliability.md.
#   tools/fuzz.sh 1000000
#   tools/fuzz.sh 1000000 60             # or for a minute, where that is shorter
#   tools/fuzz.sh 1000000 60 json csv    # these only
set -uo pipefail
cd "$(dirname "$0")/.."
runs=${1:-1000000}
seconds=${2:-0}
shift $(( $# < 2 ? $# : 2 ))
names=("$@")
findings=build-fuzz/findings
page=docs/reliability.md
mkdir -p "$findings" build-fuzz/work
# Watching for pointers into frames that have returned takes half of the time or more; everything else is watched for.
export ASAN_OPTIONS=detect_stack_use_after_return=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
failed=0

all=()
for target in build-fuzz/fuzz_*; do
  [ -f "$target" ] && [ -x "$target" ] && [ "$target" != build-fuzz/fuzz_replay ] && all+=("${target##*/fuzz_}")
done
[ ${#names[@]} -gt 0 ] || names=("${all[@]}")

# What this program has done so far: executions.
count_of() { grep -hF "$(sha256sum <"build-fuzz/fuzz_$1")" "build-fuzz/work/$1.count" 2>/dev/null | awk '{print $3; exit}'; }

for name in "${names[@]}"; do
  target=build-fuzz/fuzz_$name
  before=$(count_of "$name")
  left=$((runs - ${before:-0}))
  [ "$left" -gt 0 ] || continue
  mkdir -p "build-fuzz/work/$name"
  log=build-fuzz/work/$name.log
  found=nothing
  "$target" -runs="$left" -max_total_time="$seconds" -rss_limit_mb=2048 -max_len=16384 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="$findings/$name-" "build-fuzz/work/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1 || found="see $log" failed=1
  count=$(awk '/stat::number_of_executed_units/ {print $2}' "$log")
  printf '%s  %s\n' "$(sha256sum <"$target")" "$((${before:-0} + ${count:-0}))" >"build-fuzz/work/$name.count"
  printf '%-12s %s found in %s executions, %s in all\n' "$name" "$found" "${count:-0}" "$((${before:-0} + ${count:-0}))"
done

# The page is written when all of them are done; until then the table is only shown.
rows=build-fuzz/table.md
lacking=0
printf '| reader | executions | found |\n|---|---|---|\n' >"$rows"
for name in "${all[@]}"; do
  count=$(count_of "$name")
  [ "${count:-0}" -ge "$runs" ] || lacking=1
  found=nothing
  compgen -G "$findings/$name-*" >/dev/null && found="see $findings" failed=1
  printf '| `%s` | %s | %s |\n' "$name" "${count:-0}" "$found" >>"$rows"
done
if [ $lacking = 1 ]; then
  cat "$rows"
  exit $failed
fi
# Between the two marks of the page.
awk -v rows="$rows" '
  /<!-- made by make fuzz -->/ {print; while ((getline line < rows) > 0) print line; skip = 1; next}
  /<!-- end -->/ {skip = 0}
  !skip {print}' "$page" >build-fuzz/page.md && cp build-fuzz/page.md "$page"
exit $failed
