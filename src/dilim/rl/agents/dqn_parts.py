"""What a `DQN` is made of, as its options say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dilim import dtypes
from dilim.nn.dense import MLP
from dilim.nn.module import Module
from dilim.rl.agents.dueling import Dueling
from dilim.rl.replay import ReplayBuffer

if TYPE_CHECKING:
    from dilim.rl.agents.dqn import DQN


def new_network(agent: DQN) -> Module:
    """(..., F) to (..., A), with weights drawn by the agent's ``network_generator``."""
    size, hidden, count = agent.observation_size, agent.hidden_sizes, agent.action_count
    generator = agent.network_generator
    if agent.dueling:
        return Dueling(size, hidden, count, agent.activation, agent.init, generator)
    layers = [*hidden, count]
    return MLP(size, layers, agent.activation, init=agent.init, generator=generator)


def new_replay(agent: DQN) -> ReplayBuffer:
    """An empty memory."""
    return ReplayBuffer(
        agent.buffer_capacity,
        agent.observation_size,
        dtype=dtypes.as_dtype(agent.observation_dtype),
        linked=agent.n_step > 1,
        memory_saving=agent.memory_saving,
        alpha=agent.priority_alpha if agent.prioritized else None,
    )
