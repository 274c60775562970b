"""DQN and its memory against numbers worked out by hand."""

import warnings

import numpy as np
import pytest

import dilim
from dilim.errors import ShapeError, TrainingWarning
from dilim.rl import DQN, CartPole, GridWorld, ReplayBuffer, preset


def with_values(agent, network, weight, bias):
    """Make a network without hidden layers linear with these numbers."""
    w, b = getattr(agent, network).parameters()
    with dilim.no_grad():
        w[...] = dilim.tensor(weight)
        b[...] = dilim.tensor(bias)


def batch(observation, action, reward, following, terminated):
    return (
        dilim.tensor([observation]),
        dilim.asarray([action]),
        dilim.tensor([reward]),
        dilim.tensor([following]),
        dilim.asarray([terminated]),
    )


def test_what_follows_counts_after_a_cut_and_not_after_an_end():
    agent = DQN(1, [], 2, gamma=0.99, seed=0)
    with_values(agent, "target", [[0.0, 0.0]], [10.0, 12.0])
    cut = agent.targets(batch([0.0], 0, 1.0, [0.0], terminated=False))
    end = agent.targets(batch([0.0], 0, 1.0, [0.0], terminated=True))
    assert (cut.tolist(), end.tolist()) == (pytest.approx([12.88]), [1.0])


def test_double_takes_the_action_from_the_network_and_its_value_from_the_target():
    agent = DQN(1, [], 2, gamma=0.5, double=True, seed=0)
    with_values(agent, "network", [[0.0, 0.0]], [3.0, 2.0])
    with_values(agent, "target", [[0.0, 0.0]], [10.0, 12.0])
    assert agent.targets(batch([0.0], 0, 1.0, [0.0], terminated=False)).tolist() == [6.0]


def test_no_gradient_flows_through_the_target():
    agent = DQN(1, [], 1, gamma=0.9, loss="mse", batch_size=1, seed=0)
    for network in ("network", "target"):
        with_values(agent, network, [[0.5]], [0.0])
    agent.replay.add(*batch([1.0], 0, 1.0, [2.0], terminated=False))
    agent.learn()
    # a tenth of the gradient, -2.8; the gradient itself is gone
    assert agent.optimizer.state_dict()["first_moment.0"].tolist() == [[pytest.approx(-0.28)]]
    assert all(x.grad is None for x in agent.network.parameters())


def test_the_target_follows_when_it_is_time():
    agent = DQN.for_env(CartPole(), target_update_frequency=50, batch_size=4, seed=0)
    env = CartPole()
    agent.train(env, steps=49)
    assert agent.target.parameters()[0].tolist() != agent.network.parameters()[0].tolist()
    agent.train(env, steps=1)
    assert agent.target.parameters()[0].tolist() == agent.network.parameters()[0].tolist()
    soft = DQN(1, [], 1, target_update_rate=0.25, seed=0)
    with_values(soft, "network", [[2.0]], [4.0])
    with_values(soft, "target", [[1.0]], [0.0])
    soft.move_target()
    assert [x.tolist() for x in soft.target.parameters()] == [[[1.25]], [1.0]]


@pytest.mark.parametrize(
    ("options", "updates"),
    [
        ({"learning_starts": 40}, 61),
        ({"learning_starts": 0, "train_frequency": 10}, 10),
        ({"learning_starts": 50, "train_frequency": 25, "gradient_steps": 4}, 12),
        ({"learning_starts": 1000}, 0),
    ],
)
def test_updates_come_when_they_are_due(options, updates):
    agent = DQN.for_env(CartPole(), batch_size=4, seed=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)  # of the plan without an update
        agent.train(CartPole(), steps=100)
    assert agent.updates == agent.optimizer.step_count == updates


