"""`Generator`: streams, states, and what is drawn from them."""

import copy
import math

import numpy as np
import pytest

import dilim
from dilim.errors import NonFiniteError, ShapeError
from dilim.ops import philox

DRAWS = {
    "uniform": lambda g: g.uniform((2, 3)),
    "uniform float64": lambda g: g.uniform(5, dtype="float64"),
    "normal": lambda g: g.normal(7),
    "integers": lambda g: g.integers(-3, 9, (4,)),
    "permutation": lambda g: g.permutation(6),
    "choice": lambda g: g.choice(dilim.tensor([1.0, 5.0, 9.0]), 4),
    "categorical": lambda g: g.categorical(dilim.zeros((5, 3))),
}
every_draw = pytest.mark.parametrize("draw", DRAWS.values(), ids=list(DRAWS))


@every_draw
def test_the_state_is_all_there_is(draw):
    generator = dilim.Generator(11)
    draw(generator)
    state = generator.state
    first = draw(generator).tolist()
    assert draw(generator).tolist() != first or len(set(first)) == 1
    generator.state = state
    assert draw(generator).tolist() == first
    other = dilim.Generator(0)
    other.state = state.numpy()
    assert draw(other).tolist() == first


@every_draw
def test_copies_go_their_own_way(draw):
    generator = dilim.Generator(5)
    twin = copy.deepcopy(generator)
    assert draw(generator).tolist() == draw(twin).tolist()
    draw(generator)
    assert (generator.state != twin.state).any()


def test_draws_are_the_published_streams():
    state = philox.seed_state(42)
    generator = dilim.Generator(42)
    np.testing.assert_array_equal(generator.uniform((3,)).numpy(), philox.uniform(state, 3))
    state = philox.advance(state, philox.draw_words("uniform", 3))
    np.testing.assert_array_equal(generator.normal(4).numpy(), philox.normal(state, 4))
    state = philox.advance(state, philox.draw_words("normal", 4))
    np.testing.assert_array_equal(
        generator.integers(0, 10, 5).numpy(), philox.integers(state, 5, 0, 10)
    )


def test_limits_and_moments():
    generator = dilim.Generator(1)
    numbers = generator.uniform(20_000, -2.0, 6.0)
    assert -2.0 <= numbers.min().item() < -1.99
    assert 5.99 < numbers.max().item() < 6.0
    normal = generator.normal(20_000, mean=3.0, std=0.5, dtype="float64")
    assert normal.mean().item() == pytest.approx(3.0, abs=0.02)
    assert normal.std().item() == pytest.approx(0.5, abs=0.01)
    assert sorted(set(generator.integers(2, 5, 200).tolist())) == [2, 3, 4]
    assert generator.uniform(()).shape == ()
    assert generator.normal(0).tolist() == []


def test_split_gives_other_streams_and_moves_on():
    parent = dilim.Generator(9)
    before = parent.state
    children = parent.split(3)
    draws = [g.uniform(4).tolist() for g in (parent, *children)]
    assert len({tuple(x) for x in draws}) == 4
    again = dilim.Generator(0)
    again.state = before
    assert [g.uniform(4).tolist() for g in again.split(3)] == draws[1:]


def test_choice_with_and_without_replacement():
    generator = dilim.Generator(2)
    assert sorted(generator.choice(5, 5, replace=False).tolist()) == [0, 1, 2, 3, 4]
    assert generator.choice([7, 8], (2, 2)).shape == (2, 2)
    with pytest.raises(ShapeError, match="at least 6 options without replacement, received 5"):
        generator.choice(5, 6, replace=False)
    with pytest.raises(ShapeError, match="at least 1 options, received 0"):
        generator.choice(0, 1)


# --- categories -----------------------------------------------------------------------------


def test_categories_come_as_often_as_their_probability():
    logits = dilim.log(dilim.tensor([0.1, 0.0, 0.6, 0.3]))
    draws = dilim.Generator(3).categorical(dilim.broadcast_to(logits, (20_000, 4))).numpy()
    shares = np.bincount(draws, minlength=4) / len(draws)
    np.testing.assert_allclose(shares, [0.1, 0.0, 0.6, 0.3], atol=0.015)
    assert shares[1] == 0.0


def test_categories_along_another_axis_and_of_huge_logits():
    logits = dilim.tensor([[1000.0, -1000.0, 0.0], [0.0, 1000.0, 1000.0]])
    assert dilim.Generator(0).categorical(logits, axis=0).tolist() == [0, 1, 1]
    assert dilim.sample_categorical(dilim.tensor([-math.inf, 5.0])).item() == 1


@pytest.mark.parametrize("count", range(1, 40))
def test_a_category_that_cannot_be_is_not_drawn_at_the_very_edge(count, monkeypatch):
    possible = dilim.Generator(count).normal(count)
    logits = dilim.concat([possible, dilim.full(2, -math.inf)])
    largest = lambda state, shape, dtype: np.full(shape, 1 - 2.0**-24, dtype)  # noqa: E731
    monkeypatch.setattr(philox, "uniform", largest)
    assert dilim.Generator(0).categorical(logits).item() < count


def test_categories_are_what_their_definition_says():
    generator, twin = dilim.Generator(8), dilim.Generator(8)
    for dtype in ("float32", "float64"):
        logits = dilim.Generator(1).normal((3, 7, 4), dtype=dtype)
        drawn = generator.categorical(logits, axis=1)
        totals = np.cumsum(dilim.exp(logits - logits.max(axis=1, keepdims=True)).numpy(), axis=1)
        limits = twin.uniform((3, 1, 4), dtype=dtype).numpy() * totals[:, -1:]
        np.testing.assert_array_equal(drawn.numpy(), (totals <= limits).sum(axis=1))
        assert (generator.state == twin.state).all()


def test_impossible_rows_are_named():
    for bad in ([[0.0, 1.0], [0.0, math.nan]], [[0.0, 0.0], [-math.inf, -math.inf]]):
        with pytest.raises(NonFiniteError, match="in row 1"):
            dilim.Generator(0).categorical(dilim.tensor(bad))


# --- the default ----------------------------------------------------------------------------


def test_the_default_generator_is_seeded_and_can_be_begun_anew():
    dilim.seed(4)
    first = dilim.sample_categorical(dilim.zeros((6, 5))).tolist()
    assert dilim.seed(4) is dilim.default_generator()
    assert dilim.sample_categorical(dilim.zeros((6, 5))).tolist() == first
    assert dilim.sample_categorical(dilim.zeros((6, 5)), dilim.Generator(4)).tolist() == first
    dilim.seed(0)
