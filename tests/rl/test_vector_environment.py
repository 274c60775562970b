"""The vector environment against single environments, in all three modes."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from rl_worlds import random_action, short_environment

from dilim.errors import EnvironmentContractError, StateError
from dilim.rl import ENVIRONMENTS, CartPole, GridWorld, VectorEnvironment

NAMES = sorted(ENVIRONMENTS)
CHANCE = ("bandit", "frozenlake", "snake")
"""Rules that draw in each step: a batch shares its numbers out, a single one has them all."""
MODES = list(AutoresetMode)
COUNT = 6


class SameStart(CartPole):
    """Without chance, so that batches and single environments begin alike."""

    def initial(self, generator, shape=(), *, low=0.01, high=0.01):
        return super().initial(generator, shape, low=low, high=high)


def comparable(info):
    return {
        key: value
        if isinstance(value, dict)
        else [None if x is None else x.tolist() for x in value]
        for key, value in info.items()
    }


def shown(result):
    observation, *outcome, info = result
    return observation.tobytes(), [(x.dtype, x.tolist()) for x in outcome], comparable(info)


@pytest.mark.parametrize("compile_after", [0, None], ids=["compiled", "plain"])
@pytest.mark.parametrize(
    "make", [lambda: GridWorld(3, timeout=9), lambda: SameStart(max_steps=12)], ids=["grid", "cart"]
)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_it_is_gymnasiums_vector_of_single_environments(mode, make, compile_after):
    theirs = SyncVectorEnv([make] * COUNT, autoreset_mode=mode)
    ours = VectorEnvironment(make(), COUNT, autoreset_mode=mode, compile_after=compile_after)
    assert ours.metadata["autoreset_mode"] is mode
    for name in ("observation_space", "action_space", "single_observation_space", "num_envs"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert ours.reset(seed=3)[0].tobytes() == theirs.reset(seed=3)[0].tobytes()
    numbers = np.random.default_rng(0)
    ends = 0
    for _ in range(60):
        actions = numbers.integers(ours.single_action_space.n, size=COUNT)
        expected = theirs.step(actions)
        received = ours.step(actions)
        assert shown(received) == shown(expected)
        assert ours.observation_space.contains(received[0])
        mask = received[2] | received[3]
        ends += mask.sum()
        if mode is AutoresetMode.DISABLED and mask.any():
            expected = theirs.reset(options={"reset_mask": mask})
            received = ours.reset(options={"reset_mask": mask.copy()})
            assert received[0].tobytes() == expected[0].tobytes()
        assert ours.steps.tolist() == [
            0 if ended and mode is AutoresetMode.SAME_STEP else env.steps
            for env, ended in zip(theirs.envs, mask, strict=True)
        ]
    assert ends > 20


@pytest.mark.parametrize("name", NAMES)
def test_a_vector_of_one_is_the_environment_itself(name):
    vector = VectorEnvironment(short_environment(name, 8), 1, autoreset_mode="SameStep")
    env = short_environment(name, 8)
    assert vector.reset(seed=5)[0][0].tobytes() == env.reset(seed=5)[0].tobytes()
    numbers = np.random.default_rng(0)
    for _ in range(30):
        action = random_action(env, numbers)
        observation, reward, terminated, truncated, info = vector.step(np.asarray(action)[None])
        expected, *outcome, _ = env.step(action)
        assert [reward[0], terminated[0], truncated[0]] == outcome
        if terminated or truncated:
            assert info["final_obs"][0].tobytes() == expected.tobytes()
            expected, _ = env.reset()
        assert observation[0].tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CHANCE])
def test_a_reset_in_the_next_step_is_reset(name):
    vector = VectorEnvironment(short_environment(name, 8), 1)
    env = short_environment(name, 8)
    vector.reset(seed=5)
    env.reset(seed=5)
    numbers = np.random.default_rng(0)
    ended = False
    for _ in range(30):
        action = random_action(env, numbers)
        observation, reward, *flags, info = vector.step(np.asarray(action)[None])
        if ended:
            assert (reward[0], flags[0][0], flags[1][0]) == (0.0, False, False)
            expected, ended = env.reset()[0], False
        else:
            expected, outcome, terminated, truncated, _ = env.step(action)
            ended = terminated or truncated
            assert (reward[0], flags[0][0], flags[1][0]) == (outcome, terminated, truncated)
        assert observation[0].tobytes() == expected.tobytes()
        assert info == {}


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_the_last_observation_is_the_failing_one(mode):
    envs = VectorEnvironment(CartPole(), 8, autoreset_mode=mode)
    envs.reset(seed=0)
    envs.step(np.ones(8, np.int64))
    assert envs.steps.tolist() == [1] * 8
    envs.reset()
    assert envs.steps.tolist() == [0] * 8
    failed = 0
    for _ in range(15):
        observation, _, terminated, _, info = envs.step(np.ones(8, np.int64))
        for k in np.flatnonzero(terminated):
            last = info["final_obs"][k] if mode is AutoresetMode.SAME_STEP else observation[k]
            assert abs(last[0]) > 2.4 or abs(last[2]) > 0.2095
            failed += 1
        if mode is AutoresetMode.DISABLED and terminated.any():
            envs.reset(options={"reset_mask": terminated})
    assert failed >= 8


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", ["cartpole", "mountaincar", "pendulum"])
def test_equal_seeds_and_states_go_on_alike(name, mode):
    def make():
        return VectorEnvironment(short_environment(name, 8), 4, autoreset_mode=mode)

    def play(envs, numbers, count=20):
        seen = []
        for _ in range(count):
            actions = np.stack([random_action(envs.env, numbers) for _ in range(4)])
            observation, reward, terminated, truncated, _ = envs.step(actions)
            seen.append((observation.tolist(), reward.tolist()))
            mask = terminated | truncated
            if mode is AutoresetMode.DISABLED and mask.any():
                envs.reset(options={"reset_mask": mask})
        return seen

    first, second = make(), make()
    start = first.reset(seed=1)[0]
    assert len(np.unique(start, axis=0)) > 1
    assert start.tobytes() == second.reset(seed=1)[0].tobytes()
    assert play(first, np.random.default_rng(0)) == play(second, np.random.default_rng(0))
    third = make()
    third.set_state(first.get_state())
    assert play(first, np.random.default_rng(1)) == play(third, np.random.default_rng(1))
    with pytest.raises(StateError, match=r"VectorEnvironment\.set_state: expected"):
        VectorEnvironment(short_environment(name, 8), 5).set_state(first.get_state())
    again = make()
    again.reset()
    other = make()
    assert again.reset()[0].tobytes() != other.reset()[0].tobytes()


def test_what_cannot_be_is_refused():
    envs = VectorEnvironment(CartPole(max_steps=1), 3, autoreset_mode="Disabled")
    with pytest.raises(EnvironmentContractError, match=r"no episodes are running; call reset\(\)"):
        envs.step([0, 0, 0])
    envs.reset(seed=0)
    for wrong in ([0, 0], [0, 0, 2], [0.0, 0.0, 0.0], None):
        with pytest.raises(EnvironmentContractError, match="expected actions in MultiDiscrete"):
            envs.step(wrong)
    envs.step([0, 1, 0])
    with pytest.raises(EnvironmentContractError, match=r"3 episodes have ended; call reset\(opt"):
        envs.step([0, 0, 0])
    for wrong in ([True], np.zeros(3, bool), np.ones(3)):
        with pytest.raises(EnvironmentContractError, match="expected reset_mask as 3 bools"):
            envs.reset(options={"reset_mask": wrong})
    with pytest.raises(EnvironmentContractError, match="unknown option 'hi'; there are low, high"):
        envs.reset(options={"hi": 1})
    with pytest.raises(EnvironmentContractError, match="expected num_envs >= 1, received 0"):
        VectorEnvironment(CartPole(), 0)
    with pytest.raises(EnvironmentContractError, match=r"written in tensors .*SyncVectorEnv"):
        VectorEnvironment(envs, 2)
    with pytest.raises(ValueError, match="is not a valid AutoresetMode"):
        VectorEnvironment(CartPole(), 2, autoreset_mode="Never")


def test_each_one_is_drawn():
    envs = VectorEnvironment(GridWorld(3, render_mode="ansi"), 2)
    with pytest.raises(EnvironmentContractError, match="nothing to draw yet"):
        envs.render()
    envs.reset(seed=0)
    envs.step([1, 2])
    assert envs.render() == (". @ .\n. . .\n. . G", ". . .\n@ . .\n. . G")
    assert VectorEnvironment(GridWorld(), 2).render() is None
    frames = VectorEnvironment(GridWorld(render_mode="rgb_array"), 2)
    frames.reset(seed=0)
    assert [frame.shape for frame in frames.render()] == [(320, 320, 3)] * 2
    assert repr(frames) == "VectorEnvironment(GridWorld(), 2, NextStep)"


@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_makes_it(name):
    entry = ENVIRONMENTS[name]
    made = gymnasium.make_vec(entry.gymnasium_id, num_envs=3)
    assert type(made) is VectorEnvironment
    assert (made.num_envs, made.env.max_steps) == (3, entry.limit)
    shorter = gymnasium.make_vec(entry.gymnasium_id, num_envs=2, max_episode_steps=2)
    assert shorter.env.max_steps == 2
    same = gymnasium.make_vec(entry.gymnasium_id, num_envs=2, autoreset_mode="SameStep")
    assert same.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert gymnasium.make_vec(gymnasium.spec(entry.gymnasium_id).to_json() and made.spec)
    single = gymnasium.make_vec(entry.gymnasium_id, num_envs=2, vectorization_mode="sync")
    assert type(single) is SyncVectorEnv


def test_other_names_are_no_vectors():
    from dilim.rl.envs import table

    with pytest.raises(AttributeError, match="has no attribute 'vector_chess'"):
        _ = table.vector_chess


def test_a_new_seed_makes_no_new_program():
    envs = VectorEnvironment(CartPole(), 2, compile_after=0)
    for seed in range(4):
        envs.reset(seed=seed)
        envs.step([0, 1])
        envs.set_state(envs.get_state())
        envs.step([1, 1])
    assert envs._step.statistics.variants <= 2
