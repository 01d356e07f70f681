#!/usr/bin/env bash
# Installs what building and testing need: Debian packages (as root or with sudo), a Python environment in .venv and the
# report's npm packages. Does nothing, quickly, when all of it is there.
#   tools/setup.sh          for building and testing
#   tools/setup.sh test     also what only the tests need: a browser for the report
#   tools/setup.sh lint     also what `make lint` needs
#   tools/setup.sh fuzz     also what the fuzz targets need
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 2; }

packages=$(grep -v '^#' tools/packages.txt)
case "${1:-}" in
  lint) packages="$packages clang-format-16 clang-tidy-16" ;;
  fuzz) packages="$packages clang-16 libclang-rt-16-dev" ;;
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

if command -v dpkg-query >/dev/null; then
  # Virtual packages are no trouble here: every name in the list is a real one.
  installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 2>/dev/null | awk '$1=="ii"{print $2}')
  missing=$(missing_packages)
  if [ -n "$missing" ]; then
    if [ "$(id -u)" = 0 ]; then as_root=""
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then as_root="sudo"
    else fail "please install these Debian packages, then run this again: sudo apt-get install $missing"
    fi
    say "installing Debian packages: $missing"
    $as_root apt-get update -qq || say "apt-get update failed; trying with the lists that are here"
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null \
      || fail "apt-get could not install: $missing"
  fi
else
  say "this is not Debian: the equivalents of tools/packages.txt are expected to be installed"
fi

# The tests do without a browser, but then they do not open the report.
if [ "${1:-}" = test ] && ! command -v chromium >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  say "installing Debian package: chromium"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null \
    || say "chromium could not be installed: the report is not opened in a browser"
fi

stamp=.venv/.requirements
if ! cmp -s requirements.txt "$stamp"; then
  if [ ! -x .venv/bin/python ]; then
    say "making the Python environment .venv"
    python3 -m venv .venv || fail "python3 -m venv failed; install python3-venv"
  fi
  say "installing Python packages (torch is large: this takes a few minutes the first time)"
  .venv/bin/python -m pip install -q --disable-pip-version-check -r requirements.txt 2> >(grep -v WARNING >&2) \
    || fail "pip could not install requirements.txt"
  cp requirements.txt "$stamp"
fi

if [ -f web/package.json ]; then
  command -v npm >/dev/null || fail "npm is needed for the report's page; install it with: apt-get install nodejs npm"
  if ! cmp -s web/package-lock.json web/node_modules/.lock; then
    say "installing the report's npm packages"
    # Not `npm ci`: it refuses a lock file without the bundler's binaries for other systems.
    (cd web && npm install --no-save --silent --no-audit --no-fund) || fail "npm install failed in web/"
    cp web/package-lock.json web/node_modules/.lock
  fi
fi
