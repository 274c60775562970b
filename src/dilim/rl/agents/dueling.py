"""`Dueling`: the worth of a state and the advantages of its actions, apart."""

from __future__ import annotations

from collections.abc import Sequence

from dilim.nn.activations import ACTIVATIONS
from dilim.nn.dense import MLP
from dilim.nn.module import Module
from dilim.tensors.random import Generator
from dilim.tensors.tensor import Tensor


class Dueling(Module):
    """A network of two streams behind common layers.

    ::

        Q(s, a) = V(s) + A(s, a) - mean_a' A(s, a')

    The last of the hidden layers is there twice, once in each stream; those before are common.

    Args:
        observation_size: F.
        hidden_sizes: outputs of the hidden layers; with none, both streams are linear.
        action_count: A.
        activation: of the hidden layers, see `dilim.nn.MLP`.
        init: of the weights, see `dilim.nn.Dense`.
        generator: where random numbers come from.

    Source: Wang and others, Dueling network architectures for deep reinforcement learning, ICML
    2016, equation (9).
    """

    def __init__(
        self,
        observation_size: int,
        hidden_sizes: Sequence[int],
        action_count: int,
        activation: str,
        init: str,
        generator: Generator,
    ) -> None:
        *common, last = hidden_sizes or [0]
        own = [last] if hidden_sizes else []
        size = common[-1] if common else observation_size

        def stream(inputs: int, sizes: list[int]) -> MLP:
            return MLP(inputs, sizes, activation, init=init, generator=generator)

        self.common = stream(observation_size, common) if common else None
        self.value = stream(size, [*own, 1])
        self.advantages = stream(size, [*own, action_count])

    def forward(self, x: Tensor) -> Tensor:
        """(..., F) to (..., A)."""
        if self.common is not None:
            x = ACTIVATIONS[self.common.activation](self.common(x))
        value, advantages = self.value(x), self.advantages(x)
        result: Tensor = value + advantages - advantages.mean(axis=-1, keepdims=True)
        return result
