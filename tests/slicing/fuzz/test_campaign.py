"""Programs that a campaign of 53,000 has found to differ: all are mended."""

import pytest

from slicing.fuzz.compilers import COMPILERS
from slicing.fuzz.workers import tally_of

REFERENCE = (
    *(604406, 605237, 605501, 607287, 609442, 609690, 612481, 612750, 615811, 615991),
    *(616123, 616782, 619616, 623606, 625841, 626082, 629534, 629709, 629759, 632368),
    *(632383, 633267, 634562, 635182, 636037, 640603, 644188, 645141, 646626, 647417),
    *(647428, 649534),
)
NATIVE = (*(700000, 700363, 700635, 701417, 701453, 701685),)
CASES = [
    *(pytest.param(seed, "reference", id=str(seed)) for seed in REFERENCE),
    *(pytest.param(seed, "llvm", id=str(seed)) for seed in NATIVE),
]


@pytest.mark.parametrize(("seed", "backend"), CASES)
def test_what_differed_once_does_not(seed, backend):
    assert tally_of([seed], COMPILERS[backend]).programs == 1
