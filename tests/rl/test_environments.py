"""What every built-in environment must do: the tests walk over the registry."""

import copy
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from rl_worlds import random_action, short_environment

from dilim.errors import EnvironmentContractError, StateError
from dilim.rl import ENVIRONMENTS, CartPole, TensorEnvironment, make_environment

NAMES = sorted(ENVIRONMENTS)
WITHOUT_CHANCE = ("gridworld",)


def play(env, steps, seed=None):
    """Everything that so many steps with random actions show, episodes one after the other."""
    observation, _ = env.reset(seed=seed)
    return [observation.tolist(), *play_on(env, steps, np.random.default_rng(0))]


def play_on(env, steps, actions):
    """Like `play`, without a reset at the beginning."""
    shown = []
    for _ in range(steps):
        action = random_action(env.unwrapped, actions)
        observation, reward, terminated, truncated, _ = env.step(action)
        shown.append((observation.tolist(), reward, terminated, truncated))
        if terminated or truncated:
            shown.append(env.reset()[0].tolist())
    return shown


# Gymnasium's own Pendulum has the action space that its check warns about
@pytest.mark.filterwarnings("ignore:.*symmetric and normalized space")
@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_finds_nothing_to_complain_about(name):
    made = gymnasium.make(ENVIRONMENTS[name].gymnasium_id, render_mode="rgb_array")
    check_env(made.unwrapped)
    check_env(make_environment(name), skip_render_check=True)  # that check needs a spec
    assert not any(module.startswith("pygame") for module in sys.modules)


@pytest.mark.parametrize("name", NAMES)
def test_the_limit_of_gymnasium_is_the_only_one(name):
    entry = ENVIRONMENTS[name]
    assert gymnasium.spec(entry.gymnasium_id).max_episode_steps == entry.limit
    assert gymnasium.make(entry.gymnasium_id).unwrapped.max_steps is None
    assert make_environment(name).max_steps == entry.limit


@pytest.mark.parametrize("name", NAMES)
def test_equal_seeds_give_equal_runs_and_episodes_differ(name):
    first = play(make_environment(name), 60, seed=7)
    assert first == play(make_environment(name), 60, seed=7)
    if name not in WITHOUT_CHANCE:
        assert first != play(make_environment(name), 60, seed=8)
    assert first == play(gymnasium.make(ENVIRONMENTS[name].gymnasium_id), 60, seed=7)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_CHANCE])
def test_without_a_seed_runs_differ(name):
    assert play(make_environment(name), 20) != play(make_environment(name), 20)


@pytest.mark.parametrize("name", NAMES)
def test_the_state_can_be_taken_over_at_any_step(name):
    for taken_at in (0, 1, 5, 11):
        env = make_environment(name)
        play(env, taken_at, seed=1)
        other = make_environment(name)
        other.set_state(env.get_state())
        copied = copy.deepcopy(env)
        shown = play_on(env, 40, np.random.default_rng(3))
        assert shown == play_on(other, 40, np.random.default_rng(3))
        assert shown == play_on(copied, 40, np.random.default_rng(3))


@pytest.mark.parametrize("name", NAMES)
def test_an_ended_environment_stays_ended_when_taken_over(name):
    env = short_environment(name, 1)
    env.reset(seed=0)
    action = random_action(env, np.random.default_rng(0))
    env.step(action)
    other = make_environment(name)
    other.set_state(env.get_state())
    with pytest.raises(EnvironmentContractError, match="has ended; call reset"):
        other.step(action)


def test_the_state_of_another_kind_is_refused():
    env = CartPole()
    env.reset(seed=0)
    with pytest.raises(
        StateError, match=r"Bandit\.set_state: expected state\.0, state\.1.*received"
    ):
        make_environment("bandit").set_state(env.get_state())


@pytest.mark.parametrize("name", NAMES)
def test_observations_lie_in_the_space(name):
    env = short_environment(name, 30)
    observation, _ = env.reset(seed=2)
    numbers = np.random.default_rng(2)
    for _ in range(100):
        assert env.observation_space.contains(observation)
        observation, reward, terminated, truncated, _ = env.step(random_action(env, numbers))
        assert type(reward) is float
        if terminated or truncated:
            assert env.observation_space.contains(observation)
            observation, _ = env.reset()


@pytest.mark.parametrize("name", NAMES)
def test_the_description_is_a_full_specification(name):
    text = ENVIRONMENTS[name].kind.__doc__
    for part in ("Observation", "Action", "Reward", "Start", "End", "Solved"):
        assert f"**{part}**" in text, part
    assert "Args:" in text
    assert "Source:" in text


@pytest.mark.parametrize("name", NAMES)
def test_drawings(name):
    env = make_environment(name, render_mode="ansi")
    with pytest.raises(EnvironmentContractError, match="nothing to draw yet; call reset"):
        env.render()
    env.reset(seed=0)
    text = env.render()
    assert 1 < len(text.splitlines()) < 20
    assert max(map(len, text.splitlines())) <= 80
    env = make_environment(name, render_mode="rgb_array")
    env.reset(seed=0)
    frame = env.render()
    assert frame.dtype == np.uint8
    assert frame.shape[2] == 3
    assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 2
    assert make_environment(name).render_mode is None


@pytest.mark.parametrize("name", NAMES)
def test_steps_that_cannot_be(name):
    env = make_environment(name)
    with pytest.raises(EnvironmentContractError, match=r"no episode is running; call reset\(\)"):
        env.step(0)
    env.reset(seed=0)
    for wrong in (50, 0.5, None, "0", [0.0, 0.0]):
        with pytest.raises(EnvironmentContractError, match=r"expected an action in .*, received"):
            env.step(wrong)
    with pytest.raises(EnvironmentContractError, match="unknown option 'lo'; there are"):
        env.reset(options={"lo": 1.0})
    with pytest.raises(EnvironmentContractError, match="'human'; windows are not opened"):
        make_environment(name, render_mode="human")


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(EnvironmentContractError, match=r"'cartpol'; did you mean 'cartpole'\?"):
        make_environment("cartpol")
    with pytest.raises(EnvironmentContractError, match=r"'zzz' \(there are: acrobot, bandit, "):
        make_environment("zzz")
    assert isinstance(make_environment("Cart-Pole"), CartPole)


class Unwritten(TensorEnvironment):
    """A subclass that forgot its rules."""


@pytest.mark.parametrize("rule", ["initial", "transition", "observation", "reward", "terminal"])
def test_a_missing_rule_is_named(rule):
    count = {"initial": 1, "transition": 3, "observation": 1, "reward": 3, "terminal": 1}[rule]
    with pytest.raises(NotImplementedError, match=rf"Unwritten does not define {rule}\(\)"):
        getattr(Unwritten(), rule)(*[None] * count)


def test_a_limit_below_one_is_refused():
    for limit in (0, 2.5):
        with pytest.raises(EnvironmentContractError, match=f"an integer >= 1, received {limit}"):
            CartPole(max_steps=limit)
