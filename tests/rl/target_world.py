"""A small environment of continuous actions: hit what is shown."""

import numpy as np
from gymnasium import spaces

from dilim.dtypes import bool_, float32
from dilim.rl import TensorEnvironment
from dilim.tensors.creation import zeros


class Target(TensorEnvironment):
    """Two numbers x from -1 to 1 are shown; the action a brings -sum (a - 1.5 x - 0.5)^2.

    The Box is [-1, 2]^2, in shape (2, 1), so that the best action is always in it, and brings 0;
    the middle of the Box brings -1.5, on average. What is shown next does not depend on the action.
    Ten steps.
    """

    def __init__(self, *, max_steps=10, render_mode=None):
        super().__init__(max_steps=max_steps, render_mode=render_mode)
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), dtype=np.float32)
        self.action_space = spaces.Box(-1.0, 2.0, (2, 1), dtype=np.float32)

    def initial(self, generator, shape=()):
        return generator.uniform((*shape, 2), -1.0, 1.0)

    def transition(self, state, action, generator):
        return generator.uniform(state.shape, -1.0, 1.0)

    def observation(self, state):
        return state

    def reward(self, state, action, next_state):
        miss = action[..., 0] - (1.5 * state + 0.5)
        return -(miss * miss).sum(axis=-1).astype(float32)

    def terminal(self, state):
        return zeros(state.shape[:-1], dtype=bool_)
