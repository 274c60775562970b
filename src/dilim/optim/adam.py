"""`Adam` and `AdamW`: a step size of its own for each number."""

from __future__ import annotations

from typing import Any

from dilim import dtypes
from dilim.optim.optimizer import Optimizer, Rate, check_not_negative, check_share, times
from dilim.optim.packing import Pack
from dilim.optim.schedules import Schedule
from dilim.tensors.tensor import Tensor


class Adam(Optimizer):
    """Adam: steps along the running mean of the gradient, over the root of that of its square.

    With g the gradient and t the number of updates of the parameter p, this one included::

        m = m + (1 - beta1) (g - m)             running mean of g, 0 at first
        v = v + (1 - beta2) (g^2 - v)           running mean of g^2, 0 at first
        p = p - learning_rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)

    Args:
        parameters: see `Optimizer`.
        learning_rate: see `Optimizer`; about the largest change of a number per step.
        betas: beta1 and beta2, from 0 to below 1.
        epsilon: keeps the division finite; outside the root.
        clip_norm: see `Optimizer`.
        clip_value: see `Optimizer`.

    Raises:
        ValueError: a number outside its range.

    Source: Kingma and Ba, Adam: a method for stochastic optimization, 2015, algorithm 1.
    """

    options: tuple[str, ...] = ("betas", "epsilon")
    slots = ("first_moment", "second_moment")

    def __init__(
        self,
        parameters: Any,
        learning_rate: float | Schedule = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        clip_norm: float | None = None,
        clip_value: float | None = None,
    ) -> None:
        kind = type(self).__name__
        self.betas = tuple(check_share(f"{kind}: betas", beta) for beta in betas)
        if len(self.betas) != 2:
            raise ValueError(f"{kind}: expected two betas, received {betas!r}")
        self.epsilon = check_not_negative(f"{kind}: epsilon", epsilon)
        super().__init__(parameters, learning_rate, clip_norm=clip_norm, clip_value=clip_value)

    def change(self, pack: Pack, gradient: Tensor, rate: Rate) -> Tensor:
        """See the class; the corrections of both means are folded into two numbers."""
        beta1, beta2 = self.betas
        m, v = pack.slots["first_moment"], pack.slots["second_moment"]
        m.add_((gradient - m) * (1.0 - beta1))
        v.add_((gradient * gradient - v) * (1.0 - beta2))
        steps = pack.steps.astype(dtypes.float64)
        root = (1.0 - beta2**steps).sqrt()
        size = (rate * root / (1.0 - beta1**steps)).astype(gradient.dtype)
        return m * size / (v.sqrt() + (root * self.epsilon).astype(gradient.dtype))


class AdamW(Adam):
    """Adam with weight decay apart from the gradient: p = p - learning_rate weight_decay p too.

    Args:
        parameters: see `Optimizer`.
        learning_rate: see `Adam`.
        betas: see `Adam`.
        epsilon: see `Adam`.
        weight_decay: pull towards 0, >= 0.
        clip_norm: see `Optimizer`.
        clip_value: see `Optimizer`.

    Raises:
        ValueError: a number outside its range.

    Source: Loshchilov and Hutter, Decoupled weight decay regularization, 2019, algorithm 2.
    """

    options = ("betas", "epsilon", "weight_decay")

    def __init__(
        self,
        parameters: Any,
        learning_rate: float | Schedule = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
        clip_norm: float | None = None,
        clip_value: float | None = None,
    ) -> None:
        self.weight_decay = check_not_negative("AdamW: weight_decay", weight_decay)
        super().__init__(
            parameters,
            learning_rate,
            betas=betas,
            epsilon=epsilon,
            clip_norm=clip_norm,
            clip_value=clip_value,
        )

    def change(self, pack: Pack, gradient: Tensor, rate: Rate) -> Tensor:
        """See the class."""
        decay = times(pack.value(), rate) * self.weight_decay
        return super().change(pack, gradient, rate) + decay
