"""REINFORCE against formulas of its own, and on problems that it must solve."""

import math

import numpy as np
import pytest

import dilim
from dilim.errors import NonFiniteError, ShapeError
from dilim.optim import LinearDecay
from dilim.rl import REINFORCE, Agent, Bandit, CartPole, discounted_returns, preset
from dilim.rl.episodes import EpisodeMemory


def episode(agent, rewards, seed, truncated=False):
    """Play made-up observations; the (observation, action) pairs and the returns."""
    random = np.random.default_rng(seed)
    observations = random.normal(size=(len(rewards) + 1, 3)).astype(np.float32)
    actions = []
    for t, reward in enumerate(rewards):
        actions.append(agent.act(observations[t]))
        last = t == len(rewards) - 1
        agent.observe(reward, observations[t + 1], last and not truncated, last and truncated)
    returns = [
        sum(agent.gamma**k * r for k, r in enumerate(rewards[t:])) for t in range(len(rewards))
    ]
    return observations[:-1], np.array(actions), np.array(returns)


def log_probabilities(weights, observations):
    """log pi in float64, written out for one hidden layer of tanh."""
    w1, b1, w2, b2 = weights
    logits = np.tanh(observations @ w1 + b1) @ w2 + b2
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def loss(weights, episodes, advantages, entropy_bonus):
    total, start = 0.0, 0
    for observations, actions, _ in episodes:
        logp = log_probabilities(weights, observations.astype(np.float64))
        count = len(actions)
        taken = logp[np.arange(count), actions]
        entropy = -(np.exp(logp) * logp).sum(axis=1)
        total -= (taken * advantages[start : start + count] + entropy_bonus * entropy).sum()
        start += count
    return total / len(episodes)


def gradients(weights, *arguments):
    """Central differences of `loss`."""
    result = []
    for position, weight in enumerate(weights):
        gradient = np.zeros_like(weight)
        for index in np.ndindex(weight.shape):
            moved = [w.copy() for w in weights]
            moved[position][index] += 1e-5
            above = loss(moved, *arguments)
            moved[position][index] -= 2e-5
            gradient[index] = (above - loss(moved, *arguments)) / 2e-5
        result.append(gradient)
    return result


@pytest.mark.parametrize("baseline", ["running_mean", "batch", "none"])
@pytest.mark.parametrize("truncated", [False, True])
def test_the_update_follows_the_equation(baseline, truncated, monkeypatch):
    options = {"baseline": baseline, "baseline_rate": 0.3, "entropy_bonus": 0.02}
    agent = REINFORCE(3, [4], 2, 0.1, 0.9, batch_episodes=2, activation="tanh", seed=0, **options)
    applied = []
    monkeypatch.setattr(
        agent.optimizer,
        "step",
        lambda: applied.append([x.grad.numpy(copy=True) for x in agent.network.parameters()]),
    )
    mean = 0.0  # of returns, kept whatever the baseline
    for update in range(3):
        weights = [x.numpy().astype(np.float64) for x in agent.network.parameters()]
        episodes = [
            episode(agent, [1.0, -2.0, 0.5], seed=2 * update, truncated=truncated),
            episode(agent, [3.0, 1.0], seed=2 * update + 1),
        ]
        returns = np.concatenate([r for _, _, r in episodes])
        if baseline == "running_mean":
            advantages = returns - mean
        elif baseline == "batch":
            advantages = (returns - returns.mean()) / returns.std()
        else:
            advantages = returns
        mean = returns.mean() if update == 0 else mean + 0.3 * (returns.mean() - mean)
        assert len(applied) == update + 1
        expected = gradients(weights, episodes, advantages, 0.02)
        for mine, theirs in zip(applied[-1], expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-5)
        assert agent.last_loss == pytest.approx(
            loss(weights, episodes, advantages, 0.02), rel=1e-4, abs=1e-5
        )
    assert agent.mean_return == pytest.approx(mean, rel=1e-6)


