#!/usr/bin/env bash
# A command that passed is not run again until one of the files it depends on, or the data folder's name, has changed.
#   once.sh STAMP FILE_OR_FOLDER... -- COMMAND...
set -euo pipefail
stamp=$1
shift
depends=()
while [ "$1" != -- ]; do
  depends+=("$1")
  shift
done
shift
data=${HOLDFAST_DATA:-none}
if [ "$(cat "$stamp" 2>/dev/null)" = "$data" ] && [ -z "$(find "${depends[@]}" -type f -newer "$stamp" -not -name '*.pyc' -print -quit)" ]; then
  echo "passed before, and nothing has changed since (rm $stamp runs it again)"
  exit 0
fi
rm -f "$stamp"
started=$(mktemp)
trap 'rm -f "$started"' EXIT
echo "$data" >"$started"
"$@"
mv "$started" "$stamp"
