"""TD3 and SAC: their targets and gradients against NumPy in float64, and their rhythm."""

import itertools

import numpy as np
import pytest

import dilim
from dilim.errors import TrainingWarning
from dilim.rl import SAC, TD3, Pendulum
from dilim.rl.agents.targets import follow

BOTH = pytest.mark.parametrize("kind", [SAC, TD3])
BOX = {"action_low": [-1.0, 0.0], "action_high": [1.0, 4.0]}
STEPS = 5


def agent_of(kind, **options):
    """An agent of 3 numbers seen and 2 done, whose target networks are others."""
    given = {"hidden_sizes": [6], "activation": "tanh", "batch_size": STEPS, "seed": 0}
    agent = kind(3, **BOX, **{**given, **options})
    with dilim.no_grad():
        for x in agent.target.parameters():
            x[...] = x + 0.1
        if kind is TD3:
            for x in agent.target_actor.parameters():
                x[...] = x - 0.1
    return agent


def batch_of(random):
    """A batch as `ReplayBuffer.sample` gives it, of float32."""
    numbers = (random.normal(size=shape) for shape in ((STEPS, 3), (STEPS, 2), STEPS, (STEPS, 3)))
    tensors = [dilim.asarray(x, dtype=dilim.float32) for x in numbers]
    return (*tensors, dilim.asarray([True, False, False, True, False]))


def mlp(weights, x):
    w1, b1, w2, b2 = weights
    return np.tanh(x @ w1 + b1) @ w2 + b2


def doubles(module):
    return [x.numpy().astype(np.float64) for x in module.parameters()]


def values(critics, observations, actions):
    """Both estimates, from the weights of `TwinCritics`."""
    both = np.concatenate([observations, actions], axis=1)
    return mlp(critics[:4], both)[:, 0], mlp(critics[4:], both)[:, 0]


def squashed(weights, observations, noise):
    """Actions, and their log probability, of SAC's actor."""
    out = mlp(weights, observations)
    mean, log_std = out[:, :2], np.clip(out[:, 2:], -20.0, 2.0)
    actions = np.tanh(mean + np.exp(log_std) * noise)
    density = -0.5 * noise**2 - log_std - 0.5 * np.log(2 * np.pi) - np.log(1 - actions**2)
    return actions, density.sum(axis=1)


def noise_of(agent):
    """What the agent's generator draws next; it is not drawn."""
    return dilim.Generator.__deepcopy__(agent.generator, {}).normal((STEPS, 2)).numpy()


# --- what the critics are fitted to ----------------------------------------------------------


