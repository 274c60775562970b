"""Errors in the slicer itself are seen as such; those of the user's operations are not taken so."""

import pytest

import dilim
from dilim.slicing import operations, sliced
from dilim.slicing.errors import OnHost, Restart, Unsliceable, attempted


def broken(*_):
    raise NameError("name 'attemptde' is not defined")


def doubled(x):
    return x * 2.0


@pytest.mark.parametrize("part", ["prepare", "binary"])
def test_a_fault_is_reported_and_the_function_runs_as_plain(monkeypatch, part):
    monkeypatch.setattr(operations, part, broken)
    f = dilim.compile(doubled, compile_after=0)
    assert f(dilim.ones(2)).tolist() == [2.0, 2.0]
    [(reason, *_)] = f.statistics.fallbacks
    assert reason == "a fault in dilim: NameError: name 'attemptde' is not defined"


def test_a_fault_is_raised_where_faults_are_looked_for(monkeypatch):
    monkeypatch.setattr(sliced, "DEBUG", True)
    monkeypatch.setattr(operations, "binary", broken)
    with pytest.raises(NameError):
        dilim.compile(doubled, compile_after=0)(dilim.ones(2))


def test_what_the_user_does_wrong_is_left_to_the_host():
    with pytest.raises(OnHost, match="ZeroDivisionError: division by zero"):
        attempted(lambda: 1 / 0)
    for signal in (OnHost("why"), Unsliceable("why"), Restart("what"), RecursionError()):

        def give_up(signal=signal):
            raise signal

        with pytest.raises(type(signal)) as found:
            attempted(give_up)
        assert found.value is signal


def test_a_leaf_forgets_its_gradient_in_the_program():
    w = dilim.tensor([1.0, 2.0], requires_grad=True)

    @dilim.compile(compile_after=0)
    def f(x):
        w.zero_grad()
        (w * x).sum().backward()
        return w.grad * 2.0

    for k in (1.0, 2.0, 3.0):
        assert f(dilim.full((2,), k)).tolist() == [2 * k, 2 * k]
    [region] = f.programs
    assert not region.notes.on_host
