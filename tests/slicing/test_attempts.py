"""How often slicing has to begin again."""

import pytest

from dilim.slicing.region import Region
from dilim.slicing.turns import Turns
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


@pytest.fixture
def turns(monkeypatch):
    """One entry for each time that the body of a loop of the graph is interpreted."""
    made = []
    plain = Turns._attempt

    def counted(self, *arguments):
        made.append(self)
        return plain(self, *arguments)

    monkeypatch.setattr(Turns, "_attempt", counted)
    return made


def test_what_a_loop_carries_on_some_paths_is_found_with_what_it_carries(turns):
    text = """
class Kept:
    def __init__(self):
        self.best, self.last, self.count = dilim.zeros(2), dilim.zeros(2), 0

def f(kept, x, n):
    for _ in range(n):
        x = x * 0.5
        if kept.count % 3 == 0:
            kept.best = x * 2.0
        if kept.count % 2 == 0:
            kept.last = x * 3.0
        kept.count += 1
    return kept.best + kept.last, kept.best is kept.last
"""
    calls = [Call("[Kept(), dilim.ones(2), 20]")]
    check(text, *calls)
    assert len(turns) == 2


def test_defaults_of_dilim_do_not_make_slicing_begin_again(attempts):
    text = """
from dilim.rl import CartPole

def f(generator, n):
    env, total = WORLD, dilim.tensor(0.0)
    for _ in range(n):
        total = total + env.initial(generator).sum()
    return total

WORLD = CartPole()
"""
    check(text, Call("[dilim.Generator(1), 20]"), Call("[dilim.Generator(1), 21]"))
    assert len(attempts) == len(set(map(id, attempts)))
