"""Agents. To add one: derive it from `Agent` in a file here and name it in `agents/table.py`."""

from dilim.rl.agents.base import Agent
from dilim.rl.agents.dqn import DQN
from dilim.rl.agents.reinforce import REINFORCE
from dilim.rl.agents.table import AGENTS

__all__ = ["AGENTS", "DQN", "REINFORCE", "Agent"]
