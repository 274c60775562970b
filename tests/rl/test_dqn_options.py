"""The options of DQN in all combinations: one native program, the bits of eager, exact resuming."""

import itertools

import numpy as np
import pytest
from gymnasium import spaces

import dilim
from dilim.errors import DtypeError, TrainingWarning
from dilim.rl import DQN, CartPole, GridWorld, LinearDecay, TensorEnvironment
from dilim.rl.loop import play
from dilim.rl.training import enter

FLAGS = {"dueling": True, "n_step": 3, "prioritized": True, "memory_saving": True}
COMBINATIONS = [
    {"double": sum(chosen) % 2 == 0}
    | {name: value for (name, value), on in zip(FLAGS.items(), chosen, strict=True) if on}
    for chosen in itertools.product((False, True), repeat=len(FLAGS))
]
SMALL = {"hidden_sizes": [6], "batch_size": 8, "buffer_capacity": 64, "train_frequency": 3}


def same_state(first, second):
    (arrays, header), (others, other) = first.state(), second.state()
    assert arrays.keys() == others.keys()
    different = [name for name in arrays if not np.array_equal(arrays[name], others[name])]
    return not different and header == other


def trained(env, parts, compiled=False, count=1, **options):
    agent = DQN.for_env(env, seed=3, **{**SMALL, **options})
    world = enter(agent, env, None, count)
    loop = dilim.compile(play, compile_after=0, strict=True) if compiled else play
    for steps in parts:
        loop(agent, world, steps, 1000)
        agent.make_room()
    return agent


@pytest.mark.parametrize(
    "options", COMBINATIONS, ids=lambda options: "-".join([*options][1:]) or "plain"
)
def test_every_combination_is_one_native_program_with_the_same_bits(options):
    env = CartPole(max_steps=12)
    eager = trained(env, (70, 50), **options)
    native = trained(env, (70, 50), compiled=True, **options)
    assert eager.updates > 10
    assert same_state(eager, native)


@pytest.mark.parametrize(
    "options", COMBINATIONS, ids=lambda options: "-".join([*options][1:]) or "plain"
)
def test_every_combination_goes_on_as_if_it_had_not_stopped(options, tmp_path):
    whole = trained(CartPole(max_steps=12), (95,), **options)
    first = trained(CartPole(max_steps=12), (53,), **options)
    first.save(tmp_path / "agent")
    again = DQN.load(tmp_path / "agent")
    assert again.options == first.options
    play(again, enter(again, CartPole(max_steps=12), None, 1), 42, 1000)
    assert same_state(whole, again)


@pytest.mark.parametrize("count", [3, 5])
def test_many_environments_at_once_and_then_others(count):
    options = {"n_step": 4, "memory_saving": True, "prioritized": True}
    agents = []
    for compiled in (False, True):
        agent = trained(CartPole(max_steps=9), (30,), compiled, count, **options)
        enter(agent, CartPole(max_steps=9), None, 2)
        loop = dilim.compile(play, compile_after=0, strict=True) if compiled else play
        loop(agent, agent._world, 30, 1000)
        agents.append(agent)
    assert same_state(*agents)


# --- observations of small integers ---------------------------------------------------------


class Digits(TensorEnvironment):
    """Say which of four bytes is the largest."""

    def __init__(self):
        super().__init__(max_steps=3)
        self.observation_space = spaces.Box(0, 255, (4,), dtype=np.uint8)
        self.action_space = spaces.Discrete(4)

    def initial(self, generator, shape=()):
        return generator.integers(0, 256, (*shape, 4))

    def transition(self, state, action, generator):
        return generator.integers(0, 256, state.shape)

    def observation(self, state):
        return state.astype("uint8")

    def reward(self, state, action, next_state):
        return (action == state.argmax(axis=-1)).astype("float32")

    def terminal(self, state):
        return state.sum(axis=-1) < 0


class Halves(Digits):
    """It shows what its space does not hold."""

    def observation(self, state):
        return state.astype("float32") * 0.5


@pytest.mark.parametrize("memory_saving", [False, True])
def test_bytes_are_kept_as_bytes(memory_saving):
    options = {"memory_saving": memory_saving, "n_step": 2}
    eager = trained(Digits(), (60,), **options)
    assert eager.observation_dtype == "uint8"
    assert eager.replay.observations.dtype is dilim.uint8
    assert eager.replay.observations.numpy().max() > 127
    assert same_state(eager, trained(Digits(), (60,), compiled=True, **options))
    as_floats = trained(Digits(), (60,), observation_dtype="float32", **options)
    assert as_floats.loss.item() == eager.loss.item()


def test_what_bytes_cannot_hold_is_refused():
    agent = DQN.for_env(Halves(), seed=0, **SMALL)
    with pytest.raises(ValueError, match="not made of uint8, in which observations are kept"):
        agent.train(Halves(), steps=50)
    agent = DQN.for_env(Halves(), seed=0, observation_dtype="float32", **SMALL)
    agent.train(Halves(), steps=50)
    with pytest.raises(DtypeError, match="expected observation_dtype float32 or an integer dtype"):
        DQN(4, observation_dtype="float64")


# --- plans that teach nothing ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "steps", "message"),
    [
        (
            {"learning_starts": 500},
            400,
            "learning_starts=500, and there will be 400 steps: nothing",
        ),
        ({"learning_starts": 90}, 100, "is more than buffer_capacity=64: the first steps will be"),
        ({"batch_size": 65}, 50, "is less than batch_size=65, so that every batch holds the same"),
        (
            {"learning_starts": 60, "epsilon_schedule": LinearDecay(1.0, 0.1, 60)},
            70,
            r"has come to its end, 0\.1, when learning begins at step 60",
        ),
    ],
)
def test_a_plan_that_teaches_nothing_is_named(options, steps, message):
    agent = DQN.for_env(GridWorld(4), seed=0, **{**SMALL, **options})
    with pytest.warns(TrainingWarning, match=message) as caught:
        agent.train(GridWorld(4), steps=steps)
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"learning_starts": 64},
        {"epsilon_schedule": dilim.optim.Constant(0.1)},
        {"epsilon_schedule": LinearDecay(1.0, 0.1, 100)},
    ],
)
def test_nothing_is_said_of_a_plan_that_can_work(options, recwarn):
    agent = DQN.for_env(GridWorld(4), seed=0, **{**SMALL, **options})
    agent.train(GridWorld(4), steps=70)
    agent.train(GridWorld(4), steps=1)
    agent.train(GridWorld(4), episodes=2)
    assert not [x for x in recwarn if x.category is TrainingWarning]
