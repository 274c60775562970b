"""Random programs: sliced, they do what they do as they stand."""

from slicing.fuzz.compilers import COMPILERS
from slicing.fuzz.workers import tally_of


def test_sliced_programs_do_what_plain_ones_do():
    tally = tally_of(range(20000, 20050), COMPILERS["reference"])
    assert tally.share >= 0.9
