"""`check_env` finds each fault that is built in here, and names it."""

import random
from typing import NamedTuple

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from rl_worlds import Corridor, OldGym

import dilim
from dilim.errors import EnvironmentContractError
from dilim.rl import ActionMask, CartPole, GridWorld, TensorEnvironment, check_env


class Good(gymnasium.Env):
    """Draws once per reset and per step; four steps an episode."""

    def __init__(self):
        self.observation_space = spaces.Box(0.0, 1.0, (2,), dtype=np.float32)
        self.action_space = spaces.Discrete(2)

    def see(self):
        return self.np_random.random(2, dtype=np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 4
        return self.see(), {}

    def step(self, action):
        self.left -= 1
        return self.see(), 1.0, self.left == 0, False, {}


def test_good_environments_pass():
    [advice] = check_env(Good())
    assert advice.startswith("there is no get_state() and set_state(arrays)")
    assert check_env(CartPole()) == []
    assert check_env(GridWorld(4)) == []
    assert check_env(gymnasium.make("CartPole-v1")) == []
    [advice] = check_env(gymnasium.make("FrozenLake-v1"))
    assert advice.startswith("observation_space is Discrete; agents take a Box")
    assert check_env(ActionMask(CartPole(), lambda env: [True, False])) == []


class OtherSourceInReset(Good):
    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        if seed is None:
            observation = np.array([random.random(), 0.0], np.float32)
        return observation, info


class NoSeedAtAll(Good):
    def see(self):
        return np.array([random.random(), 0.0], np.float32)


class OtherSourceInStep(Good):
    def step(self, action):
        observation, *rest = super().step(action)
        observation[0] = random.random()
        return observation, *rest


class SameEpisodeAgain(Good):
    def reset(self, *, seed=None, options=None):
        self.seed = self.seed if seed is None else seed
        return super().reset(seed=self.seed)


class KeepsSomething(Good):
    count = 0

    def step(self, action):
        self.count += 1
        observation, _, *rest = super().step(action)
        return observation, float(self.count), *rest


class OneBuffer(Good):
    buffer = np.zeros(2, np.float32)

    def see(self):
        self.buffer[:] = super().see()
        return self.buffer


class BadState(Good):
    def get_state(self):
        return {"left": np.array(self.left)}

    def set_state(self, arrays):
        self.left = int(arrays["left"])


def returning(step=None, see=None):
    class Bad(Good):
        def see(self):
            return super().see() if see is None else see(super().see())

        def step(self, action):
            return super().step(action) if step is None else step(super().step(action))

    return Bad()


@pytest.mark.parametrize(
    ("env", "text"),
    [
        (OtherSourceInReset(), "differ at the reset of episode 2: reset() without a seed draws"),
        (NoSeedAtAll(), "reset(seed=...) gives another start each time"),
        (OtherSourceInStep(), "differ at step 1 of episode 1: step() draws from something"),
        (KeepsSomething(), "differ at step 1 of episode 1: step() draws from something"),
        (SameEpisodeAgain(), "reset() without a seed begins the same episode again"),
        (OneBuffer(), "step() changes the observation that was given before; return a copy"),
        (Corridor(), "step() changes the observation that was given before"),
        (BadState(), "after set_state(get_state()) the same actions give other results"),
        (OldGym(), "reset(seed=0) failed"),
        (returning(see=lambda x: x.astype(np.float64)), "dtype float64: add .astype(np.float32)"),
        (returning(see=lambda x: x[:1]), "outside Box(0.0, 1.0, (2,), float32): shape (1,)"),
        (returning(see=lambda x: x + 5), "at position 0"),
        (returning(step=lambda r: (r[0], float("nan"), *r[2:])), "the reward nan; it has to be"),
        (returning(step=lambda r: (r[0], "x", *r[2:])), "the reward 'x'; return a float"),
        (returning(step=lambda r: (*r[:2], None, *r[3:])), "terminated=None; return a bool"),
        (returning(step=lambda r: (*r[:4], 3)), "int as info; return a dict"),
        (returning(step=lambda r: r[:4]), "step() returned 4 values; expected 5"),
    ],
)
def test_faults_are_named(env, text):
    with pytest.raises(EnvironmentContractError) as caught:
        check_env(env)
    first, *lines = str(caught.value).splitlines()
    assert first == f"check_env({type(env).__name__}):"
    assert lines[0].startswith("  error: ")
    assert text in lines[0]


def test_errors_come_before_notes():
    env = returning(step=lambda r: (*r[:2], False, False, {}))
    assert check_env(env)[0].startswith("no episode ended within 200 steps")
    env = returning(step=lambda r: (r[0], float("inf"), *r[2:]))
    env.action_space = spaces.MultiDiscrete([2, 2])
    with pytest.raises(EnvironmentContractError) as caught:
        check_env(env)
    kinds = [line.split(":")[0].strip() for line in str(caught.value).splitlines()[1:]]
    assert kinds == ["error", "note"]
    env.observation_space = None
    with pytest.raises(EnvironmentContractError, match=r"observation_space is builtins\.NoneType"):
        check_env(env)


class Walk(TensorEnvironment):
    """A line of places; written right."""

    def __init__(self):
        super().__init__(max_steps=20)
        self.observation_space = spaces.Box(-100.0, 100.0, (1,), dtype=np.float32)
        self.action_space = spaces.Discrete(2)

    def initial(self, generator, shape=()):
        return generator.uniform((*shape, 1))

    def transition(self, state, action, generator):
        return state + action.astype("float32")[..., None]

    def observation(self, state):
        return state

    def reward(self, state, action, next_state):
        return next_state[..., 0]

    def terminal(self, state):
        return state[..., 0] > 5.0


class OtherForm(Walk):
    def transition(self, state, action, generator):
        return super().transition(state, action, generator).astype("float64")

    def observation(self, state):
        return state.astype("float32")


class Mixed(Walk):
    def transition(self, state, action, generator):
        return super().transition(state, action, generator) + state.sum() * 0.0 + state.max() * 0.01


class MixedDraws(Walk):
    def transition(self, state, action, generator):
        return super().transition(state, action, generator) + generator.uniform(()) + state.max()


class OnlyOne(Walk):
    def reward(self, state, action, next_state):
        return next_state.reshape(())


class WrongShape(Walk):
    def reward(self, state, action, next_state):
        return next_state


class Place(NamedTuple):
    x: dilim.Tensor
    steps: dilim.Tensor


class Named(Walk):
    def initial(self, generator, shape=()):
        return Place(generator.uniform(shape), dilim.zeros(shape))

    def transition(self, state, action, generator):
        return Place(state.x + action.astype("float32"), state.steps + 1.0)

    def observation(self, state):
        return state.x[..., None]

    def reward(self, state, action, next_state):
        return next_state.x

    def terminal(self, state):
        return state.x > 5.0


class Picture(Walk):
    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Box(0, 255, (2, 2), dtype=np.uint8)

    def observation(self, state):
        shade = (state * 10.0).astype("uint8")[..., None]
        return dilim.concat([dilim.concat([shade, shade], axis=-1)] * 2, axis=-2)


class View(Picture):
    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Box(-100.0, 100.0, (1, 1), dtype=np.float32)

    def observation(self, state):
        return state[..., None]


class WholeReward(Walk):
    def reward(self, state, action, next_state):
        return action


class ForHost(Walk):
    def terminal(self, state):
        places = state[..., 0].numpy()
        return dilim.tensor(np.asarray(places > 5.0))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            OtherForm,
            "transition() gives a state of another form than initial(): value float64[5, 1",
        ),
        (Mixed, "gives environment 0 of 5 another state (value) than when it is alone"),
        (MixedDraws, "gives environment 0 of 5 another state (value) than when it is alone"),
        (OnlyOne, "the rules fail for 5 environments at once"),
        (
            WholeReward,
            "reward() of 5 environments: expected shape (5,) as float32, received (5,) as",
        ),
        (WrongShape, "reward() of 5 environments: expected shape (5,) as float32, received (5, 1)"),
    ],
)
def test_faults_in_rules_are_named(kind, text):
    with pytest.raises(EnvironmentContractError) as caught:
        check_env(kind())
    assert text in str(caught.value)


def test_rules_that_do_not_compile_are_told():
    assert check_env(Walk()) == []
    assert check_env(Picture()) == []
    [advice] = check_env(View())
    assert advice.endswith("see that the observation is no view of the state")
    [advice] = check_env(Named())
    assert advice.startswith("the state is a named tuple")
    [advice] = check_env(ForHost())
    assert advice.startswith("in a loop that is compiled, terminal()")
    assert "would still run in Python at each step" in advice
    for rule in ("initial", "transition", "observation", "reward", "truncation"):
        assert f"{rule}()" not in advice
