"""Optimisers, learning-rate schedules, and limits on gradients.

To add an optimiser: derive it from `Optimizer` in a file here, name it in `OPTIMIZERS`, and give
`tests/optim/reference.py` the same formula in NumPy; the tests then check it.
"""

from dilim.optim import schedules
from dilim.optim.adam import Adam, AdamW
from dilim.optim.clipping import clip_grad_norm, clip_grad_value
from dilim.optim.optimizer import Optimizer
from dilim.optim.rmsprop import RMSprop
from dilim.optim.schedules import (
    SCHEDULES,
    Constant,
    CosineDecay,
    ExponentialDecay,
    LinearDecay,
    Schedule,
    StepDecay,
    Warmup,
)
from dilim.optim.sgd import SGD

OPTIMIZERS = {optimizer.__name__: optimizer for optimizer in (SGD, Adam, AdamW, RMSprop)}
"""All optimisers by name; tests walk over them."""

__all__ = [
    "OPTIMIZERS",
    "SCHEDULES",
    "SGD",
    "Adam",
    "AdamW",
    "Constant",
    "CosineDecay",
    "ExponentialDecay",
    "LinearDecay",
    "Optimizer",
    "RMSprop",
    "Schedule",
    "StepDecay",
    "Warmup",
    "clip_grad_norm",
    "clip_grad_value",
    "schedules",
]
