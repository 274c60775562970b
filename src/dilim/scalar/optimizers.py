"""Optimisers: they change parameters so that the loss falls."""

from __future__ import annotations

import math
from collections.abc import Iterable

from dilim.errors import GradientError

from . import ieee
from .value import Value


class Optimizer:
    """What `SGD` and `Adam` share: the parameters and their gradients.

    Args:
        parameters: Leaf values, such as `model.parameters()`.
        learning_rate: Step size, above 0. It may be changed between steps.

    Raises:
        ValueError: No parameters, or a learning rate that is not above 0.
    """

    def __init__(self, parameters: Iterable[Value], learning_rate: float) -> None:
        self.parameters = list(parameters)
        self.learning_rate = learning_rate
        name = type(self).__name__
        if not self.parameters:
            raise ValueError(f"{name}: expected parameters to train, got none")
        if not learning_rate > 0.0:
            raise ValueError(f"{name}: learning_rate must be above 0, got {learning_rate!r}")

    def zero_grad(self) -> None:
        """Set the `grad` of all parameters to 0.0. Call it before each `backward()`."""
        for parameter in self.parameters:
            parameter.grad, parameter.has_grad = 0.0, False

    def check_gradients(self) -> None:
        """Refuse a step that would do nothing because `backward()` was forgotten.

        Raises:
            GradientError: No parameter has a gradient.
        """
        if not any(parameter.has_grad or parameter.grad for parameter in self.parameters):
            raise GradientError(
                f"{type(self).__name__}.step: no parameter has a gradient; "
                "call loss.backward() after zero_grad() and before step()"
            )


class SGD(Optimizer):
    """Stochastic gradient descent.

    velocity = momentum * velocity + grad; data = data - learning_rate * velocity.

    Args:
        parameters: Leaf values, such as `model.parameters()`.
        learning_rate: Step size.
        momentum: Share of the last step that is kept, from 0.0 (none) to below 1.0.

    Raises:
        ValueError: No parameters, or a number outside its range.
    """

    def __init__(
        self, parameters: Iterable[Value], learning_rate: float = 0.01, momentum: float = 0.0
    ) -> None:
        super().__init__(parameters, learning_rate)
        if not 0.0 <= momentum < 1.0:
            raise ValueError(f"SGD: momentum must be at least 0 and below 1, got {momentum!r}")
        self.momentum = momentum
        self._velocities = [0.0] * len(self.parameters)

    def step(self) -> None:
        """Move each parameter against its gradient.

        Raises:
            GradientError: No parameter has a gradient.
        """
        self.check_gradients()
        # With a number of NumPy the parameters would become numbers of NumPy, perhaps of float32.
        rate, momentum = float(self.learning_rate), float(self.momentum)
        if momentum == 0.0:
            for parameter in self.parameters:
                parameter.data -= rate * parameter.grad
            return
        for index, parameter in enumerate(self.parameters):
            velocity = momentum * self._velocities[index] + parameter.grad
            self._velocities[index] = velocity
            parameter.data -= rate * velocity


class Adam(Optimizer):
    """Adam: a step size of its own for each parameter.

    With g the gradient and t the number of the step, counted from 1::

        m = beta1 * m + (1 - beta1) * g          running mean of g
        v = beta2 * v + (1 - beta2) * g^2        running mean of g^2
        data = data - learning_rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)

    Args:
        parameters: Leaf values, such as `model.parameters()`.
        learning_rate: Largest usual step per parameter.
        betas: beta1 and beta2, both from 0.0 to below 1.0.
        epsilon: Keeps the division finite; outside the root.

    Raises:
        ValueError: No parameters, or a number outside its range.

    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015, algorithm 1.
    """

    def __init__(
        self,
        parameters: Iterable[Value],
        learning_rate: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
    ) -> None:
        super().__init__(parameters, learning_rate)
        if not all(0.0 <= beta < 1.0 for beta in betas):
            raise ValueError(f"Adam: betas must be at least 0 and below 1, got {betas!r}")
        self.betas = betas
        self.epsilon = epsilon
        self._step_count = 0
        self._means = [0.0] * len(self.parameters)
        self._squares = [0.0] * len(self.parameters)

    def step(self) -> None:
        """Move each parameter against its running mean gradient.

        Raises:
            GradientError: No parameter has a gradient.
        """
        self.check_gradients()
        self._step_count += 1
        beta1, beta2 = map(float, self.betas)
        rate, epsilon = float(self.learning_rate), float(self.epsilon)
        mean_correction = 1.0 - beta1**self._step_count
        square_correction = 1.0 - beta2**self._step_count
        for index, parameter in enumerate(self.parameters):
            grad = parameter.grad
            mean = beta1 * self._means[index] + (1.0 - beta1) * grad
            square = beta2 * self._squares[index] + (1.0 - beta2) * grad * grad
            self._means[index], self._squares[index] = mean, square
            size = math.sqrt(square / square_correction) + epsilon
            parameter.data -= ieee.divide(rate * (mean / mean_correction), size)
