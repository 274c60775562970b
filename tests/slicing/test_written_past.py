"""Memory that is written past the tape: a gradient that needs it is refused as in plain Python."""

import pytest

import dilim

pytestmark = pytest.mark.filterwarnings("ignore::dilim.errors.PerformanceWarning")


def added_to(w, u, n):
    h = w * u
    with dilim.no_grad():
        h[0] = 1.5
    return h + h


def given_as_it_is(w, u, n):
    h = w * u
    h.detach()[0] = 3.0
    return h


def pulled_back(w, u, n):
    h = w * u
    with dilim.no_grad():
        h *= 0.5
    loss = (h * u).sum()
    loss.backward()
    return loss


def printed(w, u, n):
    h = w * u
    with dilim.no_grad():
        h[0] = 1.5
    print((h + h).sum())


def used_up_before(w, u, n):
    h = w * u
    h.sum().backward()
    with dilim.no_grad():
        h.add_(1)
    return (h * 2).sum()


def written_at_a_position(w, u, n):
    h = w * u
    v = h[int(u[0].item())]
    with dilim.no_grad():
        v.add_(1)
    return h * 2


def view_at_a_position(w, u, n):
    h = w * u
    v = h[int(u[0].item())]
    with dilim.no_grad():
        h.add_(1)
    return v * 2


def view_without_gradient(w, u, n):
    h = u * 2
    v = h[1:]
    h += w
    return v * w


def on_one_path(w, u, n):
    h = w * u
    if u.sum() > n:
        with dilim.no_grad():
            h[0] = 1.5
    return h


def used_on_one_path(w, u, n):
    h = w * u
    if u.sum() > n:
        with dilim.no_grad():
            h[0] = 1.5
        h = h * 2
    else:
        h = h * 3
    return h


def recorded_on_one_path(w, u, n):
    h = w * u
    if u.sum() > n:
        h += u
    return (h * h).sum()


def in_each_turn(w, u, n):
    h = w * u
    for _ in range(n):
        h = w * u
        with dilim.no_grad():
            h.add_(1)
    return h


def at_the_end_of_a_turn(w, u, n):
    h = w * u
    v = h
    for _ in range(n):
        h = h - u
        with dilim.no_grad():
            v.add_(1)
    return h


def before_a_view(w, u, n):
    h = w * u
    for _ in range(n):
        v = h[1:]
        with dilim.no_grad():
            h[0] = 1.5
    return v * 1


def from_before_the_loop(w, u, n):
    h = w * u
    for _ in range(n):
        with dilim.no_grad():
            h.add_(1)
    return h


def what_a_turn_has_made(w, u, n):
    h = w * u
    v = h
    for _ in range(n):
        h.detach()[0] = 3.0
        h = h * 2
    return v


def through_a_branch(w, u, n):
    h = w * 1
    if u.sum() > n:
        h = h * u
    u[0] = 9.0
    loss = h.sum()
    loss.backward()
    return loss


def through_turns(w, u, n):
    h = w
    for i in range(n):
        u[0] = i * 1.0
        h = h * u
    loss = h.sum()
    loss.backward()
    return loss


def read_by_a_loop_that_checks(w, u, n):
    h = dilim.tanh(w * u)
    with dilim.no_grad():
        h[::2] *= 2
    k = 0
    while True:
        k += 1
        if k > n or float(h.sum()) > 0.5:
            break
    return k


PROGRAMS = (
    added_to, given_as_it_is, pulled_back, printed, used_up_before, written_at_a_position,
    view_at_a_position, view_without_gradient, on_one_path, used_on_one_path,
    recorded_on_one_path, in_each_turn, at_the_end_of_a_turn, before_a_view,
    from_before_the_loop, what_a_turn_has_made, through_a_branch, through_turns,
    read_by_a_loop_that_checks,
)  # fmt: skip


def seen(function, n):
    """What three calls do, each with a backward pass after it."""
    w, u = dilim.tensor([1.0, 2.0], requires_grad=True), dilim.tensor([1.0, 3.0])
    found = []
    for _ in range(3):
        try:
            result = function(w, u, n)
            found.append(repr(result))
            result.sum().backward()
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
        found += [repr(w.grad), repr(u)]
    return found


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_plain(program, n):
    compiled = dilim.compile(program, backend="reference", compile_after=0)
    assert seen(compiled, n) == seen(program, n)


@pytest.mark.parametrize("program", [added_to, given_as_it_is, used_up_before, pulled_back])
def test_a_write_that_is_certain_is_sliced(program):
    compiled = dilim.compile(program, backend="reference", compile_after=0)
    seen(compiled, 1)
    assert not compiled.statistics.fallbacks
