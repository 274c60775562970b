"""How often slicing has to begin again."""

import pytest

from dilim.slicing.region import Region
from slicing.comparing import Call, check


@pytest.fixture
def attempts(monkeypatch):
    """One entry for each attempt."""
    made = []
    plain = Region._slice

    def counted(self, *arguments):
        made.append(self)
        return plain(self, *arguments)

    monkeypatch.setattr(Region, "_slice", counted)
    return made


def test_a_list_that_is_written_down_for_host_code_does_not_make_slicing_begin_again(attempts):
    text = """
def f(x):
    x = x * max([x.sum(), 2.0])
    print(np.array([1.0, x.sum().item()]).max())
    return x + sum([x, x])
"""
    check(text, *[Call("[dilim.ones(2)]")] * 4, may_leave=True)
    regions = set(map(id, attempts))
    assert len(attempts) == len(regions)
