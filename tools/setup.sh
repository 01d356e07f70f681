#!/usr/bin/env bash
# Installs what a build needs: Debian packages (as root or with sudo), a Python environment in .venv and the report's npm
# packages. Does nothing, quickly, when all of it is there.
#   tools/setup.sh          for the program and `make demo`
#   tools/setup.sh python   also for the Python package
#   tools/setup.sh test     also for the tests and benchmarks
#   tools/setup.sh lint     also for `make lint`
#   tools/setup.sh fuzz     also for the fuzz targets
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-program}

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 2; }
list() { grep -hv '^#' "$@"; }

packages=$(list tools/packages.txt)
requirements="requirements.txt"
case "$what" in
  program) ;;
  python) packages="$packages python3-dev" ;;
  test) packages="$packages $(list tools/packages-test.txt)" requirements="requirements.txt requirements-test.txt" ;;
  lint) packages="$packages clang-format-16 clang-tidy-16" requirements="requirements.txt requirements-test.txt" ;;
  fuzz) packages="$packages clang-16 libclang-rt-16-dev" ;;
  *) fail "unknown: $what" ;;
esac

missing_packages() {
  # A tool of the same name from elsewhere does as well as Debian's package.
  local package
  for package in $packages; do
    case "$package" in
      cmake|ccache) command -v "$package" >/dev/null && continue ;;
      ninja-build) command -v ninja >/dev/null && continue ;;
      build-essential) command -v g++ >/dev/null && command -v make >/dev/null && continue ;;
      python3-venv) python3 -c 'import venv, ensurepip' 2>/dev/null && continue ;;
      python3-dev) [ -f "$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["include"])')/Python.h" ] && continue ;;
    esac
    echo "$package"
  done | while read -r package; do
    grep -qxF "$package" <<<"$installed" || printf '%s ' "$package"
  done
}

# apt_install PACKAGE...: one line of progress for every tenth of the packages that apt unpacks and sets up.
apt_install() {
  local planned
  planned=$($as_root apt-get install -s -qq --no-install-recommends "$@" 2>/dev/null | grep -c '^Inst' || true)
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y --no-install-recommends "$@" 2>&1 </dev/null |
    tools/progress.sh apt "$planned" >&2
}

if command -v dpkg-query >/dev/null; then
  if [ "$(id -u)" = 0 ]; then as_root=""
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then as_root="sudo"
  else as_root="none"
  fi
  # Virtual packages are no trouble here: every name in the list is a real one.
  installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 2>/dev/null | awk '$1=="ii"{print $2}')
  missing=$(missing_packages)
  if [ -n "$missing" ]; then
    [ "$as_root" = none ] && fail "please install these Debian packages, then run this again: sudo apt-get install $missing"
    say "installing Debian packages: $missing"
    $as_root apt-get update -qq || say "apt-get update failed; trying with the lists that are here"
    # shellcheck disable=SC2086
    apt_install $missing || fail "apt-get could not install: $missing"
  fi
  # The tests do without a browser, but then they do not open the report.
  if [ "$what" = test ] && [ "$as_root" != none ] && ! command -v chromium >/dev/null; then
    say "installing a browser for the report's test: chromium"
    apt_install chromium || say "chromium could not be installed: the report is not opened in a browser"
  fi
else
  say "this is not Debian: the equivalents of tools/packages.txt are expected to be installed"
fi

# pip_install FILE: with pip's own bars on a terminal; else a line for every large download, and errors.
pip_install() {
  if [ -t 2 ]; then
    .venv/bin/python -m pip install --disable-pip-version-check -r "$1" >&2
  else
    .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off -r "$1" 2>&1 | tools/progress.sh pip >&2
  fi
}

if [ ! -x .venv/bin/python ]; then
  say "making the Python environment .venv"
  python3 -m venv .venv || fail "python3 -m venv failed; install python3-venv"
fi
for file in $requirements; do
  stamp=".venv/.$file"
  cmp -s "$file" "$stamp" && continue
  say "installing the Python packages of $file: $(list "$file" | grep -v '^-' | paste -sd ' ')"
  pip_install "$file" || fail "pip could not install $file"
  cp "$file" "$stamp"
done

command -v npm >/dev/null || fail "npm is needed for the report's page; install it with: apt-get install nodejs npm"
if ! cmp -s web/package-lock.json web/node_modules/.lock; then
  say "installing the report's npm packages"
  # Not `npm ci`: it refuses a lock file without the bundler's binaries for other systems.
  (cd web && npm install --no-save --silent --no-audit --no-fund) || fail "npm install failed in web/"
  cp web/package-lock.json web/node_modules/.lock
fi
