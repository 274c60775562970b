"""The backward pass in slow motion: one application of the chain rule at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .naming import CONSTANT, formula, node_names, number_text

if TYPE_CHECKING:
    from .value import Value


@dataclass(frozen=True)
class ChainRuleStep:
    """One line of the backward pass: `input.grad += local_derivative * incoming_gradient`.

    `str(step)` is a sentence for people.

    Attributes:
        node: The value whose gradient is passed on; it is complete at this point.
        input: The input of `node` that receives.
        local_derivative: d(node)/d(input).
        incoming_gradient: d(result)/d(node).
        added: What was added to `input.grad`: the product, or 0.0 if the incoming gradient is 0.0.
        total: `input.grad` after that.
        names: How all values of the expression are called in the sentence.
    """

    node: Value
    input: Value
    local_derivative: float
    incoming_gradient: float
    added: float
    total: float
    names: dict[Value, str] = field(repr=False, compare=False)

    def __str__(self) -> str:
        node, receiver = self.names[self.node], self.names[self.input]
        incoming, local = number_text(self.incoming_gradient), number_text(self.local_derivative)
        return (
            f"{node} = {formula(self.node, self.names)}: gradient {incoming}, "
            f"local derivative {local}: {receiver} gets {incoming} * {local} = "
            f"{number_text(self.added)}, now {number_text(self.total)}"
        )


def backward_steps(root: Value) -> Iterator[ChainRuleStep]:
    """Do what `backward()` does, one application of the chain rule at a time.

    Work happens only while you iterate: after the last step all gradients are as `backward()`
    leaves them (the arithmetic and its order are the same), and a loop that stops early leaves the
    rest undone. Constants are passed over.

    Yields:
        One `ChainRuleStep` per value and input that is not a constant, from the result to the
        leaves.

    Example:
        >>> from dilim.scalar import Value
        >>> x = Value(3.0, label="x")
        >>> for step in (x * x).backward_steps():
        ...     print(step)
        v1 = x * x: gradient 1, local derivative 3: x gets 1 * 3 = 3, now 3
        v1 = x * x: gradient 1, local derivative 3: x gets 1 * 3 = 3, now 6
    """
    order = root.graph()
    names = node_names(order)
    for node in order:
        if node.inputs:
            node.grad, node.has_grad = 0.0, False
    root.grad += 1.0
    root.has_grad = True
    for node in reversed(order):
        incoming = node.grad
        slopes = (node._left_slope, node._right_slope)
        for source, slope in zip(node.inputs, slopes, strict=False):
            if source.op == CONSTANT:
                continue
            added = slope * incoming if incoming != 0.0 else 0.0
            source.grad += added
            source.has_grad = True
            yield ChainRuleStep(node, source, slope, incoming, added, source.grad, names)
