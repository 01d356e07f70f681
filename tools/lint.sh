#!/usr/bin/env bash
# Formatting and static checks. Clang-tidy looks at the files changed since BASE (default HEAD~1) and in the work tree.
set -uo pipefail
cd "$(dirname "$0")/.."
base=${1:-HEAD~1}
status=0
check() { printf '== %s\n' "$1"; shift; "$@" || { status=1; printf '   failed\n'; }; }

sources=$(git ls-files '*.cpp' '*.h')
# shellcheck disable=SC2086
check "clang-format" clang-format-16 --dry-run --Werror $sources
check "ruff" .venv/bin/ruff check --quiet .
check "ruff format" .venv/bin/ruff format --quiet --check .
check "order of the stages" tools/check_stages.sh

changed=$({ git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp' 2>/dev/null; git ls-files -o --exclude-standard 'src/*.cpp'; } | sort -u)
if [ -n "$changed" ] && [ -f build/compile_commands.json ]; then
  # GCC's precompiled header means nothing to clang; it reads the plain headers instead.
  mkdir -p build/tidy
  sed -e 's/-fpch-preprocess//g' -e 's/-Winvalid-pch//g' -e 's/-include [^ ]*cmake_pch.hxx//g' build/compile_commands.json >build/tidy/compile_commands.json
  # shellcheck disable=SC2086
  check "clang-tidy on $(echo $changed | wc -w) changed files" clang-tidy-16 --quiet -p build/tidy $changed
fi
exit $status
