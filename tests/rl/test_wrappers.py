"""Wrappers against closed forms."""

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dilim.errors import EnvironmentContractError, StateError
from dilim.rl import (
    REINFORCE,
    ActionMask,
    CartPole,
    NormalizeObservation,
    NormalizeReward,
    Pendulum,
    RunningStatistics,
    time_limit,
)


def length(env):
    """Steps until an episode of a car that does nothing is cut."""
    env.reset(seed=0)
    for step in range(1, 400):
        _, _, terminated, truncated, _ = env.step(1)
        if truncated:
            return step
        assert not terminated
    return None


@pytest.mark.parametrize("name", ["MountainCar-v0", "dilim/MountainCar-v0"])
def test_a_second_limit_replaces_the_first(name):
    env = gymnasium.make(name)
    assert length(env) == 200
    assert length(time_limit(env, 30)) == 30
    assert length(time_limit(env, 300)) == 300
    assert time_limit(env, 30) is env


def test_a_limit_where_there_was_none():
    bare = gymnasium.make("MountainCar-v0").unwrapped
    assert length(time_limit(bare, 20)) == 20
    ours = CartPole()
    assert time_limit(ours, 7) is ours
    assert repr(ours) == "CartPole(max_steps=7)"
    wrapped = NormalizeReward(CartPole())
    assert time_limit(wrapped, 5) is wrapped
    assert length(wrapped) == 5
    with pytest.raises(EnvironmentContractError, match="expected steps >= 1, received 0"):
        time_limit(ours, 0)


@settings(max_examples=50, deadline=None)
@given(
    data=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=4),
)
def test_statistics_do_not_depend_on_the_batches(data, cuts):
    statistics = RunningStatistics()
    for part in np.split(np.array(data), sorted(cuts)):
        statistics.update(part)
    assert statistics.count == len(data)
    assert statistics.mean == pytest.approx(np.mean(data), abs=1e-9)
    assert statistics.variance == pytest.approx(np.var(data), abs=1e-6)
    other = RunningStatistics()
    other.load_state_dict(statistics.state_dict())
    assert other.normalized(3.0) == statistics.normalized(3.0)


def test_statistics_that_do_not_fit_are_refused():
    statistics = RunningStatistics((2,))
    assert statistics.normalized([1.0, 2.0]).tolist() == pytest.approx([1.0, 2.0])
    with pytest.raises(StateError, match="expected mean of shape \\(2,\\), received \\(3,\\)"):
        statistics.load_state_dict(RunningStatistics((3,)).state_dict())
    with pytest.raises(StateError, match="expected count, mean and variance, received nothing"):
        statistics.load_state_dict({})
    assert repr(statistics) == "RunningStatistics(of 0 seen)"


def run(env, steps, seed=None, start=0):
    """What some steps show; the actions depend on the step's number only."""
    shown = []
    if seed is not None:
        shown.append(env.reset(seed=seed)[0].tolist())
    for step in range(start, start + steps):
        action = np.array([np.sin(step)], np.float32)
        observation, reward, terminated, truncated, info = env.step(action)
        shown.append((observation.tolist(), reward, info))
        if terminated or truncated:
            shown.append(env.reset()[0].tolist())
    return shown


def test_observations_are_normalised_over_all_that_was_seen():
    env = NormalizeObservation(Pendulum(max_steps=50))
    plain = Pendulum(max_steps=50)
    seen = [plain.reset(seed=3)[0], *(plain.step([np.sin(k)])[0] for k in range(30))]
    observation = run(env, 30, seed=3)[-1][0]
    expected = (seen[-1] - np.mean(seen, axis=0)) / np.sqrt(np.var(seen, axis=0) + 1e-8)
    assert observation == pytest.approx(expected.tolist(), rel=1e-5, abs=1e-6)
    env.frozen = True
    before = env.state_dict()
    run(env, 10)
    assert env.state_dict().keys() == before.keys()
    assert all((env.state_dict()[k] == v).all() for k, v in before.items())
    assert env.observation_space.contains(env.reset()[0])
    assert NormalizeObservation(Pendulum(), limit=0.5).reset(seed=0)[0].max() <= 0.5


def test_rewards_are_scaled_by_the_spread_of_returns():
    env = NormalizeReward(Pendulum(max_steps=20), gamma=0.9)
    plain = Pendulum(max_steps=20)
    plain.reset(seed=3)
    rewards = [plain.step([np.sin(k)])[1] for k in range(20)]
    returns, discounted = [], 0.0
    for reward in rewards:
        discounted = reward + 0.9 * discounted
        returns.append(discounted)
    shown = [x for x in run(env, 20, seed=3) if isinstance(x, tuple)]
    for k in range(1, 20):
        expected = rewards[k] / np.sqrt(np.var(returns[: k + 1]) + 1e-8)
        assert shown[k][1] == pytest.approx(np.clip(expected, -10, 10))
    assert shown[-1][2]["episode_return"] == pytest.approx(sum(rewards))
    assert shown[-2][2] == {}


@pytest.mark.parametrize("steps", [0, 7, 33])
def test_wrapped_environments_go_on_exactly(steps):
    def make():
        return NormalizeReward(NormalizeObservation(Pendulum(max_steps=20)))

    env = make()
    run(env, steps, seed=4)
    other = make()
    other.set_state(env.get_state())
    assert run(env, 30, start=steps) == run(other, 30, start=steps)
    with pytest.raises(StateError):
        other.set_state(Pendulum().get_state())
    with pytest.raises(StateError, match=r"CartPoleEnv does not give its state; state_dict\(\)"):
        NormalizeReward(gymnasium.make("CartPole-v1").unwrapped).get_state()


def test_agents_train_in_wrapped_environments():
    env = NormalizeReward(NormalizeObservation(CartPole()))
    agent = REINFORCE.for_env(env, seed=0)
    assert len(agent.train(env, episodes=3)) == 3


def test_masks_are_shown_and_kept():
    allowed = [True, False]
    env = ActionMask(CartPole(), lambda inside: allowed)
    _, info = env.reset(seed=0)
    assert info["action_mask"].tolist() == [True, False]
    assert env.step(0)[4]["action_mask"].tolist() == [True, False]
    with pytest.raises(EnvironmentContractError, match=r"step 2: the action 1 is not allowed"):
        env.step(1)
    allowed[:] = [False, False]
    with pytest.raises(EnvironmentContractError, match="no action is allowed after step 2"):
        env.step(0)
    allowed[:] = [True]
    with pytest.raises(EnvironmentContractError, match=r"expected 2 bools, .* shape \(1,\)"):
        env.reset()
    with pytest.raises(EnvironmentContractError, match="expected a Discrete set of actions"):
        ActionMask(Pendulum(), lambda inside: allowed)


def test_no_action_is_needed_after_the_end():
    env = ActionMask(CartPole(max_steps=1), lambda inside: [inside.steps == 0] * 2)
    env.reset(seed=0)
    _, _, _, truncated, info = env.step(0)
    assert truncated
    assert not info["action_mask"].any()


def test_normalisation_needs_numbers():
    with pytest.raises(EnvironmentContractError, match="expected a Box of observations"):
        NormalizeObservation(gymnasium.make("FrozenLake-v1"))
