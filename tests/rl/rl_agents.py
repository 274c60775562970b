"""The registry of agents, for tests that walk over it: each gets an environment that it fits."""

import functools

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

import dilim
from dilim.rl import AGENTS, PPO, SAC, TD3, TensorEnvironment
from dilim.rl.actions import BoxActions, DiscreteActions

KINDS = [pytest.param(kind, id=name) for name, kind in AGENTS.items()]
every_agent = pytest.mark.parametrize("kind", KINDS)

SEVERAL = [kind for kind in AGENTS.values() if DiscreteActions in kind.takes]
"""Agents that choose one of several actions."""
IN_A_BOX = [kind for kind in AGENTS.values() if BoxActions in kind.takes]
"""Agents that act with numbers between bounds."""

_SMALL = {"hidden_sizes": [8], "batch_size": 16, "learning_starts": 16}
SMALL = {TD3: _SMALL, SAC: _SMALL, PPO: {"rollout_length": 32, "epochs": 2, "minibatches": 2}}
"""Settings of agents whose defaults are too large for tests."""


def made(kind, env, **options):
    """An agent for an environment."""
    return kind.for_env(env, **{**SMALL.get(kind, {}), **options})


def bare(kind, size, count=2, **options):
    """An agent for so many numbers in an observation; of several actions if it takes those."""
    options = {**SMALL.get(kind, {}), **options}
    if kind in SEVERAL:
        return kind(size, action_count=count, **options)
    return kind(size, action_low=[-1.0], action_high=[1.0], **options)


def fit(kind, environment):
    """A class of environments with several actions, or what is steered in it if a kind needs it."""
    return environment if kind in SEVERAL else steered(environment)


@functools.cache
def steered(environment):
    """The same environments with one number from -1 to 1, which says what action is taken."""

    def number(space, action):
        return int(min((action[0] + 1.0) / 2.0 * space.n, space.n - 1)) + int(space.start)

    class Steered(environment):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            self.several = self.action_space
            self.action_space = spaces.Box(-1.0, 1.0, (1,), dtype=np.float32)

        def step(self, action):
            box, self.action_space = self.action_space, self.several  # it may look for itself
            try:
                return super().step(number(self.several, action))
            finally:
                self.action_space = box

    class SteeredRules(environment):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            self.several = int(self.action_space.n)
            self.action_space = spaces.Box(-1.0, 1.0, (1,), dtype=np.float32)

        def chosen(self, action):
            place = (action[..., 0] + 1.0) * (0.5 * self.several)
            return dilim.clip(place, 0.0, self.several - 1.0).astype("int64")

        def transition(self, state, action, generator):
            return environment.transition(self, state, self.chosen(action), generator)

        def reward(self, state, action, next_state):
            return environment.reward(self, state, self.chosen(action), next_state)

    made = SteeredRules if issubclass(environment, TensorEnvironment) else Steered
    made.__name__ = environment.__name__
    return made


gymnasium.register("Steered-v1", entry_point=steered(CartPoleEnv), max_episode_steps=500)


def gym_cart_pole(kind, **options):
    """Gymnasium's CartPole, or what is steered in it."""
    return gymnasium.make("CartPole-v1" if kind in SEVERAL else "Steered-v1", **options)


def same_state(first, second):
    """Whether two agents go on alike, to the last bit."""
    (arrays, header), (others, other) = first.state(), second.state()
    assert arrays.keys() == others.keys()
    different = [name for name in arrays if not np.array_equal(arrays[name], others[name])]
    return not different and header == other
