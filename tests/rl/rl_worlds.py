"""Small environments for the tests of agents."""

import gymnasium
import numpy as np
from gymnasium import spaces

from dilim.rl import make_environment

LIMITS = {"bandit": {}, "gridworld": "timeout"}
"""How episodes of built-in environments are made short, if not with max_steps."""


def short_environment(name, steps, **options):
    """A built-in environment whose episodes have at most so many steps."""
    limit = LIMITS.get(name, "max_steps")
    return make_environment(name, **({limit: steps} if limit else {}), **options)


def random_action(env, numbers):
    """An action as users give it, from a NumPy generator."""
    space = env.action_space
    if isinstance(space, spaces.Discrete):
        return int(numbers.integers(space.n))
    return numbers.uniform(space.low, space.high).astype(space.dtype)


def random_actions(env, generator, shape):
    """Actions as a tensor, from a dilim generator."""
    space = env.action_space
    if isinstance(space, spaces.Discrete):
        return generator.integers(0, int(space.n), shape)
    return generator.uniform((*shape, *space.shape), float(space.low[0]), float(space.high[0]))


class Corridor(gymnasium.Env):
    """One of two sights is shown; the action of the same number pays 1. Four steps an episode.

    A host environment without `get_state`: what it knows cannot be taken over.
    """

    def __init__(self, start=0, size=2, cut=False):
        self.observation_space = spaces.Box(0.0, 1.0, (size,), dtype=np.float32)
        self.action_space = spaces.Discrete(2, start=start)
        self.start = start
        self.cut = cut
        self.resets = []
        self.actions = []
        self._sight = np.zeros(size, np.float32)

    def _show(self):
        self._shown = int(self.np_random.integers(2))
        self._sight[:] = 0.0  # the same array every time
        self._sight[self._shown] = 1.0
        return self._sight

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.resets.append(seed)
        self._step = 0
        return self._show(), {}

    def step(self, action):
        self.actions.append(action)
        reward = float(action - self.start == self._shown)
        self._step += 1
        ended = self._step == 4
        return self._show(), reward, ended and not self.cut, ended and self.cut, {}


class Broken(Corridor):
    """Gives a bad number at one step of its life."""

    def __init__(self, at, observation=None, reward=None, size=4):
        super().__init__(size=size)
        self.at = at
        self.bad_observation = observation
        self.bad_reward = reward
        self.count = 0

    def step(self, action):
        self.count += 1
        observation, reward, terminated, truncated, info = super().step(action)
        if self.count == self.at:
            if self.bad_observation is not None:
                observation = observation.copy()
                observation[2] = self.bad_observation
            if self.bad_reward is not None:
                reward = self.bad_reward
        return observation, reward, terminated, truncated, info


class OldGym:
    """The API of old Gym: reset gives an observation only, step four values."""

    def __init__(self, limit_from_outside=False, values=4):
        self.observation_space = spaces.Box(-1.0, 1.0, (3,), dtype=np.float32)
        self.action_space = spaces.Discrete(2)
        self.limit_from_outside = limit_from_outside
        self.values = values
        self.seeds = []

    def seed(self, seed):
        self.seeds.append(seed)

    def reset(self):
        self.count = 0
        return np.zeros(3, np.float32)

    def step(self, action):
        self.count += 1
        done = self.count == 3
        info = {"TimeLimit.truncated": True} if done and self.limit_from_outside else {}
        if self.values == 5:
            return np.zeros(3, np.float32), 1.0, done, False, info
        return np.zeros(3, np.float32), 1.0, done, info
