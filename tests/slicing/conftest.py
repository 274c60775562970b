"""Marks the tests that wait for more of slicing; `waiting.txt` names them."""

from __future__ import annotations

from pathlib import Path

import pytest

_FOLDER = Path(__file__).parent
_WAITING = {
    line
    for line in (_FOLDER / "waiting.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
}


def pytest_collection_modifyitems(items):
    for item in items:
        name = f"{item.path.name}::{item.nodeid.partition('::')[2]}"
        if item.path.parent == _FOLDER and name in _WAITING:
            item.add_marker(pytest.mark.xfail(reason="slicing does not do this yet", strict=False))
