"""Random programs: sliced, they do what they do as they stand."""

import pytest

from dilim.slicing import region
from slicing.fuzz.compilers import COMPILERS
from slicing.fuzz.workers import tally_of

REFERENCE = range(20000, 21500)
COMPILED = range(30000, 30150)
CHUNK = 50
SHARE = 0.5
"""The least part of the tensor operations of a chunk that is native; the worst chunk has 0.80, all
together have 0.91."""
SETTLED = 0.55
"""The same in calls in which nothing was sliced. One program that is refused as a whole makes the
worst chunk, 0.63; the next have 0.90. All together have to have 0.95, see ``tests/conftest.py``."""


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A busy machine gives up no program that is sliced elsewhere."""
    monkeypatch.setattr(region, "MOST_SECONDS", 4 * region.MOST_SECONDS)


def tally(seeds, backend):
    return tally_of(list(seeds), COMPILERS[backend])


@pytest.mark.parametrize("first", REFERENCE[::CHUNK])
def test_sliced_programs_do_what_plain_ones_do(first, record_property):
    found = tally(range(first, first + CHUNK), "reference")
    record_property(
        "native and all settled operations", [found.settled - found.settled_host, found.settled]
    )
    assert found.share >= SHARE
    assert found.settled_share >= SETTLED


@pytest.mark.parametrize("first", COMPILED[:: CHUNK // 5])
def test_programs_in_machine_code_do_what_plain_ones_do(first):
    assert tally(range(first, first + CHUNK // 5), "llvm").programs
