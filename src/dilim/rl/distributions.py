"""Distributions of actions: of one among several, and of numbers.

What a network says of B states is called scores. All probabilities are natural logarithms, and
entropies are in nats.
"""

from __future__ import annotations

import math
from typing import Final

from dilim.tensors.elementwise import exp, softplus, tanh
from dilim.tensors.indexing import take_along_axis
from dilim.tensors.random import Generator
from dilim.tensors.reductions import log_softmax
from dilim.tensors.tensor import Tensor

_HALF_LOG_TAU: Final = 0.5 * math.log(2.0 * math.pi)


class Categorical:
    """One of A actions: p(a) = softmax(scores)[a]; scores are (B, A), actions int64 (B,)."""

    def draw(self, scores: Tensor, generator: Generator) -> Tensor:
        """(B, A) to (B,): random actions."""
        return generator.categorical(scores)

    def best(self, scores: Tensor) -> Tensor:
        """(B, A) to (B,): the most probable actions."""
        return scores.argmax(axis=-1)

    def log_probability(self, scores: Tensor, actions: Tensor) -> Tensor:
        """(B, A) and (B,) to (B,): log p(a)."""
        return take_along_axis(log_softmax(scores, axis=1), actions[:, None], axis=1)[:, 0]

    def entropy(self, scores: Tensor) -> Tensor:
        """(B, A) to (B,): -sum p log p."""
        logp = log_softmax(scores, axis=1)
        return -(exp(logp) * logp).sum(axis=1)


class Gaussian:
    """A numbers, independent and normal: m + s n; scores are (B, 2 A), m and then log s."""

    def draw(self, scores: Tensor, generator: Generator) -> Tensor:
        """(B, 2 A) to (B, A): random actions."""
        mean, log_std = halves(scores)
        return mean + exp(log_std) * generator.normal(mean.shape, dtype=mean.dtype)

    def best(self, scores: Tensor) -> Tensor:
        """(B, 2 A) to (B, A): the most probable actions, m."""
        return halves(scores)[0]

    def log_probability(self, scores: Tensor, actions: Tensor) -> Tensor:
        """(B, 2 A) and (B, A) to (B,): sum over numbers -n^2/2 - log s - log(2 pi)/2."""
        mean, log_std = halves(scores)
        return _log_density((actions - mean) * exp(-log_std), log_std).sum(axis=1)

    def entropy(self, scores: Tensor) -> Tensor:
        """(B, 2 A) to (B,): sum over numbers log s + (1 + log(2 pi))/2."""
        return (halves(scores)[1] + (0.5 + _HALF_LOG_TAU)).sum(axis=1)


class SquashedGaussian:
    """A numbers between -1 and 1: tanh(u), u as in `Gaussian`."""

    def draw(self, scores: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
        """(B, 2 A) to (B, A) and (B,): random actions a = tanh(m + s n), and log p(a).

        Gradients flow back to m and s, not to n.

        Source: Haarnoja and others, Soft actor-critic algorithms and applications, 2018
        (arXiv 1812.05905), appendix C, equation (26), with 1 - tanh(u)^2 written so that its
        logarithm stays finite: log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2 u)).
        """
        mean, log_std = halves(scores)
        noise = generator.normal(mean.shape, dtype=mean.dtype)
        before = mean + exp(log_std) * noise
        slope = 2.0 * (math.log(2.0) - before - softplus(-2.0 * before))
        return tanh(before), (_log_density(noise, log_std) - slope).sum(axis=1)

    def best(self, scores: Tensor) -> Tensor:
        """(B, 2 A) to (B, A): tanh(m)."""
        return tanh(halves(scores)[0])


def halves(scores: Tensor) -> tuple[Tensor, Tensor]:
    """(B, 2 A) to (B, A) and (B, A)."""
    pair = scores.reshape((scores.shape[0], 2, -1))
    return pair[:, 0], pair[:, 1]


def _log_density(noise: Tensor, log_std: Tensor) -> Tensor:
    """Log p of each m + s n."""
    return -0.5 * (noise * noise) - log_std - _HALF_LOG_TAU