def test_one_step_of_adam_per_batch():
    agent = REINFORCE(3, [4], 2, batch_episodes=3, seed=0)
    before = [x.tolist() for x in agent.network.parameters()]
    episode(agent, [1.0], 0)
    episode(agent, [1.0], 1)
    assert [x.tolist() for x in agent.network.parameters()] == before
    assert agent.updates == 0
    episode(agent, [1.0], 2)
    assert [x.tolist() for x in agent.network.parameters()] != before
    assert (agent.updates, agent.optimizer.step_count) == (1, 1)
    episode(agent, [1.0], 3)
    agent.learn()  # earlier than it would by itself
    assert agent.updates == 2
    assert agent.learn() is None
    assert agent.updates == 2


def test_sampling_follows_the_policy():
    agent = REINFORCE(1, [2], 3, seed=0)
    logits = dilim.tensor([0.0, math.log(3.0), math.log(6.0)])
    drawn = np.bincount([int(agent.explore(logits)) for _ in range(4000)], minlength=3) / 4000
    np.testing.assert_allclose(drawn, [0.1, 0.3, 0.6], atol=0.03)


def test_equal_returns_have_no_gradient_with_the_batch_baseline():
    agent = REINFORCE(3, [4], 2, batch_episodes=1, baseline="batch", seed=0)
    before = [x.tolist() for x in agent.network.parameters()]
    episode(agent, [1.0], 0)
    assert agent.updates == 1
    assert [x.tolist() for x in agent.network.parameters()] == before


