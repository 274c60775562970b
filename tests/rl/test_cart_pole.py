"""CartPole against Gymnasium's, number by number."""

import math

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dilim
from dilim.errors import EnvironmentContractError
from dilim.rl import CartPole
from dilim.rl.envs.cart_pole import LIMIT_ANGLE_RAD, LIMIT_POSITION

RULES = CartPole()
NUMBERS = st.floats(width=32, allow_nan=False, allow_infinity=False)
NEAR = st.floats(-3.0, 3.0, width=32)


def after(state, action):
    """The next state and whether it is terminal, by our rules."""
    following = RULES.transition(
        dilim.tensor(np.asarray(state, np.float32)), dilim.tensor(action), dilim.Generator(0)
    )
    return following.numpy(), bool(RULES.terminal(following))


def gymnasium_after(state, action):
    """The same by Gymnasium's, and how far the state is from a limit."""
    env = gymnasium.make("CartPole-v1").unwrapped
    env.reset(seed=0)
    env.state = np.asarray(state, np.float64)
    observation, _, terminated, _, _ = env.step(action)
    x, _, angle, _ = env.state
    room = min(abs(abs(x) - LIMIT_POSITION), abs(abs(angle) - LIMIT_ANGLE_RAD))
    return observation, terminated, room


@settings(max_examples=150, deadline=None)
@given(state=st.tuples(*[NUMBERS | NEAR] * 4), action=st.integers(0, 1))
def test_one_step_equals_gymnasium_from_any_state(state, action):
    with np.errstate(over="ignore", invalid="ignore"):
        expected, ends, room = gymnasium_after(state, action)
        received, ended = after(state, action)
        apart = np.abs(received.astype(np.float64) - expected.astype(np.float64))
        allowed = np.maximum(2 * np.spacing(np.abs(expected)).astype(np.float64), 1e-6)
    same = (received == expected) | (np.isnan(received) & np.isnan(expected))
    assert (same | (apart <= allowed)).all(), (expected, received)
    if room > 1e-6:
        assert ended == ends


def test_the_published_step():
    state = (0.01, 0.02, 0.03, 0.04)
    right, _ = after(state, 1)
    left, _ = after(state, 0)
    np.testing.assert_allclose(
        right, (0.0104, 0.2146791957, 0.0308, -0.2430687180), rtol=2e-7, atol=1e-9
    )
    np.testing.assert_allclose(
        left, (0.0104, -0.1755390171, 0.0308, 0.3419952238), rtol=2e-7, atol=1e-9
    )


def start_at(env, state):
    env.reset(seed=0)
    arrays = env.get_state()
    arrays["state.value"] = np.asarray(state, np.float32)
    env.set_state(arrays)


@pytest.mark.parametrize(("reward_on_fail", "last"), [(1.0, 1.0), (0.0, 0.0)])
def test_alternating_pushes_from_rest_fail_at_step_33(reward_on_fail, last):
    env = CartPole(reward_on_fail=reward_on_fail)
    start_at(env, np.zeros(4))
    for step in range(33):
        observation, reward, terminated, truncated, _ = env.step(step % 2)
        assert terminated == (step == 32)
        assert reward == (last if terminated else 1.0)
    assert not truncated
    assert abs(observation[2]) > LIMIT_ANGLE_RAD or abs(observation[0]) > LIMIT_POSITION
    with pytest.raises(EnvironmentContractError, match="the episode has ended; call reset"):
        env.step(0)


def balance(env, steps):
    """How many steps a good controller makes until the episode ends."""
    observation, _ = env.reset(seed=0)
    for step in range(1, steps + 1):
        x, velocity, angle, turning = observation
        force = 0.1 * x + 0.2 * velocity + 2.0 * angle + 0.5 * turning
        observation, _, terminated, truncated, _ = env.step(int(force > 0))
        assert not terminated
        if truncated:
            return step
    return None


def test_the_time_limit_is_truncation():
    assert balance(CartPole(), 600) == 500
    assert balance(CartPole(max_steps=10_000), 600) is None
    assert balance(CartPole(max_steps=None), 600) is None
    assert balance(CartPole(max_steps=20), 600) == 20
    assert balance(gymnasium.make("dilim/CartPole-v1"), 600) == 500
    longer = gymnasium.make("dilim/CartPole-v1", max_episode_steps=550)
    assert balance(longer, 600) == 550


def test_failing_at_the_limit_is_termination_only():
    env = CartPole(max_steps=33)
    start_at(env, np.zeros(4))
    for step in range(33):
        _, _, terminated, truncated, _ = env.step(step % 2)
    assert (terminated, truncated) == (True, False)


def test_starts_lie_in_the_range():
    env = CartPole()
    starts = env.initial(dilim.Generator(0), (2000,)).numpy()
    assert starts.dtype == np.float32
    assert -0.05 <= starts.min() < -0.0495
    assert 0.0495 < starts.max() < 0.05
    assert abs(starts.mean()) < 0.002
    env.reset(seed=0, options={"low": 0.1, "high": 0.11})
    assert (env.state.numpy() >= 0.1).all()
    assert (env.state.numpy() < 0.11).all()


def test_spaces_are_those_of_gymnasium_where_they_are_finite():
    theirs = gymnasium.make("CartPole-v1").observation_space
    ours = CartPole().observation_space
    finite = np.isfinite(theirs.high)
    assert (ours.high[finite] == theirs.high[finite]).all()
    assert ours.dtype == theirs.dtype
    assert CartPole().action_space == gymnasium.make("CartPole-v1").action_space


def test_the_step_counter_begins_at_zero_again():
    env = CartPole(max_steps=3)
    for _ in range(3):
        env.reset()
        assert env.steps == 0
        assert [env.step(0)[3] for _ in range(3)] == [False, False, True]


def test_observations_are_copies():
    env = CartPole()
    first, _ = env.reset(seed=0)
    kept = first.copy()
    first[:] = 9.0
    second, *_ = env.step(0)
    assert (second != first).all()
    env.reset(seed=0)
    assert (env.step(0)[0] == second).all()
    assert (kept != second).any()


def test_the_text_shows_cart_and_lean():
    env = CartPole(render_mode="ansi")
    start_at(env, (0.0, 0.0, 0.15, 0.0))
    lines = env.render().splitlines()
    assert lines[-1].index("[o_o]") == 28
    assert "/" in lines[0]
    assert lines[0].index("/") > lines[-2].index("/")
    start_at(env, (2.4, 0.0, -0.15, 0.0))
    lines = env.render().splitlines()
    assert lines[-1].endswith("[o_o]")
    assert "\\" in lines[0]


def test_the_frame_shows_the_cart_where_it_is():
    env = CartPole(render_mode="rgb_array")

    def columns_of_cart(position):
        start_at(env, (position, 0.0, 0.0, 0.0))
        frame = env.render()
        assert frame.shape == (400, 600, 3)
        return np.flatnonzero((frame[310] == (31, 78, 121)).all(axis=1)).mean()

    assert columns_of_cart(0.0) == pytest.approx(299.5, abs=1.0)
    assert columns_of_cart(1.0) == pytest.approx(399.5, abs=1.0)
    assert math.isclose(columns_of_cart(-1.0), 199.5, abs_tol=1.0)
