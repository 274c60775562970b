"""A2C, PPO, their rollout and their advantages, and training in many environments at once."""

import numpy as np
import pytest

import dilim
from dilim.rl import A2C, DQN, PPO, REINFORCE, CartPole, GridWorld
from dilim.rl.loop import play
from dilim.rl.returns import advantages
from dilim.rl.rollout import Rollout
from dilim.rl.training import enter

BOTH = pytest.mark.parametrize("kind", [A2C, PPO])


def column(*numbers):
    return dilim.tensor([[x] for x in numbers])


# --- advantages -----------------------------------------------------------------------------


def test_advantages_of_an_episode_that_ends():
    found = advantages(
        *(column(1.0, 1.0, 1.0), column(2.0, 2.0, 2.0), dilim.tensor([2.0])),
        *(column(0.0, 0.0, 1.0), 0.99, 0.95),
    )
    np.testing.assert_allclose(found[:, 0].numpy(), [1.01714975, 0.0395, -1.0], rtol=1e-5)


def test_advantages_are_the_sum_of_what_was_better_than_expected():
    random = np.random.default_rng(0)
    length, count, gamma, decay = 7, 3, 0.9, 0.8
    rewards, values = random.normal(size=(2, length, count))
    last, ends = random.normal(size=count), (random.random((length, count)) < 0.3) * 1.0
    following = np.concatenate([values[1:], last[None]])
    deltas = rewards + gamma * (1 - ends) * following - values
    expected = np.zeros((length, count))
    for t in range(length):
        for n in range(count):
            weight = 1.0
            for k in range(t, length):
                expected[t, n] += weight * deltas[k, n]
                weight *= gamma * decay * (1 - ends[k, n])
    given = (dilim.asarray(x, dtype=dilim.float64) for x in (rewards, values, last, ends))
    np.testing.assert_allclose(advantages(*given, gamma, decay).numpy(), expected, rtol=1e-12)


# --- updates --------------------------------------------------------------------------------


BOX = {"action_low": [-1.0, -2.0], "action_high": [1.0, 2.0]}


def filled(kind, box, **options):
    """An agent whose rollout of 4 steps of 2 environments is full; nothing was learned."""
    space = BOX if box else {}
    agent = kind(3, [5], None, 0.1, 0.9, rollout_length=4, seed=0, **space, **options)
    if box:
        with dilim.no_grad():
            agent.network.actor.log_std[...] = dilim.tensor([0.3, -0.2])
    agent.prepare_for(2)
    random = np.random.default_rng(1)
    draw = [dilim.asarray(random.normal(size=(4, 2, 3)), dtype=dilim.float32)]
    for t in range(4):
        ends = dilim.asarray([t == 1, False])
        actions = dilim.asarray(random.integers(0, 2, 2))
        if box:
            actions = dilim.asarray(random.normal(size=(2, 2)), dtype=dilim.float32)
        rewards = dilim.asarray(random.normal(size=2), dtype=dilim.float32)
        agent.rollout.add(draw[0][t], actions, rewards, ends)
    return agent, draw[0][3] + 1.0


def loss_in_numpy(kind, agent, weights, rows, old, gains, targets):
    """The loss of the class docstring in float64."""
    observations, actions = (x.numpy() for x in agent.rollout.steps())
    observations, actions = observations[rows].astype(np.float64), actions[rows]
    scores, values = (
        np.tanh(observations @ w1 + b1) @ w2 + b2 for w1, b1, w2, b2 in (weights[:4], weights[-4:])
    )
    if len(weights) == 9:
        log_std = weights[4]
        density = -0.5 * ((actions - scores) / np.exp(log_std)) ** 2 - log_std
        new = (density - 0.5 * np.log(2 * np.pi)).sum(axis=1)
        entropy = (log_std + 0.5 + 0.5 * np.log(2 * np.pi)).sum()
    else:
        logp = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        new = logp[np.arange(len(rows)), actions]
        entropy = -(np.exp(logp) * logp).sum(axis=1).mean()
    error = ((values[:, 0] - targets[rows]) ** 2).mean()
    if kind is A2C:
        return 0.5 * error - (new * gains[rows]).mean() - 0.01 * entropy
    scaled = (gains[rows] - gains[rows].mean()) / gains[rows].std()
    ratio = np.exp(new - old[rows])
    gain = np.minimum(ratio * scaled, np.clip(ratio, 0.8, 1.2) * scaled).mean()
    return 0.25 * error - gain - 0.01 * entropy