def test_td3_fits_to_the_lower_target_of_a_smoothed_action():
    agent = agent_of(TD3, target_noise=0.3, target_noise_clip=0.4)
    following = batch_of(np.random.default_rng(0))[3]
    noise = np.clip(0.3 * noise_of(agent), -0.4, 0.4)
    assert np.abs(noise).max() == pytest.approx(0.4)
    seen = following.numpy().astype(np.float64)
    actions = np.clip(np.tanh(mlp(doubles(agent.target_actor), seen)) + noise, -1.0, 1.0)
    expected = np.minimum(*values(doubles(agent.target), seen, actions))
    np.testing.assert_allclose(agent.worth(following).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_sac_fits_to_the_lower_target_less_the_weighted_log_probability():
    agent = agent_of(SAC, temperature=0.3)
    following = batch_of(np.random.default_rng(0))[3]
    seen, noise = following.numpy().astype(np.float64), noise_of(agent)
    actions, logp = squashed(doubles(agent.network.actor), seen, noise)
    expected = np.minimum(*values(doubles(agent.target), seen, actions)) - 0.3 * logp
    np.testing.assert_allclose(agent.worth(following).numpy(), expected, rtol=1e-4, atol=1e-5)


@BOTH
def test_nothing_follows_after_an_end_by_the_rules_only(kind, monkeypatch):
    agent = agent_of(kind, gamma=0.9)
    observations, actions, rewards, following, terminated = batch_of(np.random.default_rng(1))
    worth = dilim.asarray([1.0, 2.0, 3.0, 4.0, 5.0])
    monkeypatch.setattr(agent.optimizer, "step", lambda: None)
    agent.fit_critics((observations, actions, rewards, following, terminated), worth)
    goal = rewards.numpy() + 0.9 * np.where(terminated.numpy(), 0.0, worth.numpy())
    both = values(
        doubles(agent.network.critics),
        *(x.numpy().astype(np.float64) for x in (observations, actions)),
    )
    expected = sum(((q - goal) ** 2).mean() for q in both)
    assert float(agent.loss) == pytest.approx(expected, rel=1e-5)


# --- where the actor goes --------------------------------------------------------------------


def actor_gain(kind, agent, weights, observations, noise):
    """What the actor climbs, of the class docstrings."""
    critics = doubles(agent.network.critics)
    if kind is TD3:
        return values(critics, observations, np.tanh(mlp(weights, observations)))[0].mean()
    actions, logp = squashed(weights, observations, noise)
    return (np.minimum(*values(critics, observations, actions)) - 0.3 * logp).mean()


@BOTH
def test_the_actor_climbs_what_the_critics_say_and_leaves_them_alone(kind, monkeypatch):
    agent = agent_of(kind, **({"temperature": 0.3} if kind is SAC else {}))
    observations = batch_of(np.random.default_rng(2))[0]
    noise, found = noise_of(agent), []
    parameters = agent.network.actor.parameters()
    monkeypatch.setattr(
        agent.actor_optimizer,
        "step",
        lambda: found.extend(x.grad.numpy(copy=True) for x in parameters),
    )
    agent.improve(observations)
    assert all(x.grad is None for x in agent.network.critics.parameters())
    weights, seen = doubles(agent.network.actor), observations.numpy().astype(np.float64)
    for position, weight in enumerate(weights):
        for index in np.ndindex(weight.shape):
            moved = [[w.copy() for w in weights] for _ in range(2)]
            moved[0][position][index] += 1e-5
            moved[1][position][index] -= 1e-5
            above, below = (actor_gain(kind, agent, w, seen, noise) for w in moved)
            expected = -(above - below) / 2e-5
            assert found[position][index] == pytest.approx(expected, rel=2e-3, abs=2e-6)


@pytest.mark.parametrize(("goal", "rises"), [(50.0, True), (-50.0, False)])
def test_the_temperature_rises_where_there_is_too_little_entropy(goal, rises):
    agent = agent_of(SAC, target_entropy=goal)
    agent.improve(batch_of(np.random.default_rng(2))[0])
    assert (float(agent.entropy_weight()) > 1.0) is rises


def test_a_temperature_that_was_given_stays():
    agent = SAC.for_env(Pendulum(), seed=0, hidden_sizes=[4], batch_size=8, temperature=0.25)
    agent.train(Pendulum(), steps=130)
    assert float(agent.entropy_weight()) == pytest.approx(0.25)
    assert agent.updates == 31


# --- rhythm ----------------------------------------------------------------------------------


def test_td3_moves_its_actor_and_targets_at_every_second_update():
    agent = TD3.for_env(Pendulum(), seed=0, hidden_sizes=[4], batch_size=8, learning_starts=8)
    agent.train(Pendulum(), steps=7)
    parts = agent.network.actor, agent.target_actor, agent.target
    seen = []
    for _ in range(6):
        agent.learn()
        seen.append([[x.tolist() for x in part.parameters()] for part in parts])
    assert agent.updates == 6
    for column in zip(*seen, strict=True):
        assert [a != b for a, b in itertools.pairwise(column)] == [1, 0, 1, 0, 1]


@BOTH
def test_actions_are_uniform_at_first_and_then_the_actors(kind):
    agent = kind.for_env(Pendulum(), seed=0, hidden_sizes=[4], learning_starts=300, batch_size=300)
    with dilim.no_grad():
        last = agent.network.actor.layers[-1]
        last.bias[...] = dilim.asarray([9.0, -20.0][: agent.outputs])
    agent.train(Pendulum(), steps=299)
    actions = agent.replay.actions[:299, 0].numpy()
    assert np.histogram(actions, 4, (-1.0, 1.0))[0].min() > 50
    assert agent.updates == 0
    agent.train(Pendulum(), steps=1)
    agent.act([1.0, 0.0, 0.0])
    assert agent.updates == 1
    assert agent.act([1.0, 0.0, 0.0], explore=False) == pytest.approx([2.0], abs=0.1)


@BOTH
def test_learning_is_as_frequent_as_was_asked_for(kind):
    agent = kind.for_env(
        Pendulum(),
        seed=0,
        **{"hidden_sizes": [4], "batch_size": 10, "learning_starts": 10},
        **{"train_frequency": 5, "gradient_steps": 3},
    )
    agent.train(Pendulum(), steps=9)
    assert agent.updates == 0
    agent.train(Pendulum(), steps=10)
    assert agent.updates == 6


@BOTH
def test_settings_that_teach_nothing_are_named(kind):
    small = {"hidden_sizes": [4], "batch_size": 50, "seed": 0}
    agent = kind.for_env(Pendulum(), learning_starts=500, **small)
    with pytest.warns(TrainingWarning, match=r"learning_starts=500, and there will be 5 steps"):
        agent.train(Pendulum(), steps=5)
    agent = kind.for_env(Pendulum(), learning_starts=20, buffer_capacity=20, **small)
    with pytest.warns(TrainingWarning, match="buffer_capacity=20 is less than batch_size=50"):
        agent.train(Pendulum(), episodes=0)


def test_a_target_follows_at_its_rate():
    network, target = (dilim.nn.Dense(2, 2, generator=dilim.Generator(k)) for k in (0, 1))
    before = doubles(target)
    follow(target, network, 0.25)
    for old, mine, theirs in zip(before, doubles(target), doubles(network), strict=True):
        np.testing.assert_allclose(mine, 0.75 * old + 0.25 * theirs, rtol=1e-6)
    follow(target, network, 1.0)
    assert all((a == b).all() for a, b in zip(doubles(target), doubles(network), strict=True))


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (TD3, {"policy_delay": 0}, "TD3: expected policy_delay at least 1, received 0"),
        (TD3, {"noise": -0.1}, r"TD3: expected noise at least 0, received -0\.1"),
        (TD3, {"gamma": 2.0}, "TD3: expected gamma from 0 to 1"),
        (SAC, {"temperature": 0.0}, "SAC: expected temperature above 0, or None, received 0"),
        (SAC, {"target_entropy": float("nan")}, "target_entropy a number, or None"),
        (SAC, {"target_update_rate": 0.0}, "target_update_rate above 0 and up to 1"),
        (SAC, {"learning_starts": 0}, "learning_starts at least 1"),
    ],
)
def test_options_out_of_range_are_refused(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(3, **BOX, **options)
