"""`RMSprop`: steps along the gradient over the root of the running mean of its square."""

from __future__ import annotations

from typing import Any

from dilim.optim.optimizer import Optimizer, Rate, check_not_negative, check_share, times
from dilim.optim.packing import Pack
from dilim.optim.schedules import Schedule
from dilim.tensors.tensor import Tensor


class RMSprop(Optimizer):
    """RMSprop.

    With g the gradient and p the parameter::

        v = v + (1 - decay) (g^2 - v)                   0 at first
        velocity = momentum velocity + g / (sqrt(v) + epsilon)
        p = p - learning_rate velocity                  without momentum velocity is the last term

    Args:
        parameters: see `Optimizer`.
        learning_rate: see `Optimizer`.
        decay: share of the running mean that is kept, from 0 to below 1.
        epsilon: keeps the division finite; outside the root.
        momentum: share of the last step that is kept, from 0 to below 1.
        clip_norm: see `Optimizer`.
        clip_value: see `Optimizer`.

    Raises:
        ValueError: a number outside its range.

    Source: Tieleman and Hinton, Neural networks for machine learning, lecture 6.5, 2012.
    """

    options = ("decay", "epsilon", "momentum")

    def __init__(
        self,
        parameters: Any,
        learning_rate: float | Schedule = 0.01,
        *,
        decay: float = 0.99,
        epsilon: float = 1e-8,
        momentum: float = 0.0,
        clip_norm: float | None = None,
        clip_value: float | None = None,
    ) -> None:
        self.decay = check_share("RMSprop: decay", decay)
        self.epsilon = check_not_negative("RMSprop: epsilon", epsilon)
        self.momentum = check_share("RMSprop: momentum", momentum)
        self.slots = ("second_moment", "velocity") if momentum else ("second_moment",)
        super().__init__(parameters, learning_rate, clip_norm=clip_norm, clip_value=clip_value)

    def change(self, pack: Pack, gradient: Tensor, rate: Rate) -> Tensor:
        """See the class."""
        v = pack.slots["second_moment"]
        v.add_((gradient * gradient - v) * (1.0 - self.decay))
        gradient = gradient / (v.sqrt() + self.epsilon)
        if self.momentum:
            velocity = pack.slots["velocity"]
            velocity.mul_(self.momentum).add_(gradient)
            gradient = velocity
        return times(gradient, rate)