@BOTH
@pytest.mark.parametrize("box", [False, True], ids=["several", "box"])
def test_the_gradient_is_that_of_the_loss(kind, box, monkeypatch):
    options = {"epochs": 1, "minibatches": 1} if kind is PPO else {}
    agent, following = filled(kind, box, entropy_bonus=0.01, max_gradient_norm=None, **options)
    parameters = agent.network.parameters()
    found = []
    monkeypatch.setattr(
        agent.optimizer, "step", lambda: found.extend(x.grad.numpy(copy=True) for x in parameters)
    )
    gains, values = (x.numpy().astype(np.float64) for x in agent.estimates(following))
    observations, actions = agent.rollout.steps()
    old = agent.policy(observations, actions)[0].numpy() - 0.1  # so that some ratios are clipped
    if kind is PPO:
        some = [*(dilim.asarray(x) for x in (gains, gains + values))]
        agent.update(
            *(observations, actions, dilim.asarray(old)),
            *(x.reshape((-1,)).astype("float32") for x in some),
        )
    else:
        agent.learn_from(following)
    weights = [x.numpy().astype(np.float64) for x in parameters]
    rows = np.arange(8)
    arguments = (rows, old.astype(np.float64), gains.reshape(-1), (gains + values).reshape(-1))
    for position, weight in enumerate(weights):
        for index in np.ndindex(weight.shape):
            moved = [[w.copy() for w in weights] for _ in range(2)]
            moved[0][position][index] += 1e-5
            moved[1][position][index] -= 1e-5
            above, below = (loss_in_numpy(kind, agent, w, *arguments) for w in moved)
            expected = (above - below) / 2e-5
            assert found[position][index] == pytest.approx(expected, rel=2e-3, abs=2e-5)


@BOTH
def test_what_was_seen_last_counts_after_a_cut(kind):
    agent = kind(2, [4], 2, gamma=0.5, rollout_length=8, seed=0)
    one, following = dilim.ones((1, 2)), dilim.full((1, 2), 3.0)
    yes, no = dilim.asarray([True]), dilim.asarray([False])
    for terminated, truncated in ((no, yes), (yes, no), (no, no)):
        agent.remember(one, dilim.asarray([0]), dilim.ones((1,)), following, terminated, truncated)
    cut = 1.0 + 0.5 * float(agent.values(following)[0])
    assert agent.rollout.rewards[:3, 0].tolist() == [pytest.approx(cut), 1.0, 1.0]
    assert agent.rollout.ends[:3, 0].tolist() == [1.0, 1.0, 0.0]


@BOTH
def test_updates_come_with_full_rollouts(kind):
    options = {"epochs": 3, "minibatches": 2} if kind is PPO else {}
    agent = kind.for_env(CartPole(), rollout_length=16, seed=0, **options)
    env = CartPole()
    agent.train(env, steps=40)
    assert agent.updates == (12 if kind is PPO else 2)
    assert agent.rollout.place == 8
    agent.train(env, steps=8)
    assert agent.updates == (18 if kind is PPO else 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 1.5}, r"PPO: expected gamma from 0 to 1, received 1\.5"),
        ({"clip_range": 0.0}, "clip_range above 0"),
        ({"epochs": 0}, "epochs at least 1"),
        ({"gae_lambda": -1.0}, "gae_lambda from 0 to 1"),
        ({"rollout_length": 0}, "rollout_length at least 1"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        PPO(4, **options)


# --- many environments ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [A2C, PPO, DQN])
def test_many_at_once_are_one_program_with_the_bits_of_eager(kind):
    env = CartPole(max_steps=30)
    agents = []
    for loop in (play, dilim.compile(play, compile_after=0, strict=True)):
        agent = kind.for_env(env, seed=3, hidden_sizes=[8])
        world = enter(agent, env, None, 8)
        for steps in (70, 1, 129):
            loop(agent, world, steps, 1000)
        agents.append(agent)
    (arrays, header), (others, other) = (agent.state() for agent in agents)
    assert agents[0].updates > 0
    assert agents[0].steps == 1600
    assert header == other
    assert [name for name in arrays if not np.array_equal(arrays[name], others[name])] == []


@pytest.mark.parametrize("kind", [A2C, PPO, DQN])
def test_many_resume_exactly(kind, tmp_path):
    whole, agent = (kind.for_env(CartPole(), seed=1, hidden_sizes=[8]) for _ in range(2))
    returns = agent.train(CartPole(), steps=400, num_envs=4)
    agent.save(tmp_path / "agent")
    agent = kind.load(tmp_path / "agent")
    returns += agent.train(CartPole(), steps=600, num_envs=4)
    assert returns == whole.train(CartPole(), steps=1000, num_envs=4)
    first, second = agent.state(), whole.state()
    assert all(np.array_equal(first[0][name], second[0][name]) for name in first[0])


def test_each_episode_of_many_is_told_once_and_in_order():
    seen = []
    agent = A2C.for_env(CartPole(), seed=0)
    returns = agent.train(CartPole(), steps=2000, num_envs=4, on_episode=seen.append)
    assert [e.episode for e in seen] == list(range(1, len(returns) + 1))
    assert [e.reward for e in seen] == returns
    assert [e.steps for e in seen] == sorted(e.steps for e in seen)


def test_numbers_of_environments_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="A2C and PPO learn from many at once"):
        REINFORCE.for_env(CartPole(), seed=0).train(CartPole(), steps=10, num_envs=2)
    with pytest.raises(ValueError, match="a multiple of the 4 environments, received 6"):
        A2C.for_env(CartPole(), seed=0).train(CartPole(), steps=6, num_envs=4)
    with pytest.raises(ValueError, match="3 minibatches do not divide the 128 x 2 steps"):
        PPO.for_env(CartPole(), seed=0, minibatches=3).train(CartPole(), steps=6, num_envs=2)


