"""What is said of options that an agent cannot take."""

import numpy as np
import pytest
from rl_agents import bare, every_agent, fit, made

import dilim
from dilim.errors import EnvironmentContractError
from dilim.rl import DQN, PPO, CartPole


@every_agent
@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("seed", 1.5, "a whole number or None"),
        ("seed", True, "a whole number or None"),
        ("hidden_sizes", 5, r"a list of whole numbers, such as \[64, 64\]"),
        ("hidden_sizes", [4, 1.5], "a list of whole numbers"),
        ("hidden_sizes", "64", "a list of whole numbers"),
        ("gamma", "0.9", "a number"),
        ("learning_rate", "fast", "a number or a schedule"),
        ("window_size", 2.5, "a whole number"),
        ("activation", 3, "a text"),
    ],
)
def test_values_of_another_kind_are_refused(kind, option, value, wanted):
    with pytest.raises(
        TypeError, match=f"{kind.__name__}: expected {option} to be {wanted}.*, received"
    ):
        bare(kind, 4, **{option: value})


@every_agent
def test_an_option_that_does_not_exist_is_told_with_the_nearest(kind):
    with pytest.raises(TypeError, match=r"no option 'learnig_rate'; did you mean 'learning_rate'"):
        bare(kind, 4, learnig_rate=0.1)
    with pytest.raises(TypeError, match=r"no option 'zzz'; see help\(dilim.rl"):
        bare(kind, 4, zzz=1)


def test_numbers_of_numpy_are_numbers():
    agent = DQN(4, (np.int64(8),), np.int32(2), gamma=np.float32(0.5), seed=np.uint8(3))
    assert agent.hidden_sizes == [8]
    assert (agent.gamma, agent.seed) == (0.5, 3)


def test_agents_of_the_user_are_checked_too():
    class Mine(PPO):
        def __init__(self, size: int, *, depth: "int" = 1, other: "dict[str, int]" = 3, **options):
            super().__init__(size, [4] * depth, **options)

    assert Mine(4, depth=2, other="let through", action_count=2).hidden_sizes == [4, 4]
    with pytest.raises(TypeError, match="Mine: expected depth to be a whole"):
        Mine(4, depth=0.5, action_count=2)
    with pytest.raises(TypeError, match="did you mean 'depth'"):
        Mine(4, depht=1, action_count=2)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"steps": 4, "num_envs": 0}, ValueError, "num_envs to be an integer >= 1, received 0"),
        ({"steps": 4, "num_envs": 2.0}, ValueError, "num_envs to be an integer >= 1"),
        ({"steps": 4, "num_workers": 0.5}, ValueError, "num_workers to be an integer >= 0"),
        ({"episodes": True}, ValueError, "episodes to be an integer >= 0, received True"),
        ({"episodes": 1, "on_episode": 3}, TypeError, "on_episode to be a function, received 3"),
    ],
)
def test_arguments_of_train(arguments, error, text):
    env = CartPole()
    with pytest.raises(error, match=text):
        DQN.for_env(env, seed=0, hidden_sizes=[4]).train(env, **arguments)


@every_agent
def test_masks_that_no_agent_heeds_are_refused(kind):
    class Masked(fit(kind, CartPole)):
        def action_mask(self, state):
            return dilim.ones((*state.shape[:-1], 2), dtype=dilim.bool)

    env = Masked()
    agent = made(kind, fit(kind, CartPole)(), seed=0)
    for call in (lambda: agent.train(env, steps=1), lambda: agent.evaluate(env)):
        with pytest.raises(EnvironmentContractError, match="agents do not heed yet"):
            call()


def test_the_name_or_class_of_an_environment_is_no_environment():
    with pytest.raises(EnvironmentContractError, match=r"the class CartPole; make one with Cart"):
        DQN.for_env(CartPole)
    with pytest.raises(EnvironmentContractError, match=r"gymnasium.make\('CartPole-v1'\)"):
        DQN.for_env("CartPole-v1")