def test_a_loss_that_is_not_finite_changes_nothing():
    agent = REINFORCE(3, [4], 2, seed=0, baseline="none")
    before = [x.tolist() for x in agent.network.parameters()]
    with pytest.raises(NonFiniteError, match=r"the loss of update 1 is .*network was not changed"):
        episode(agent, [3e38, 3e38], 0)
    assert [x.tolist() for x in agent.network.parameters()] == before
    episode(agent, [1.0], 1)
    assert (agent.updates, agent.mean_return) == (1, 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 1.1}, "expected gamma 0 to 1, received 1.1"),
        ({"batch_episodes": 0}, "expected batch_episodes at least 1, received 0"),
        ({"baseline": "mean"}, "expected baseline 'running_mean' or 'batch' or 'none', received"),
        ({"baseline_rate": 0.0}, "expected baseline_rate above 0 and up to 1"),
        ({"entropy_bonus": -1.0}, "expected entropy_bonus at least 0"),
        ({"learning_rate": -1.0}, "expected learning_rate >= 0"),
        ({"activation": "swish"}, "swish"),
        ({"window_size": 0}, "expected window_size >= 1"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        REINFORCE(4, [8], 2, **options)


def test_sizes_out_of_range_are_refused():
    with pytest.raises(ShapeError, match="REINFORCE: expected observation_size >= 1, received 0"):
        REINFORCE(0)
    with pytest.raises(ShapeError, match="expected action_count >= 1"):
        REINFORCE(4, [8], 0)
    with pytest.raises(TypeError, match="wings"):
        REINFORCE(4, wings=2)


def test_the_plain_call():
    env = CartPole()
    agent = REINFORCE(
        observation_size=4, hidden_sizes=[32], action_count=2, learning_rate=1e-3, gamma=0.99
    )
    assert sum(x.size for x in agent.network.parameters()) == 4 * 32 + 32 + 32 * 2 + 2
    shown = []
    rewards = agent.train(env, episodes=4, on_episode=lambda e: shown.append(e.reward))
    assert rewards == shown
    assert len(rewards) == 4


def test_the_learning_rate_may_change_and_is_saved(tmp_path):
    env = Bandit()
    agent = REINFORCE.for_env(env, learning_rate=LinearDecay(0.1, 0.0, 10), seed=0)

    def change(episode):
        if episode.episode == 5:
            agent.optimizer.learning_rate = 0.25

    agent.train(env, episodes=3)
    agent.save(tmp_path / "schedule")
    loaded = Agent.load(tmp_path / "schedule")
    assert loaded.optimizer.current_learning_rate == agent.optimizer.current_learning_rate > 0.0
    agent.train(env, episodes=3, on_episode=change)
    agent.save(tmp_path / "number")
    assert Agent.load(tmp_path / "number").optimizer.learning_rate == 0.25


# --- the memory -----------------------------------------------------------------------------


def add(memory, observation, action, reward, end):
    memory.add(
        dilim.tensor(observation), dilim.tensor(action), dilim.tensor(reward), dilim.tensor(end)
    )


def test_the_memory_keeps_the_running_episode_apart():
    memory = EpisodeMemory(2)
    add(memory, [1.0, 2.0], 0, 4.0, False)
    add(memory, [3.0, 4.0], 1, 2.0, True)
    add(memory, [5.0, 6.0], 1, 8.0, False)
    other = EpisodeMemory(2)
    other.load_state_dict(memory.state_dict())
    for each in (memory, other):
        assert (each.count, each.finished, each.episodes) == (3, 2, 1)
        assert each.observations[:3].tolist() == [[1, 2], [3, 4], [5, 6]]
        assert each.actions[:3].tolist() == [0, 1, 1]
        assert each.returns(0.5)[:3].tolist() == [5.0, 2.0, 0.0]
        each.drop_running()
        assert (each.count, each.finished, each.episodes) == (2, 2, 1)
        each.clear()
        assert (each.count, each.episodes) == (0, 0)


def test_the_memory_grows_and_keeps_what_is_in_it():
    memory = EpisodeMemory(1)
    rewards = np.random.default_rng(0).normal(size=700)
    for t, reward in enumerate(rewards):
        if memory.is_full:
            assert t == 512
            memory.grow()
        add(memory, [float(t)], t, float(reward), t in (300, 699))
    assert memory.observations[:700, 0].tolist() == list(range(700))
    assert memory.actions[:700].tolist() == list(range(700))
    kept = memory.rewards[:700].numpy()
    expected = [*discounted_returns(kept[:301], 0.9), *discounted_returns(kept[301:], 0.9)]
    np.testing.assert_allclose(memory.returns(0.9)[:700].numpy(), expected, rtol=1e-12)
    other = EpisodeMemory(1)
    other.load_state_dict(memory.state_dict())
    assert other.returns(0.9).tolist() == memory.returns(0.9).tolist()


# --- learning -------------------------------------------------------------------------------


def best_arm_probability(agent, env):
    logits = agent.scores(dilim.zeros((1,)))
    return float(dilim.softmax(logits)[env.best_arm])


@pytest.mark.slow
def test_the_bandit_is_solved_from_twenty_starts():
    solved = 0
    for seed in range(20):
        env = Bandit([0.1, 0.5, 0.9], std=0.1)
        agent = REINFORCE.for_env(env, seed=seed, **preset("bandit", "reinforce").options)
        agent.train(env, episodes=1000)
        solved += best_arm_probability(agent, env) > 0.9
    assert solved == 20


def test_the_bandit_is_solved_by_normalised_batches_too():
    env = Bandit([0.1, 0.5, 0.9], std=0.1)
    agent = REINFORCE.for_env(
        env, hidden_sizes=[16], learning_rate=0.01, batch_episodes=16, baseline="batch", seed=0
    )
    agent.train(env, episodes=1600)
    assert best_arm_probability(agent, env) > 0.9


def test_what_is_seen_is_done(tmp_path):
    """The action must equal the observation: solved within seconds."""
    from rl_worlds import Corridor

    env = Corridor()
    agent = REINFORCE.for_env(env, learning_rate=0.02, seed=0)
    agent.train(env, episodes=250)
    assert np.mean(agent.evaluate(Corridor(), 50)) == 4.0


@pytest.mark.slow
def test_cart_pole_is_learned():
    settings = preset("cartpole", "reinforce")
    means = []
    for seed in (1000, 1003, 1011):
        env = CartPole()
        agent = REINFORCE.for_env(env, seed=seed, **settings.options)
        agent.train(env, episodes=500, until=settings.until)
        assert agent.last_evaluation >= 475.0
        means.append(np.mean(agent.evaluate(CartPole(), 50, seed=seed)))
    assert np.mean(means) >= 475.0
