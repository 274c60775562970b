"""Settings that were tuned: what ``dilim train`` uses.

They were tuned on seeds from 1000 on; what they reach on others is in ``docs/results``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from dilim.errors import EnvironmentContractError
from dilim.optim.schedules import LinearDecay


@dataclass(frozen=True, slots=True)
class Preset:
    """How to train one agent in one environment.

    Attributes:
        options: arguments of the agent.
        episodes: the limit.
        until: the mean return of an evaluation at which training stops, or None.
        evaluate_every: episodes between two evaluations.
        evaluation_episodes: fresh starts per evaluation.
        num_envs: environments that are stepped at once.
    """

    options: dict[str, Any] = field(default_factory=dict)
    episodes: int = 1000
    until: float | None = None
    evaluate_every: int = 25
    evaluation_episodes: int = 20
    num_envs: int = 1


PRESETS: Final = {
    ("cartpole", "reinforce"): Preset(
        options={
            "hidden_sizes": [64],
            "activation": "tanh",
            "learning_rate": 0.007,
            "gamma": 0.99,
            "batch_episodes": 1,
            "baseline": "running_mean",
            "baseline_rate": 0.05,
        },
        episodes=1500,
        until=475.0,
    ),
    ("cartpole", "dqn"): Preset(
        options={
            "hidden_sizes": [64, 64],
            "learning_rate": 0.002,
            "buffer_capacity": 50_000,
            "batch_size": 64,
            "target_update_frequency": 200,
            "epsilon_schedule": LinearDecay(1.0, 0.02, 3000).to_dict(),
            "double": True,
            "n_step": 3,
        },
        episodes=500,
        until=475.0,
    ),
    ("gridworld", "dqn"): Preset(
        options={
            "hidden_sizes": [64, 32],
            "batch_size": 32,
            "target_update_frequency": 100,
            "epsilon_schedule": LinearDecay(1.0, 0.05, 10_000).to_dict(),
        },
        episodes=500,
        until=0.865,
        evaluation_episodes=1,
    ),
    ("snake", "dqn"): Preset(
        options={
            "hidden_sizes": [64, 64],
            "learning_rate": 0.0003,
            "gamma": 0.93,
            "buffer_capacity": 50_000,
            "batch_size": 128,
            "target_update_frequency": 1,
            "target_update_rate": 0.005,
            "epsilon_schedule": LinearDecay(1.0, 0.015, 4000).to_dict(),
            "double": True,
            "n_step": 3,
        },
        episodes=400,
        until=193.0,
        evaluate_every=10,
        evaluation_episodes=100,
    ),
    ("bandit", "reinforce"): Preset(
        options={"hidden_sizes": [16], "learning_rate": 0.01}, episodes=1000
    ),
    ("pendulum", "sac"): Preset(
        options={
            "hidden_sizes": [64, 64],
            "learning_rate": 0.002,
            "batch_size": 128,
            "gamma": 0.98,
        },
        episodes=60,
        evaluate_every=5,
    ),
    ("pendulum", "td3"): Preset(
        options={
            "hidden_sizes": [64, 64],
            "learning_rate": LinearDecay(2e-3, 2e-4, 12_000).to_dict(),
            "batch_size": 128,
            "gamma": 0.98,
            "noise": 0.3,
            "learning_starts": 500,
        },
        episodes=75,
        evaluate_every=5,
    ),
    ("pendulum", "ppo"): Preset(
        options={
            "learning_rate": LinearDecay(1e-3, 1e-4, 15_000).to_dict(),
            "rollout_length": 2048,
            "epochs": 10,
            "minibatches": 32,
            "clip_range": 0.1,
            "gamma": 0.95,
            "gae_lambda": 0.9,
        },
        episodes=500,
    ),
}
"""By names of environment and agent; the first agent of an environment is its best."""


def default_agent(environment: str) -> str:
    """The name of the agent to use in an environment when none is asked for.

    Raises:
        EnvironmentContractError: there is no preset for this environment.
    """
    for name, agent in PRESETS:
        if name == environment:
            return agent
    raise EnvironmentContractError(f"no settings for the environment {environment!r}")


def preset(environment: str, agent: str) -> Preset:
    """The tuned settings of a pair, or plain defaults where nothing was tuned."""
    return PRESETS.get((environment, agent), Preset())
