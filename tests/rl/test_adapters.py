"""Environments from elsewhere: errors are read here."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from rl_worlds import Corridor, OldGym

from dilim.errors import EnvironmentContractError, ShapeError
from dilim.rl import REINFORCE, CartPole, from_gymnasium, from_old_gym


def test_a_good_environment_passes_unchanged():
    env = gymnasium.make("CartPole-v1")
    assert from_gymnasium(env) is env
    ours = CartPole()
    assert from_gymnasium(ours) is ours
    assert ours.state is None  # it is not even reset


def test_an_old_environment_is_recognised_before_training():
    with pytest.raises(
        EnvironmentContractError,
        match=r"reset\(\) returned ndarray of shape \(3,\); expected \(observation, info\); .*"
        r"dilim\.rl\.from_old_gym\(env\)",
    ):
        REINFORCE.for_env(OldGym())
    with pytest.raises(EnvironmentContractError, match=r"reset\(\) returned ndarray"):
        from_gymnasium(OldGym(values=5))


class HalfOld(OldGym):
    """A new reset with an old step."""

    def reset(self, *, seed=None, options=None):
        return super().reset(), {}


def test_the_call_that_is_old_is_named():
    agent = REINFORCE(3)
    with pytest.raises(
        EnvironmentContractError, match=r"step\(\) returned 4 values; expected 5.*from_old_gym"
    ):
        from_gymnasium(HalfOld())
    with pytest.raises(EnvironmentContractError, match=r"step\(\) returned 4 values"):
        agent.train(HalfOld(), steps=1)
    with pytest.raises(
        EnvironmentContractError, match=r"expected reset to take seed=; .*from_old_gym"
    ):
        agent.train(OldGym(), steps=1)
    assert agent.steps == 0


def test_another_type_error_in_reset_is_not_hidden():
    class Faulty(Corridor):
        def reset(self, *, seed=None, options=None):
            return 1 + "x"

    with pytest.raises(TypeError, match="unsupported operand"):
        REINFORCE(2).train(Faulty(), steps=1)


@pytest.mark.parametrize("values", [4, 5])
def test_the_adapter_gives_the_new_api(values):
    old = OldGym(values=values)
    env = from_old_gym(old)
    check_env(env, skip_render_check=True)
    old.seeds.clear()
    observation, info = env.reset(seed=4)
    assert old.seeds == [4]
    assert (observation.shape, info) == ((3,), {})
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (True, False)]
    assert len(REINFORCE.for_env(env).train(env, episodes=3)) == 3


def test_done_by_a_time_limit_is_truncation():
    env = from_old_gym(OldGym(limit_from_outside=True))
    env.reset()
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]


def test_old_spaces_are_translated():
    class Foreign:
        pass

    box, count = Foreign(), Foreign()
    box.low, box.high = np.full(3, -2.0, np.float32), np.full(3, 2.0, np.float32)
    count.n, count.start = 4, 1
    old = OldGym()
    old.observation_space, old.action_space = box, count
    with pytest.raises(
        EnvironmentContractError, match=r"expected observation_space to be a gymnasium\.spaces\.Box"
    ):
        from_gymnasium(old)
    env = from_old_gym(old)
    assert env.observation_space == spaces.Box(-2.0, 2.0, (3,), dtype=np.float32)
    assert env.action_space == spaces.Discrete(4, start=1)
    old.action_space = Foreign()
    with pytest.raises(EnvironmentContractError, match="cannot translate action_space of type"):
        from_old_gym(old)


def test_a_step_of_another_length_is_refused_by_the_adapter():
    old = OldGym()
    old.step = lambda action: (np.zeros(3), 1.0, True)
    env = from_old_gym(old)
    env.reset()
    with pytest.raises(EnvironmentContractError, match=r"step\(\) returned 3 values; expected 4"):
        env.step(0)


def test_other_spaces_are_refused_by_name():
    env = Corridor()
    env.action_space = spaces.Box(-1.0, 1.0, (2,))
    with pytest.raises(
        EnvironmentContractError, match=r"REINFORCE: expected a Discrete set of actions, .*Corridor"
    ):
        REINFORCE.for_env(env)
    env.action_space = spaces.MultiBinary(2)
    with pytest.raises(
        EnvironmentContractError, match=r"expected action_space to be a Discrete or a Box, received"
    ):
        from_gymnasium(env)
    env = Corridor()
    env.observation_space = spaces.Discrete(5)
    with pytest.raises(EnvironmentContractError, match=r"to be a Box, received Discrete\(5\)"):
        from_gymnasium(env)


def test_an_environment_of_another_size_is_refused_before_training():
    env = Corridor(size=22)
    agent = REINFORCE(24)
    with pytest.raises(
        ShapeError,
        match=r"network takes 24 numbers, the observation of Corridor has 22 \(shape \(22,\)\); "
        r"make the agent with REINFORCE\.for_env\(env\)",
    ):
        agent.train(env, episodes=1)
    assert env.resets == []


def test_other_actions_are_refused_before_training():
    with pytest.raises(
        EnvironmentContractError,
        match="the agent has 2 actions from 0, Corridor has 2 actions from 5",
    ):
        REINFORCE(2).train(Corridor(start=5), episodes=1)
