#!/usr/bin/env bash
# The documentation as a site, in build/docs: static, with search that works offline.
set -euo pipefail
cd "$(dirname "$0")/.."
env=.venv-docs
[ -x "$env/bin/python" ] || python3 -m venv "$env"
if ! cmp -s requirements-docs.txt "$env/.requirements"; then
  echo "docs: installing $(grep -v '^#' requirements-docs.txt | paste -sd ' ')" >&2
  "$env/bin/python" -m pip install --disable-pip-version-check --quiet -r requirements-docs.txt >"$env/pip.log" 2>&1 ||
    { tail -3 "$env/pip.log" >&2; exit 3; }
  cp requirements-docs.txt "$env/.requirements"
fi
rm -rf build/docs-source
mkdir -p build/docs-source
cp docs/* tools/iframe-worker.js build/docs-source/
# The first page is the repository's; links lead to pages of the site.
sed 's#(docs/#(#g' README.md >build/docs-source/index.md
rm build/docs-source/README.md
sed -i 's/(README\.md)/(index.md)/g; s#(\.\./\(README\|CONTRIBUTING\|CHANGELOG\)\.md)#(index.md)#g' build/docs-source/*.md
PYTHONPATH=build/python .venv/bin/python tools/api_pages.py build/docs-source
# A link that leads nowhere is an error.
NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true "$env/bin/mkdocs" build --strict >build/docs.log 2>&1 || { grep -v INFO build/docs.log >&2; exit 1; }
echo "docs: build/docs/index.html"
