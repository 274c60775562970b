"""Loops that never end run until somebody interrupts them."""

import signal

import pytest

import dilim


class Stopped(BaseException):
    pass


@pytest.fixture(autouse=True)
def alarm():
    def stop(*_):
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    dilim.compile(lambda x: x * 2.0, compile_after=0)(dilim.ones(2))  # imports
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


def same_numbers(x):
    while x.sum() < 1e30:
        x = x * 1.0
    return x


def no_condition(x):
    while True:
        x = x * 1.0


def in_a_branch(x):
    for _ in range(12):
        if x.sum() > 0:
            while x.sum() < 1e30:
                x = x * 1.0
    return x


def nobody_looks(x):
    y = x * 2.0
    while y.sum() < 1e30:
        y = y * 0.5
    return x


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer signals")
@pytest.mark.parametrize("after", [0, None])
@pytest.mark.parametrize("f", [same_numbers, no_condition, in_a_branch, nobody_looks])
def test_endless(f, after):
    compiled = dilim.compile(f, compile_after=after)
    signal.setitimer(signal.ITIMER_REAL, 1.5)
    with pytest.raises(Stopped):
        compiled(dilim.tensor([1.0, 2.0]))
    assert compiled.statistics.native_calls or after is None
