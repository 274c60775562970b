"""Tensors that host code hands over are on the tape as they are; written later, they are lost."""

import pytest

import dilim
from dilim.errors import GradientError


class World:
    """Gives observations that it keeps, and may write again."""

    def __init__(self):
        self.seen = []

    def see(self, n):
        """A new tensor."""
        eval("self.seen.append(dilim.tensor([1.0 + n, 3.0]))", {}, {"self": self, "n": n, **space})
        return self.seen[-1]

    def write(self, k):
        """Write into what it has given."""
        eval("self.seen[k].mul_(2.0)", {}, {"self": self, "k": k})


space = {"dilim": dilim}


def once(w, world, keep, n):
    x = world.see(n)
    keep.append((w * x).sum())
    return (w * x * x).sum()


def in_each_turn(w, world, keep, n):
    for i in range(n):
        x = world.see(i)
        keep.append((w * x).sum())


def given_back(w, world, keep, n):
    x = world.see(n)
    y = w.detach() * x
    keep.append(x)
    return y, x


def written_meanwhile(w, world, keep, n):
    x = world.see(n)
    loss = (w * x).sum()
    if n > 1:
        world.write(-1)
    keep.append(loss)


def through_a_branch(w, world, keep, n):
    x = world.see(n)
    h = w * 2
    if w.sum() > n:
        h = h * x
    keep.append(h.sum())


PROGRAMS = (once, in_each_turn, given_back, written_meanwhile, through_a_branch)


def seen(function, n, is_written):
    """What calls do, with backward passes after each; before them the world may write."""
    found = []
    for _ in range(4):
        w, world, keep = dilim.tensor([1.0, 2.0], requires_grad=True), World(), []
        result = function(w, world, keep, n)
        if is_written:
            world.write(0)
        given = [*keep, *(result if isinstance(result, tuple) else [result])]
        for x in given:
            found += [repr(x), [x is each for each in (*given, *world.seen)]]
            try:
                if isinstance(x, dilim.Tensor) and x.requires_grad:
                    x.backward()
            except GradientError as error:
                found.append(str(error))
        found.append(repr(w.grad))
    return found


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_plain(program, n, is_written):
    compiled = dilim.compile(program, backend="reference", compile_after=0)
    assert seen(compiled, n, is_written) == seen(program, n, is_written)
