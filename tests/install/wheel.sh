#!/usr/bin/env bash
# Makes a wheel from a build folder, installs it into a new virtual environment and runs the quick start there.
# tests/install/wheel.sh BUILD_FOLDER
set -euo pipefail
build=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wheel=$("$here/../../tools/wheel.sh" "$build" "$work/dist" | tail -1)
python3 -m venv "$work/env"
# torch and numpy are those of the environment it was built in: nothing is downloaded.
site=$("$work/env/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
"$here/../../.venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' >"$site/built_with.pth"
"$work/env/bin/python" -m pip install --disable-pip-version-check --quiet --no-deps --no-index "$wheel"
cd "$work"
PATH="$work/env/bin:$PATH"
unset PYTHONPATH
holdfast --version
holdfast list metrics | grep -q top_k
cat >quick_start.py <<'P'
import pathlib, sys, holdfast, torch
assert pathlib.Path(holdfast.__file__).is_relative_to(sys.prefix), holdfast.__file__
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
run = holdfast.audit({"plain": model}, torch.rand(5, 6), attack="er(steps=3)", metric="top_k(k=2)", threat=holdfast.Threat(epsilon=0.1),
                     gates=["top_k(k=2) >= 0.0"], out="run", progress=False)
assert run.passed and run.report().stat().st_size > 10000
P
python -W ignore quick_start.py
holdfast verify run >/dev/null
fixtures=$(python -m pytest --fixtures -q -p no:cacheprovider . || true)
grep -q holdfast_audit <<<"$fixtures" || { echo "pytest does not find the fixture: $fixtures"; exit 1; }
# Another torch is one clear sentence.
mkdir other
echo '__version__ = "9.9.9"' >other/torch.py
refused=$(PYTHONPATH=other python -c 'import holdfast' 2>&1 || true)
grep -q 'built for torch .* and torch 9.9.9 is installed' <<<"$refused" || { echo "another torch is not refused: $refused"; exit 1; }
# So is torch without CUDA where it was built with it.
sed -i 's/^CUDA = .*/CUDA = True/' "$site/holdfast/_built_for.py"
version=$(python -c 'import torch; print(torch.__version__.partition("+")[0])')
printf '__version__ = "%s"\nclass version: cuda = None\n' "$version" >other/torch.py
refused=$(PYTHONPATH=other python -c 'import holdfast' 2>&1 || true)
grep -q 'built for torch .* with CUDA, and torch' <<<"$refused" || { echo "torch without CUDA is not refused: $refused"; exit 1; }
echo "wheel: installed, quick start run"
