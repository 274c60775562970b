"""`SGD`: steps along the gradient, with momentum if wanted."""

from __future__ import annotations

from typing import Any

from dilim.optim.optimizer import Optimizer, Rate, check_not_negative, check_share, times
from dilim.optim.packing import Pack
from dilim.optim.schedules import Schedule
from dilim.tensors.tensor import Tensor


class SGD(Optimizer):
    """Stochastic gradient descent.

    With g the gradient and p the parameter::

        g = g + weight_decay p
        velocity = momentum velocity + g        0 at first; without momentum velocity = g
        p = p - learning_rate velocity          with nesterov: (g + momentum velocity) instead

    Args:
        parameters: see `Optimizer`.
        learning_rate: see `Optimizer`.
        momentum: share of the last step that is kept, from 0 to below 1.
        nesterov: look ahead along the velocity; needs momentum.
        weight_decay: pull towards 0, added to the gradient, >= 0.
        clip_norm: see `Optimizer`.
        clip_value: see `Optimizer`.

    Raises:
        ValueError: a number outside its range, or nesterov without momentum.

    Source: Sutskever et al., On the importance of initialization and momentum in deep learning,
    2013, in the form that PyTorch uses (the learning rate is not part of the velocity).
    """

    options = ("momentum", "nesterov", "weight_decay")

    def __init__(
        self,
        parameters: Any,
        learning_rate: float | Schedule = 0.01,
        *,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        clip_norm: float | None = None,
        clip_value: float | None = None,
    ) -> None:
        self.momentum = check_share("SGD: momentum", momentum)
        self.nesterov = nesterov
        self.weight_decay = check_not_negative("SGD: weight_decay", weight_decay)
        if nesterov and not momentum:
            raise ValueError("SGD: nesterov=True needs a momentum above 0")
        self.slots = ("velocity",) if momentum else ()
        super().__init__(parameters, learning_rate, clip_norm=clip_norm, clip_value=clip_value)

    def change(self, pack: Pack, gradient: Tensor, rate: Rate) -> Tensor:
        """See the class."""
        if self.weight_decay:
            gradient = gradient + pack.value() * self.weight_decay
        if self.momentum:
            velocity = pack.slots["velocity"]
            velocity.mul_(self.momentum).add_(gradient)
            gradient = gradient + velocity * self.momentum if self.nesterov else velocity
        return times(gradient, rate)
