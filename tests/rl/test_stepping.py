"""Single environments whose rules have been compiled: nobody can tell."""

import copy

import numpy as np
import pytest
from gymnasium import spaces
from rl_worlds import random_action, short_environment

import dilim
from dilim.errors import EnvironmentContractError
from dilim.rl import ENVIRONMENTS, CartPole, Pendulum
from dilim.rl.envs import base

NAMES = sorted(ENVIRONMENTS)


@pytest.fixture
def at_once(monkeypatch):
    """Programs are made after three steps and tried for two."""
    monkeypatch.setattr(base, "PROGRAM_AFTER", 3)
    monkeypatch.setattr(base, "_TRIALS", 2)


def play(env, steps, numbers, seed=None):
    shown = []
    if seed is not None:
        shown.append(env.reset(seed=seed)[0].tobytes())
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(random_action(env, numbers))
        kinds = type(reward), type(terminated), type(truncated)
        assert kinds == (float, bool, bool)
        shown.append((observation.tobytes(), reward, terminated, truncated))
        if terminated or truncated:
            shown.append(env.reset()[0].tobytes())
    return shown


@pytest.mark.parametrize("name", NAMES)
def test_the_program_gives_the_same_bits(name, monkeypatch):
    plain = play(short_environment(name, 15), 60, np.random.default_rng(0), seed=3)
    monkeypatch.setattr(base, "PROGRAM_AFTER", 3)
    monkeypatch.setattr(base, "_TRIALS", 2)
    env = short_environment(name, 15)
    assert play(env, 60, np.random.default_rng(0), seed=3) == plain
    assert env._program is not None
    # the state given and taken, and copies
    others = [short_environment(name, 15), copy.deepcopy(env)]
    others[0].set_state(env.get_state())
    back = env.get_state()
    shown = play(env, 30, np.random.default_rng(1))
    assert env._program is not None
    for other in others:
        assert play(other, 30, np.random.default_rng(1)) == shown
    env.set_state(back)
    assert env._program is not None
    assert play(env, 30, np.random.default_rng(1)) == shown
    assert play(env, 60, np.random.default_rng(0), seed=3) == plain


@pytest.mark.usefixtures("at_once")
def test_what_was_shown_does_not_change():
    env = CartPole()
    play(env, 10, np.random.default_rng(0), seed=0)
    env.reset(seed=1)
    observation, *_ = env.step(1)
    state, kept = env.state, observation.copy()
    before = state.tolist()
    env.step(1)
    assert (observation == kept).all()
    assert state.tolist() == before
    assert env.state.tolist() != before


@pytest.mark.usefixtures("at_once")
def test_attributes_set_later_are_followed():
    env = Pendulum(gravity=10.0)
    play(env, 10, np.random.default_rng(0), seed=0)
    assert env._program is not None
    env.gravity = 3.0
    assert env._program is None
    other = Pendulum(gravity=3.0)
    assert play(env, 10, np.random.default_rng(0), seed=5) == play(
        other, 10, np.random.default_rng(0), seed=5
    )
    env = CartPole()
    play(env, 10, np.random.default_rng(0), seed=0)
    env._limits[0] = 0.0001  # in place
    env.reset(seed=0)
    assert env.step(1)[2]
    env.max_steps = 2
    env._limits[0] = 2.4
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(2)] == [False, True]


@pytest.mark.usefixtures("at_once")
def test_a_smaller_set_of_actions_is_followed_at_once():
    env = CartPole()
    play(env, 10, np.random.default_rng(0), seed=0)
    env.reset()
    env.step(1)
    env.action_space = spaces.Discrete(1)
    with pytest.raises(EnvironmentContractError, match=r"action in Discrete\(1\), received 1"):
        env.step(1)


class Impure(CartPole):
    """Does what rules must not do."""

    def reward(self, state, action, next_state):
        return super().reward(state, action, next_state) * float(np.random.default_rng().random())


class WithNumbers(CartPole):
    """Works, but not as a graph."""

    def terminal(self, state):
        return dilim.tensor(abs(float(state[0])) > 2.4)


@pytest.mark.usefixtures("at_once")
def test_rules_that_no_program_can_have_stay_as_they_are():
    env = Impure()
    play(env, 20, np.random.default_rng(0), seed=0)
    assert env._program is None
    env.reset()
    rewards = [env.step(k % 2)[1] for k in range(3)]
    assert len(set(rewards)) == 3
    env = WithNumbers()
    play(env, 20, np.random.default_rng(0), seed=0)
    assert env._program is None
    assert env._candidate is None


@pytest.mark.usefixtures("at_once")
def test_rules_that_are_replaced_are_used_from_the_next_episode_on(monkeypatch):
    env = CartPole()
    play(env, 10, np.random.default_rng(0), seed=0)
    monkeypatch.setattr(CartPole, "reward", lambda self, s, a, n: dilim.full((), 7.0))
    env.reset()
    assert env.step(0)[1] == 7.0
