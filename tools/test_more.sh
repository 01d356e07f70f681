#!/usr/bin/env bash
# Tests with packages that only integrations need (requirements-more.txt), in an environment of their own beside .venv, whose
# packages it sees. A package that cannot be installed is named, and its tests are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf 'test-more: %s\n' "$*" >&2; }

[ -x .venv/bin/python ] || { say "run make test first: there is no .venv"; exit 2; }
env=.venv-more
if [ ! -x "$env/bin/python" ]; then
  say "making the Python environment $env"
  python3 -m venv "$env"
fi
packages_of() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["platlib"])'; }
packages_of .venv >"$(packages_of "$env")/beside.pth"
grep -v '^[#-]' requirements-more.txt | while read -r package; do
  "$env/bin/python" -c "import importlib.metadata as m, sys; name, _, version = sys.argv[1].partition('=='); sys.exit(m.version(name) != version)" \
    "$package" 2>/dev/null && continue
  say "installing $package"
  "$env/bin/python" -m pip install --disable-pip-version-check --quiet -c requirements.txt "$package" >"$env/pip.log" 2>&1 ||
    say "$package could not be installed ($(tail -1 "$env/pip.log")); its tests are skipped"
done
PYTHONPATH=$PWD/build/python OMP_WAIT_POLICY=passive exec "$env/bin/python" -m pytest -q -rs -p no:cacheprovider --durations=5 tests/more
