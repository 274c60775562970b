"""Agents. To add one: derive it from `Agent` in a file here and name it in `agents/table.py`."""

from dilim.rl.agents.a2c import A2C
from dilim.rl.agents.base import Agent
from dilim.rl.agents.dqn import DQN
from dilim.rl.agents.ppo import PPO
from dilim.rl.agents.reinforce import REINFORCE
from dilim.rl.agents.sac import SAC
from dilim.rl.agents.table import AGENTS
from dilim.rl.agents.td3 import TD3

__all__ = ["A2C", "AGENTS", "DQN", "PPO", "REINFORCE", "SAC", "TD3", "Agent"]
