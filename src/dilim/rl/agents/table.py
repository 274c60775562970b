"""`AGENTS`: the agents by the names that the command line uses."""

from __future__ import annotations

from typing import Final

from dilim.rl.agents.a2c import A2C
from dilim.rl.agents.base import Agent
from dilim.rl.agents.dqn import DQN
from dilim.rl.agents.ppo import PPO
from dilim.rl.agents.reinforce import REINFORCE
from dilim.rl.agents.sac import SAC
from dilim.rl.agents.td3 import TD3

AGENTS: Final[dict[str, type[Agent]]] = {
    "reinforce": REINFORCE,
    "dqn": DQN,
    "a2c": A2C,
    "ppo": PPO,
    "td3": TD3,
    "sac": SAC,
}
"""Tests walk over them."""
