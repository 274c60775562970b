"""Objects that the host keeps are the same objects later, as in plain Python."""

import pytest

import dilim

POSITIVE = [1.0, 2.0]
NEGATIVE = [-1.0, -2.0]


def given_on_both_paths(x, log):
    y = x * 2
    if x.sum() > 0:
        log.append(y)
    else:
        log.append(y)
    return y


def given_in_a_loop(x, log):
    y = x * 2
    for i in range(20):
        if i == 3 or i == 7:
            log.append(y)
    return y


def given_in_each_turn(x, log):
    y = x * 2
    for i in range(20):
        log.append(y)
        y2 = y * 1.0
        log.append(y2)
        if i == 5:
            log.append(y2)
    return y


def given_and_written_in_a_loop(x, log):
    y = x * 2
    for i in range(12):
        if i == 3:
            log.append(y)
        y += 1
        if i == 6:
            log.append(y)
    return y


def view_given_and_base_written(x, log):
    y = x * 2
    v = y[0:1]
    if x.sum() > 0:
        log.append(v)
        y += 1
    else:
        y *= 3
        log.append(y)
    y -= 1
    return v, y


def given_in_an_inner_branch(x, log):
    y = x * 2
    if x.sum() > 0:
        if x[0] > 0.5:
            log.append(y)
        y += 1
    log.append(y)
    return y


def given_in_a_branch_then_in_a_loop(x, log):
    y = x * 2
    if x.sum() > 0:
        log.append(y)
    for i in range(12):
        if i == 4:
            log.append(y)
    return y


def given_before_and_after_a_turn(x, log):
    w = x * 1.0
    for _ in range(12):
        log.append(w)
        w = w + 1
        log.append(w)
    return w


def written_in_the_next_turn(x, log):
    w = x * 1
    for _ in range(12):
        w += 1
        w = w * 2
        log.append(w)
    return w


def written_after_the_loop(x, log):
    w = x * 1
    for _ in range(12):
        w = w * 2
        log.append(w)
    w += 1
    return w


def last_of_a_loop(x, log):
    for i in range(12):
        loss = (x * float(i)).sum()
        log.append(loss)
    return loss


PROGRAMS = [
    given_on_both_paths,
    given_in_a_loop,
    given_in_each_turn,
    given_and_written_in_a_loop,
    view_given_and_base_written,
    given_in_an_inner_branch,
    given_in_a_branch_then_in_a_loop,
    given_before_and_after_a_turn,
    written_in_the_next_turn,
    written_after_the_loop,
    last_of_a_loop,
]


def seen(function):
    """For three calls, the numbers of all that was kept or given back, and which are one object."""
    shown = []
    for numbers in (POSITIVE, NEGATIVE, POSITIVE):
        log = []
        result = function(dilim.tensor(numbers), log)
        objects = [*log, *(result if isinstance(result, tuple) else (result,))]
        first = [next(k for k, y in enumerate(objects) if y is x) for x in objects]
        shown.append((first, [x.tolist() for x in objects]))
    return shown


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("function", PROGRAMS)
def test_objects_are_those_of_the_plain_function(function, backend):
    compiled = dilim.compile(function, compile_after=0, backend=backend)
    assert seen(compiled) == seen(function)
    assert compiled.statistics.native_calls == 3


def turned_round(x, log):
    for _ in range(12):
        x = x[::-1]
    x += 1
    return x


def the_same_shape(x, log):
    for _ in range(12):
        x = x.reshape((2,))
    x += 1
    log.append(x)
    return x


def text_by_letters(x, log, letter=0):
    for letter in "ab":
        if letter == "b":
            letter = letter * 2
        log.append(x * len(letter))
    return x


@pytest.mark.parametrize("function", [turned_round, the_same_shape, text_by_letters])
def test_views_that_a_loop_carries_are_views(function):
    def run(f):
        x, log = dilim.tensor(POSITIVE), []
        result = f(x, log)
        return x.tolist(), result.tolist(), [y.tolist() for y in log]

    assert run(dilim.compile(function, compile_after=0, backend="reference")) == run(function)


def test_a_loop_whose_else_goes_on_with_the_loop_around_it():
    def f(n):
        for i in range(n):
            for j in range(n):
                if i * j == 6:
                    break
            else:
                continue
            break
        return i, j

    assert dilim.compile(f)(5) == dilim.compile(f, compile_after=0)(5) == f(5) == (2, 3)
