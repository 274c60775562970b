"""The loop of training: whole as a native program, and with the bits of eager execution."""

import numpy as np
import pytest
from rl_agents import every_agent, fit, made, same_state

import dilim
from dilim.dtypes import float32
from dilim.errors import NonFiniteError
from dilim.rl import DQN, CartPole, FrozenLake, GridWorld, MountainCar, Snake
from dilim.rl.evaluation import play_out
from dilim.rl.loop import EpisodeLog, play
from dilim.rl.training import enter


def trained(kind, env, parts, compiled, **options):
    """An agent after so many steps in parts; compiled with nothing handed over, or eager."""
    agent = made(kind, env, seed=3, **options)
    world = enter(agent, env, None)
    loop = dilim.compile(play, compile_after=0, strict=True) if compiled else play
    for steps in parts:
        loop(agent, world, steps, 1000)
    return agent


@every_agent
def test_all_of_it_is_one_native_program_with_the_same_bits(kind):
    parts = (120, 1, 79, 300)
    eager = trained(kind, fit(kind, CartPole)(max_steps=40), parts, compiled=False)
    native = trained(kind, fit(kind, CartPole)(max_steps=40), parts, compiled=True)
    assert eager.updates > 2
    assert eager.log.finished == native.log.finished > 0
    assert eager.log.returns.tolist() == native.log.returns.tolist()
    assert same_state(eager, native)


@pytest.mark.parametrize("env", [GridWorld(4), FrozenLake(), Snake(6), MountainCar()], ids=repr)
def test_in_every_environment(env):
    options = {"batch_size": 8, "hidden_sizes": [8], "target_update_frequency": 7}
    eager = trained(DQN, env, (50,), compiled=False, **options)
    native = trained(DQN, env, (50,), compiled=True, **options)
    assert eager.updates > 0
    assert same_state(eager, native)


@pytest.mark.parametrize(
    "options",
    [
        {"double": True, "loss": "mse", "max_gradient_norm": 0.1},
        {"target_update_rate": 0.05, "target_update_frequency": 1, "learning_starts": 50},
        {"train_frequency": 4, "gradient_steps": 2, "buffer_capacity": 64},
        {"epsilon_schedule": dilim.rl.ExponentialDecay(), "learning_rate": dilim.rl.LinearDecay()},
    ],
    ids=lambda options: "-".join(options),
)
def test_with_all_options_of_dqn(options):
    eager = trained(DQN, CartPole(), (200,), compiled=False, hidden_sizes=[8], **options)
    native = trained(DQN, CartPole(), (200,), compiled=True, hidden_sizes=[8], **options)
    assert eager.updates > 0
    assert same_state(eager, native)


def test_the_slices_show_the_loop():
    agent = DQN.for_env(CartPole(), seed=0, hidden_sizes=[4])
    agent.loop = dilim.compile(play, compile_after=0)
    agent.train(CartPole(), steps=100)
    text = agent.slices()
    assert "\n    for _ in range(steps):\n" in text
    assert "# graph: optimizer.step()" in text
    assert "# removed:" not in text


# --- the log --------------------------------------------------------------------------------


def test_episodes_that_end_in_one_step_are_logged_in_order():
    log = EpisodeLog(3)
    no, loss = dilim.asarray([False] * 3), dilim.asarray(0.5, dtype=float32)
    log.add(dilim.tensor([1.0, 2.0, 3.0]), no, no, loss, 3)
    assert log.finished == 0
    one, two = dilim.asarray([True, False, False]), dilim.asarray([False, False, True])
    log.add(dilim.tensor([0.5, 0.5, 0.5]), one, two, loss, 6)
    log.add(dilim.tensor([7.0, 7.0, 7.0]), one, no, loss, 9)
    assert log.finished == 3
    assert log.returns[:3].tolist() == [1.5, 3.5, 7.0]
    assert log.ended_lengths[:3].tolist() == [2, 2, 1]
    assert log.terminations[:3].tolist() == [True, False, True]
    assert log.steps[:3].tolist() == [6, 6, 9]
    assert log.totals.tolist() == [0.0, 9.5, 7.0]
    assert log.lengths.tolist() == [0, 3, 1]


# --- bad numbers ----------------------------------------------------------------------------


class Falling(CartPole):
    """Its reward is NaN where the cart is right of a place."""

    def reward(self, state, action, next_state):
        bad = dilim.full(next_state.shape[:-1], float("nan"))
        return dilim.where(
            next_state[..., 0] > 0.05, bad, super().reward(state, action, next_state)
        )


@every_agent
def test_bad_numbers_of_a_tensor_environment_stop_training(kind):
    agent = made(kind, fit(kind, Falling)(), seed=0)
    with pytest.raises(
        NonFiniteError, match=r"episode \d+, step \d+ \(\d+ in all\): the reward or"
    ):
        agent.train(fit(kind, Falling)(), steps=2000)
    assert all(np.isfinite(x.numpy()).all() for x in agent.network.parameters())
    steps = agent.steps
    assert agent.train(fit(kind, CartPole)(), steps=10) is not None
    assert agent.steps == steps + 10


# --- evaluation -----------------------------------------------------------------------------


@every_agent
def test_an_evaluation_is_one_native_program_with_the_same_bits(kind):
    world = fit(kind, CartPole)
    env = world(max_steps=300)
    agents = [made(kind, env, seed=3) for _ in range(2)]
    agents[0].trial_loop = play_out
    agents[1].trial_loop = dilim.compile(play_out, compile_after=0, strict=True)
    eager, native = (
        [agent.evaluate(env, 12, seed) for seed in (1, 2)]
        + [agent.evaluate(world(max_steps=5), 3, 1)]
        for agent in agents
    )
    assert eager == native
    assert eager[0] != eager[1]
    assert eager[2] == [5.0, 5.0, 5.0]


def test_a_long_evaluation_goes_on_to_its_end():
    class Endless(CartPole):
        def terminal(self, state):
            return super().terminal(state) & False

    env = Endless(max_steps=2500)
    assert DQN.for_env(env, seed=0, hidden_sizes=[4]).evaluate(env, 2) == [2500.0, 2500.0]
