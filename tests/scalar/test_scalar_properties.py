"""Random expressions agree with plain floats and central differences."""

import math

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scalar_checkers import ON_VALUES, check_program, run

from dilim.scalar import Value, compare_gradients, evaluate

points = st.lists(st.floats(-2.0, 2.0), min_size=2, max_size=3)
index = st.integers(0, 11)
programs = st.lists(
    st.tuples(st.sampled_from(sorted(ON_VALUES)), index, index), min_size=1, max_size=9
)
quiet = settings(
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=200,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


@quiet
@given(programs, points)
def check_random_programs(program, point):
    assume(check_program(program, point))


def test_random_programs_agree_with_central_differences():
    check_random_programs()


@quiet
@given(programs, points)
def test_second_backward_doubles_leaves_and_steps_equal_backward(program, point):
    leaves = [Value(number) for number in point]
    result = run(program, leaves, ON_VALUES)[-1]
    assume(math.isfinite(result.data))
    result.backward()
    once = [leaf.grad for leaf in leaves]
    assume(all(math.isfinite(grad) for grad in once))
    result.backward()
    if result.inputs:
        twice = [leaf.grad for leaf in leaves]
        assert twice == pytest.approx([grad + grad for grad in once], rel=1e-12, abs=1e-12)
    result.zero_grad()
    for leaf in leaves:
        leaf.zero_grad()
    for _ in result.backward_steps():
        pass
    assert [leaf.grad for leaf in leaves] == once


names = st.sampled_from("xyz")
texts = st.recursive(
    names | st.floats(0.5, 3.0).map(lambda number: f"{number:.3f}"),
    lambda part: st.one_of(
        st.builds("({} + {})".format, part, part),
        st.builds("({} - {})".format, part, part),
        st.builds("{} * {}".format, part, part),
        st.builds("(-{})".format, part),
        st.builds("tanh({})".format, part),
        st.builds("sin({})".format, part),
        st.builds("({}) / (2 + ({}) ** 2)".format, part, part),
    ),
    max_leaves=12,
)


@quiet
@given(texts, st.lists(st.floats(-2.0, 2.0), min_size=3, max_size=3))
def test_text_means_what_it_means_in_python(text, numbers):
    values = dict(zip("xyz", numbers, strict=True))
    functions = {"tanh": math.tanh, "sin": math.sin}
    assert evaluate(text, **values)["data"] == eval(text, functions, values)
    assert all(item.agrees for item in compare_gradients(text, **values))
