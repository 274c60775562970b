"""Rules that say which actions are allowed."""

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

import dilim
from dilim.errors import EnvironmentContractError
from dilim.rl import TensorEnvironment, VectorEnvironment, check_env
from dilim.rl.envs import base


class Purse(TensorEnvironment):
    """Spend 0, 1 or 2 coins of five, never more than there are left; ends with the last coin."""

    def __init__(self, free=True, max_steps=8):
        super().__init__(max_steps=max_steps)
        self.free = free
        self.observation_space = spaces.Box(0.0, 5.0, (1,), dtype=np.float32)
        self.action_space = spaces.Discrete(3)
        self._prices = dilim.tensor([0.0 if free else 1.0, 1.0, 2.0])

    def initial(self, generator, shape=()):
        return dilim.full(shape, 5.0)

    def transition(self, state, action, generator):
        return state - action.astype("float32")

    def observation(self, state):
        return dilim.stack([state], axis=-1)

    def reward(self, state, action, next_state):
        return action.astype("float32")

    def terminal(self, state):
        return state <= 0.0

    def action_mask(self, state):
        return self._prices <= state[..., None]


@pytest.mark.parametrize("after", [2, 10**9], ids=["compiled", "plain"])
def test_masks_are_shown_and_kept(after, monkeypatch):
    monkeypatch.setattr(base, "PROGRAM_AFTER", after)
    monkeypatch.setattr(base, "_TRIALS", 1)
    env = Purse()
    for _ in range(4):
        _, info = env.reset(seed=0)
        assert info["action_mask"].tolist() == [True, True, True]
        assert env.step(2)[4]["action_mask"].tolist() == [True, True, True]
        _, _, terminated, _, info = env.step(2)
        assert not terminated
        assert info["action_mask"].tolist() == [True, True, False]
        with pytest.raises(EnvironmentContractError, match=r"the action 2 is not allowed; .*False"):
            env.step(2)
        other = Purse()
        other.set_state(env.get_state())
        with pytest.raises(EnvironmentContractError, match="the action 2 is not allowed"):
            other.step(2)
        assert env.step(1)[2]
    assert (env._program is not None) == (after == 2)
    assert check_env(Purse()) == []


def test_an_episode_without_any_action_is_an_error():
    env = Purse(free=False, max_steps=None)
    env.terminal = lambda state: state < -1.0
    env.reset(seed=0)
    env.step(2)
    env.step(2)
    with pytest.raises(EnvironmentContractError, match="no action is allowed after step 3"):
        env.step(1)


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
def test_vectors_show_them_as_gymnasiums_do(mode):
    ours = VectorEnvironment(Purse(), 4, autoreset_mode=mode)
    theirs = SyncVectorEnv([Purse] * 4, autoreset_mode=mode)
    (_, info), (_, expected) = ours.reset(seed=0), theirs.reset(seed=0)
    numbers = np.random.default_rng(0)
    for _ in range(30):
        assert info.keys() == expected.keys()
        for key, value in info.items():
            assert value.tolist() == expected[key].tolist()
        actions = np.array([numbers.choice(np.flatnonzero(row)) for row in info["action_mask"]])
        *_, terminated, truncated, info = ours.step(actions)
        *_, expected = theirs.step(actions)
        mask = terminated | truncated
        if mode == "Disabled" and mask.any():
            _, info = ours.reset(options={"reset_mask": mask})
            theirs.reset(options={"reset_mask": mask})
            expected = info


def test_vectors_refuse_what_is_not_allowed():
    envs = VectorEnvironment(Purse(), 2, autoreset_mode="SameStep")
    envs.reset(seed=0)
    envs.step([2, 0])
    envs.step([2, 0])
    with pytest.raises(EnvironmentContractError, match="environment 0: the action 2 is not allow"):
        envs.step([2, 0])
    *_, info = envs.step([1, 0])
    assert info["action_mask"].tolist() == [[True, True, True]] * 2  # the next episode's


def test_masks_in_a_loop_of_tensors():
    env, generator = Purse(), dilim.Generator(0)

    def spend(generator):
        running, _ = env.start(generator, (3,))
        total, numbers = dilim.zeros((3,)), dilim.arange(3)
        for _ in range(20):
            allowed = env.action_mask(running[0])
            action = dilim.where(allowed, numbers, -1).argmax(axis=1)
            running, _, reward, _, _, _ = env.advance(running, action, generator)
            total = total + reward
        return total

    expected = spend(generator)
    fast = dilim.compile(spend, compile_after=0)
    assert fast(generator).tolist() == expected.tolist()
    assert [x for x in fast.explain().transfers if x.in_loop] == []