def test_epsilon_goes_on_after_a_resume():
    schedule = dilim.rl.LinearDecay(1.0, 0.05, 10_000)
    agent = DQN.for_env(CartPole(), epsilon_schedule=schedule, learning_starts=9000, seed=0)
    with pytest.warns(TrainingWarning, match="nothing will be learned"):
        agent.train(CartPole(), steps=4000)
    again = DQN.from_state(*agent.state())
    assert again.epsilon == agent.epsilon == pytest.approx(0.62)
    again.steps += 1
    assert again.epsilon == pytest.approx(0.619905)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 1.5}, r"DQN: expected gamma from 0 to 1, received 1\.5"),
        ({"loss": "l1"}, "expected loss 'huber' or 'mse', received 'l1'"),
        ({"batch_size": 0}, "expected batch_size at least 1, received 0"),
        ({"target_update_rate": 0.0}, "target_update_rate above 0 and up to 1"),
        ({"max_gradient_norm": 0.0}, "max_gradient_norm above 0, or None"),
        ({"learning_starts": -1}, "learning_starts at least 0"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        DQN(4, **options)


# --- the memory -----------------------------------------------------------------------------


def step(number, size=1):
    rows = dilim.full((size, 2), float(number))
    ends = dilim.asarray([number % 2 == 0] * size)
    actions = dilim.full((size,), number, dtype=dilim.int64)
    return rows, actions, dilim.full((size,), float(number)), rows + 0.5, ends


def test_the_newest_steps_are_kept_and_drawn_alike():
    buffer = ReplayBuffer(5, 2)
    for number in range(8):
        buffer.add(*step(number))
    assert (len(buffer), buffer.count) == (5, 8)
    observations, actions, rewards, following, ends = buffer.sample(dilim.Generator(0), 5000)
    counts = np.bincount(actions.numpy(), minlength=8)
    assert counts[:3].tolist() == [0, 0, 0]
    assert (abs(counts[3:] - 1000) < 120).all()
    assert observations[:, 0].tolist() == rewards.tolist() == actions.tolist()
    assert following[:, 1].tolist() == (rewards + 0.5).tolist()
    assert ends.tolist() == [a % 2 == 0 for a in actions.tolist()]


def test_several_steps_at_once_go_round_the_end():
    buffer = ReplayBuffer(5, 2)
    for number in range(4):
        buffer.add(*step(number, size=2))
    assert buffer.actions.tolist() == [2, 3, 3, 1, 2]


def test_what_does_not_fit_is_refused_before_anything_is_taken():
    with pytest.raises(MemoryError, match=r"3\.77 TiB, 1\.89 TiB .* At most [\d,]+ fit"):
        ReplayBuffer(1_000_000, 3 * 960 * 720, dtype=dilim.uint8)
    with pytest.raises(ShapeError, match="capacity of at least 1, received 0"):
        ReplayBuffer(0, 2)
    small = ReplayBuffer(10, 6, dtype=dilim.uint8)
    _, actions, rewards, _, ends = step(1)
    small.add(dilim.full((1, 6), 200.0), actions, rewards, dilim.full((1, 6), 7.0), ends)
    assert small.observations.dtype is dilim.uint8
    assert small.observations[0].tolist() == [200] * 6


# --- learning -------------------------------------------------------------------------------


def test_cart_pole_is_learned():
    settings = preset("cartpole", "dqn")
    agent = DQN.for_env(CartPole(), seed=1003, **settings.options)
    agent.train(CartPole(), episodes=settings.episodes, until=settings.until)
    assert agent.last_evaluation >= 475.0
    assert np.mean(agent.evaluate(CartPole(), 50)) >= 475.0


def test_the_shortest_way_is_learned():
    settings = preset("gridworld", "dqn")
    agent = DQN.for_env(GridWorld(), seed=1000, **settings.options)
    agent.train(
        GridWorld(), episodes=settings.episodes, until=settings.until, evaluation_episodes=1
    )
    assert agent.evaluate(GridWorld(), 1) == [pytest.approx(0.87)]
