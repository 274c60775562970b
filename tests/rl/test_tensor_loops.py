"""Every built-in environment in loops of tensors: one, many, compiled and by hand are the same."""

import numpy as np
import pytest
from gymnasium import spaces
from rl_worlds import random_actions, short_environment

import dilim
from dilim.rl import ENVIRONMENTS, CartPole, TensorEnvironment
from dilim.rl.envs import states

NAMES = sorted(ENVIRONMENTS)
STEPS = 60


def short(name):
    """An environment with episodes short enough that several end in a test."""
    return short_environment(name, 11)


def play(env, generator, actions, count, shape):
    """What is left after so many steps, and digests of everything that was seen on the way."""
    running, observation = env.start(generator, shape)
    shown = dilim.zeros(shape)
    seen = observation * 0.0
    for _ in range(count):
        action = random_actions(env, actions, shape)
        running, observation, reward, terminated, truncated, following = env.advance(
            running, action, generator
        )
        shown = shown * 0.9 + reward + terminated.astype("float32") * 3.0
        shown = shown + truncated.astype("float32") * 5.0
        seen = seen * 0.5 + following + observation * 0.25
    return running, observation, shown, seen


def numbers(result):
    running, *others = result
    state, steps = running
    tensors = [*states.parts(state).values(), steps, *others]
    return [(x.dtype.name, x.shape, x.numpy().tobytes()) for x in tensors]


def without_batch(result):
    return [(kind, shape[1:], data) for kind, shape, data in numbers(result)]


@pytest.mark.parametrize("name", NAMES)
def test_one_environment_is_the_same_alone_and_in_a_batch(name):
    env = short(name)
    alone = play(env, dilim.Generator(4), dilim.Generator(5), STEPS, ())
    batch = play(env, dilim.Generator(4), dilim.Generator(5), STEPS, (1,))
    assert numbers(alone) == without_batch(batch)


@pytest.mark.parametrize("shape", [(), (5,)], ids=["one", "many"])
@pytest.mark.parametrize("name", NAMES)
def test_compiled_loops_give_the_same_bits(name, shape):
    env = short(name)
    expected = play(env, dilim.Generator(4), dilim.Generator(5), STEPS, shape)

    def whole(generator, actions, count):
        return play(env, generator, actions, count, shape)

    compiled = dilim.compile(whole, compile_after=0)
    assert numbers(compiled(dilim.Generator(4), dilim.Generator(5), STEPS)) == numbers(expected)
    told = compiled.explain()
    assert [x for x in told.transfers if x.in_loop] == []
    assert told.fallbacks == []


@pytest.mark.parametrize("name", NAMES)
def test_the_loop_sees_what_reset_and_step_show(name):
    env = short(name)
    running, expected = env.start(dilim.Generator(4), ())
    generator, actions = dilim.Generator(4), dilim.Generator(5)
    running, expected = env.start(generator)
    other = short(name)
    observation, _ = other.reset(seed=4)
    ends = 0
    for _ in range(STEPS):
        assert observation.tobytes() == expected.numpy().tobytes()
        action = random_actions(env, actions, ())
        running, expected, reward, terminated, truncated, following = env.advance(
            running, action, generator
        )
        given = action.numpy() if action.shape else int(action)
        observation, *outcome, _ = other.step(given)
        assert observation.tobytes() == following.numpy().tobytes()
        assert outcome == [float(reward), bool(terminated), bool(truncated)]
        if terminated or truncated:
            observation, _ = other.reset()
            ends += 1
        assert int(running[1]) == other.steps
    assert ends >= 2


def only(state, row):
    return states.like(state, [x[row] for x in states.parts(state).values()])


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_a_batch_follow_the_rules_of_one(name):
    env = short(name)
    generator = dilim.Generator(6)
    (state, _), _ = env.start(generator, (7,))
    for _ in range(9):
        action = random_actions(env, dilim.Generator(1), (7,))
        before = generator.state.tolist()
        following = env.transition(state, action, generator)
        draws = generator.state.tolist() != before
        for row in range(1 if draws else 7):  # the first row gets the first numbers
            one_before = only(state, row)
            again = dilim.Generator()
            again.state = np.array(before, np.uint32)
            one_after = env.transition(one_before, action[row], again)
            many = only(following, row)
            for x, y in zip(
                states.parts(one_after).values(), states.parts(many).values(), strict=True
            ):
                assert (x.dtype, x.numpy().tobytes()) == (y.dtype, y.numpy().tobytes())
            for rule in (env.observation, env.terminal):
                assert rule(one_after).numpy().tobytes() == rule(following)[row].numpy().tobytes()
            one_reward = env.reward(one_before, action[row], one_after)
            assert float(one_reward) == float(env.reward(state, action, following)[row])
        state = following
        assert env.observation(state).shape == (7, *env.observation_space.shape)
        assert env.reward(state, action, state).dtype is dilim.float32
        assert env.terminal(state).dtype is dilim.bool


class Timer(TensorEnvironment):
    """Counts; the rules end it at 4, and cut it at 3 if the action says so."""

    def __init__(self, max_steps=None):
        super().__init__(max_steps=max_steps)
        self.observation_space = spaces.Box(0.0, 10.0, (1,), dtype=np.float32)
        self.action_space = spaces.Discrete(2)

    def initial(self, generator, shape=()):
        return dilim.zeros(shape), dilim.zeros(shape, dtype=dilim.bool)

    def transition(self, state, action, generator):
        return state[0] + 1.0, action == 1

    def observation(self, state):
        return state[0][..., None]

    def reward(self, state, action, next_state):
        return next_state[0]

    def terminal(self, state):
        return state[0] >= 4.0

    def truncation(self, state):
        return (state[0] >= 3.0) & state[1]


def test_rules_may_truncate():
    env = Timer()
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(4)] == [(False, False)] * 3 + [(True, False)]
    env.reset()
    assert [env.step(1)[2:4] for _ in range(3)] == [(False, False)] * 2 + [(False, True)]
    generator = dilim.Generator(0)
    running, observation = env.start(generator, (2,))
    log = []
    for _ in range(4):
        running, observation, _, terminated, truncated, following = env.advance(
            running, dilim.tensor([0, 1]), generator
        )
        log.append((following[:, 0].tolist(), observation[:, 0].tolist(), running[1].tolist()))
    assert log == [
        ([1.0, 1.0], [1.0, 1.0], [1, 1]),
        ([2.0, 2.0], [2.0, 2.0], [2, 2]),
        ([3.0, 3.0], [3.0, 0.0], [3, 0]),
        ([4.0, 1.0], [0.0, 1.0], [0, 1]),
    ]
    assert terminated.tolist() == [True, False]
    assert truncated.tolist() == [False, False]


def test_the_end_by_the_rules_wins_over_the_limit():
    generator = dilim.Generator(0)
    for limit, expected in ((3, (False, True)), (4, (True, False))):
        env = Timer(max_steps=limit)
        running, _ = env.start(generator)
        for _ in range(limit):
            running, _, _, terminated, truncated, _ = env.advance(
                running, dilim.tensor(0), generator
            )
        assert (bool(terminated), bool(truncated)) == expected


def test_starts_are_drawn_only_where_an_episode_ends():
    env, generator = CartPole(), dilim.Generator(0)
    running, _ = env.start(generator, (3,))
    before = generator.state.tolist()
    env.advance(running, dilim.tensor([0, 1, 0]), generator)
    assert generator.state.tolist() == before
