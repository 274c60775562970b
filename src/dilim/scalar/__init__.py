"""Automatic differentiation, one number at a time: see how gradients come about.

Standard library only. Start with `Value`; `docs/scalar.md` is the tutorial.

    >>> from dilim.scalar import Value
    >>> x = Value(3.0)
    >>> y = x * x + 2 * x
    >>> y.backward()
    >>> x.grad
    8.0
"""

from . import loss as loss
from .checking import check_grad as check_grad
from .checking import compare_gradients as compare_gradients
from .expression import build_expression as build_expression
from .expression import evaluate as evaluate
from .network import MLP as MLP
from .network import Layer as Layer
from .network import Neuron as Neuron
from .optimizers import SGD as SGD
from .optimizers import Adam as Adam
from .steps import ChainRuleStep as ChainRuleStep
from .value import Value as Value

__all__ = [
    "MLP",
    "SGD",
    "Adam",
    "ChainRuleStep",
    "Layer",
    "Neuron",
    "Value",
    "build_expression",
    "check_grad",
    "compare_gradients",
    "evaluate",
    "loss",
]
