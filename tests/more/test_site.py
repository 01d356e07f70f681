"""The documentation's site is made, with every page and a search that works offline."""

import re
import subprocess

import pytest
from conftest import ROOT


def test_the_site(tmp_path):
    done = subprocess.run([ROOT / "tools" / "docs.sh"], capture_output=True, text=True, timeout=600)
    if done.returncode == 3:
        pytest.skip(f"mkdocs-material cannot be installed: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    pages = {path.stem for path in (ROOT / "build" / "docs").glob("*.html")}
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} - {"README"} <= pages
    assert {"api", "methods", "tutorial", "index"} <= pages
    found = (ROOT / "build" / "docs" / "search" / "search_index.js").read_text()
    assert "holdfast.choose_threat" in found and "gauntlet" in found
    reference = (ROOT / "build" / "docs" / "methods.html").read_text()
    assert "effort" in reference and "<table>" in reference
    assert not re.findall(r'src="(https?://[^"]+)', reference), "nothing is loaded from elsewhere: search works offline"
