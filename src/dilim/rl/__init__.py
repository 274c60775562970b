"""Reinforcement learning: environments, agents, and training.

Importing this makes the built-in environments known to ``gymnasium.make`` ("dilim/CartPole-v1").
"""

from dilim.optim.schedules import ExponentialDecay, LinearDecay
from dilim.rl.adapters import from_gymnasium, from_old_gym
from dilim.rl.agents import A2C, AGENTS, DQN, PPO, REINFORCE, SAC, TD3, Agent
from dilim.rl.env_checks import check_env
from dilim.rl.envs import (
    ENVIRONMENTS,
    Acrobot,
    Bandit,
    CartPole,
    FrozenLake,
    GridWorld,
    MountainCar,
    Pendulum,
    Snake,
    TensorEnvironment,
    VectorEnvironment,
    make_environment,
    register_with_gymnasium,
)
from dilim.rl.presets import PRESETS, Preset, default_agent, preset
from dilim.rl.replay import ReplayBuffer
from dilim.rl.returns import discounted_returns
from dilim.rl.seeds import SeedRun, SeedRuns, train_seeds
from dilim.rl.tracker import RewardTracker
from dilim.rl.training import Episode, Interrupted
from dilim.rl.wrappers import (
    ActionMask,
    NormalizeObservation,
    NormalizeReward,
    RunningStatistics,
    time_limit,
)

register_with_gymnasium()

__all__ = [
    "A2C",
    "AGENTS",
    "DQN",
    "ENVIRONMENTS",
    "PPO",
    "PRESETS",
    "REINFORCE",
    "SAC",
    "TD3",
    "Acrobot",
    "ActionMask",
    "Agent",
    "Bandit",
    "CartPole",
    "Episode",
    "ExponentialDecay",
    "FrozenLake",
    "GridWorld",
    "Interrupted",
    "LinearDecay",
    "MountainCar",
    "NormalizeObservation",
    "NormalizeReward",
    "Pendulum",
    "Preset",
    "ReplayBuffer",
    "RewardTracker",
    "RunningStatistics",
    "SeedRun",
    "SeedRuns",
    "Snake",
    "TensorEnvironment",
    "VectorEnvironment",
    "check_env",
    "default_agent",
    "discounted_returns",
    "from_gymnasium",
    "from_old_gym",
    "make_environment",
    "preset",
    "register_with_gymnasium",
    "time_limit",
    "train_seeds",
]
