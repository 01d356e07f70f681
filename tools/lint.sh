#!/usr/bin/env bash
# Formatting and static checks. Clang-tidy looks at the sources changed since BASE (default HEAD~1) and in the work tree: a file
# that uses torch takes it half a minute.
#   tools/lint.sh [BASE]
set -uo pipefail
cd "$(dirname "$0")/.."
base=${1:-HEAD~1}
status=0
check() { printf '== %s\n' "$1"; shift; "$@" || { status=1; printf '   failed\n'; }; }

# GCC's precompiled header means nothing to clang; it reads the plain headers instead.
tidy_database() {
  mkdir -p build/tidy
  sed -e 's/-fpch-preprocess//g' -e 's/-Winvalid-pch//g' -e 's/-include [^ ]*cmake_pch.hxx//g' build/compile_commands.json \
    >build/tidy/compile_commands.json
}
# What clang-tidy says on stderr is how many warnings of other people's headers it did not show.
tidy() { printf '%s\n' "$@" | xargs -P "$(nproc)" -n 1 clang-tidy-16 --quiet -p build/tidy 2>/dev/null; }

# Deleted files are still listed until they are committed.
mapfile -t sources < <(git ls-files -co --exclude-standard '*.cpp' '*.h' | while read -r file; do [ -f "$file" ] && echo "$file"; done)
check "clang-format" clang-format-16 --dry-run --Werror "${sources[@]}"
check "ruff" .venv/bin/ruff check --quiet .
check "ruff format" .venv/bin/ruff format --quiet --check .
check "order of the stages" tools/check_stages.sh
check "types of the page" npm --prefix web run --silent check

mapfile -t changed < <({ git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp'; git ls-files -o --exclude-standard 'src/*.cpp'; } | sort -u)
if [ ${#changed[@]} -gt 0 ] && [ -f build/compile_commands.json ]; then
  tidy_database
  check "clang-tidy on ${#changed[@]} changed files" tidy "${changed[@]}"
fi
exit $status