def test_a_rollout_of_another_size_is_taken_over():
    rollout, other = Rollout(4, 2, 3), Rollout(4, 1, 3)
    ones = dilim.ones((2,))
    rollout.add(dilim.ones((2, 3)), ones.astype("int64"), ones, ones > 2)
    other.load_state_dict(rollout.state_dict())
    assert (other.count, other.place) == (2, 1)
    assert other.observations.tolist() == rollout.observations.tolist()


# --- learning -------------------------------------------------------------------------------


def test_cart_pole_is_learned_by_ppo():
    agent = PPO.for_env(CartPole(), seed=0, rollout_length=32, learning_rate=1e-3)
    agent.train(CartPole(), steps=64 * 32 * 200, num_envs=64, until=475)
    assert agent.last_evaluation >= 475


def test_a_small_grid_is_learned_by_a2c():
    agent = A2C.for_env(GridWorld(4), seed=0, entropy_bonus=0.01)
    agent.train(GridWorld(4), steps=16 * 5 * 2000, num_envs=16)
    assert np.mean(agent.evaluate(GridWorld(4), 5)) == pytest.approx(0.95)


@pytest.mark.parametrize("kind", [A2C, PPO, DQN])
def test_acting_by_hand_after_many_environments_begins_anew(kind):
    env = CartPole()
    agent = kind.for_env(env, seed=0, hidden_sizes=[4])
    agent.train(env, steps=80, num_envs=8)
    before = agent.episodes
    for terminated in (False, True):
        agent.act([0.0] * 4)
        finished = agent.observe(2.0, [0.0] * 4, terminated)
    assert (finished.reward, finished.length) == (4.0, 2)
    assert agent.episodes == before + 1
    agent.train(env, steps=16, num_envs=8)  # the world that was left is not gone on in
    assert agent.log.totals.shape == (8,)
    assert agent.steps == 98


def test_an_update_that_is_refused_ends_the_passes_of_ppo():
    agent = PPO(2, seed=0, hidden_sizes=[4], rollout_length=8)
    ends = dilim.asarray([True])
    for step in range(8):
        reward = float("nan") if step == 3 else 1.0  # one of the eight steps, in one part of four
        agent.take(
            *(dilim.ones((1, 2)), dilim.asarray([0]), dilim.tensor([reward])),
            *(dilim.ones((1, 2)), ends, ~ends),
        )
    assert agent.failed
    assert agent.updates < 4
    assert all(np.isfinite(x.numpy()).all() for x in agent.network.parameters())


def test_all_episodes_of_the_step_in_which_training_stops_are_told():
    seen = []
    agent = A2C.for_env(CartPole(max_steps=9), seed=0, hidden_sizes=[4])
    stop = lambda episode: seen.append(episode) is None  # noqa: E731
    returns = agent.train(CartPole(max_steps=9), steps=800, num_envs=8, on_episode=stop)
    assert len(returns) == len(seen) == agent.episodes == 8


def test_training_stops_where_more_episodes_end_in_a_step_than_were_wanted():
    env = CartPole(max_steps=9)
    agent = A2C.for_env(env, seed=0, hidden_sizes=[4])
    returns = agent.train(env, episodes=10, steps=800, num_envs=8)
    assert len(returns) == agent.episodes == 16  # all eight end in the same step, twice
    assert agent.steps == 144
