"""Host code has got a part of the tape of a branch or loop: it is used up for both, or for none."""

import pytest

import dilim
from dilim.errors import GradientError


def kept_and_carried(w, u, keep, n):
    h = w * 1
    for _ in range(n):
        h = h * 2
        keep.append(h)
        h = h * u
    return h


def kept_and_made_anew(w, u, keep, n):
    h = w
    for _ in range(n):
        h = w * 2
        keep.append(h)
        h = dilim.where(w > 0, h, w)
    if w.sum() > 4.0:
        h = w / w
    return h


def kept_and_pulled_back(w, u, keep, n):
    total = dilim.zeros(())
    for _ in range(n):
        loss = (w * u).sum()
        keep.append(loss)
        total = total + loss
    total.backward()


def kept_in_a_branch(w, u, keep, n):
    h = w * u
    if w.sum() > n:
        h = h * 2
        keep.append(h)
        h = h * u
    return h


def pulled_back_through_a_branch(w, u, keep, n):
    h = w * u
    if w.sum() > n:
        h = h * 2
        keep.append(h)
        h = h * u
    h.sum().backward()


def kept_alone(w, u, keep, n):
    h = w * 1
    for _ in range(n):
        keep.append((w * u).sum())
        h = h * u
    return h


def used_up_in_each_turn(w, u, keep, n):
    h = w * u
    loss = h.sum()
    for _ in range(n):
        loss = (w * w).sum()
        keep.append((loss, h)[0])
        loss.backward()
    print(loss)
    return loss


PROGRAMS = (
    kept_and_carried, kept_and_made_anew, kept_and_pulled_back, kept_in_a_branch,
    pulled_back_through_a_branch, kept_alone,
    used_up_in_each_turn,
)  # fmt: skip


def seen(function, n):
    """What calls do, with backward passes from all that they have given after each."""
    w, u = dilim.tensor([1.0, 2.0], requires_grad=True), dilim.tensor([1.0, 3.0])
    found = []
    for _ in range(3):
        keep = []
        try:
            result = function(w, u, keep, n)
        except Exception as error:
            found.append(repr(error))
            result = None
        for x in (*keep, result):
            try:
                if x is not None:
                    x.sum().backward()
                    found.append(repr(x))
            except GradientError as error:
                found.append(str(error))
        found.append(repr(w.grad))
    return found


@pytest.mark.parametrize("n", [0, 1, 2, 4])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_plain(program, n):
    compiled = dilim.compile(program, backend="reference", compile_after=0)
    assert seen(compiled, n) == seen(program, n)


def test_what_is_not_shared_is_sliced():
    compiled = dilim.compile(kept_alone, backend="reference", compile_after=0)
    seen(compiled, 3)
    assert not compiled.statistics.fallbacks
