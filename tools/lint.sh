#!/usr/bin/env bash
# Formatting and static checks. tools/build.sh lint comes first: it configures build-lint, where each source has a command of its own.
# Clang-tidy looks at the sources changed since BASE (default HEAD~1) and in the work tree: a file
# that uses torch takes it half a minute.
#   tools/lint.sh [BASE]
set -uo pipefail
cd "$(dirname "$0")/.."
base=${1:-HEAD~1}
status=0
check() { printf '== %s\n' "$1"; shift; "$@" || { status=1; printf '   failed\n'; }; }

# What clang-tidy says on stderr is how many warnings of other people's headers it did not show.
tidy() { printf '%s\n' "$@" | xargs -P "$(nproc)" -n 1 clang-tidy-16 --quiet -p build-lint 2>/dev/null; }

# Deleted files are still listed until they are committed.
mapfile -t sources < <(git ls-files -co --exclude-standard '*.cpp' '*.h' | while read -r file; do [ -f "$file" ] && echo "$file"; done)
check "clang-format" clang-format-16 --dry-run --Werror "${sources[@]}"
check "ruff" .venv/bin/ruff check --quiet .
check "ruff format" .venv/bin/ruff format --quiet --check .
check "order of the stages" tools/check_stages.sh
check "type names" .venv/bin/python tools/check_type_names.py
check "types of the page" npm --prefix web run --silent check

mapfile -t changed < <({ git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp'; git ls-files -o --exclude-standard 'src/*.cpp'; } | sort -u)
if [ ${#changed[@]} -gt 0 ]; then
  check "clang-tidy on ${#changed[@]} changed files" tidy "${changed[@]}"
fi
exit $status
