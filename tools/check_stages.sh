#!/usr/bin/env bash
# A stage includes only core and stages before it. Prints every include that breaks this; exits 1 if there is one.
set -uo pipefail
cd "$(dirname "$0")/.."
stages="core data model explain metric attack measure train experiment report cli"
broken=0
earlier=""
for stage in $stages; do
  earlier="$earlier $stage"
  for other in $stages; do
    case " $earlier " in *" $other "*) continue ;; esac
    if grep -rnE "#include *[\"<]holdfast/$other/" "src/$stage" "include/holdfast/$stage" 2>/dev/null; then
      echo "stage $stage must not include $other, which comes after it" >&2
      broken=1
    fi
  done
done
exit $broken
