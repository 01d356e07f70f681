"""The fixture ``holdfast_audit``, found by pytest where the package is installed."""

from pathlib import Path

import pytest

from .testing import Auditor


@pytest.fixture
def holdfast_audit(tmp_path: Path) -> Auditor:
    """``holdfast.audit`` in the test's temporary folder; a gate that is missed fails the test."""
    return Auditor(tmp_path / "holdfast")
