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


def test_what_leaves_a_program_is_compiled_only_when_it_has_to():
    text = """
NOTES = [1.0]

def f(x, spoil):
    x = x * NOTES[0]
    print(x.sum(), end="") if not spoil else NOTES.__setitem__(0, 2.0)
    return x + NOTES[0]
"""
    calls = [Call("[dilim.ones(2), False]")] * 3
    [region] = check(text, *calls, may_leave=True).compiled.programs
    assert list(region.sources) == [False]


def test_what_was_learned_with_fewer_types_known_is_found_out_at_once(attempts):
    text = """
import json

NOTES, MORE = [1.0], [2.0]

def spoil(notes):
    notes.append(math.floor(3.5))

def f(x):
    x = x * NOTES[0]
    x = x * math.floor(2.5)
    spoil(NOTES)
    x = x * MORE[0]
    x = x + json.loads("1.5")
    spoil(MORE)
    return x * math.floor(1.5)
"""
    check(text, *[Call("[dilim.ones(2)]")] * 4, may_leave=True)
    attempts_of = [attempts.count(region) for region in dict.fromkeys(attempts)]
    assert len(attempts_of) > 1
    assert attempts_of[0] == 3
    assert all(count <= 2 for count in attempts_of[1:])
