"""What the functions of slicing.py and first_call.py are called with, and the right results."""

from __future__ import annotations

from typing import Any

import numpy as np
from eager_cases import CASES
from eager_cases import reference as update_reference

EPOCHS = 3001
PRINT_EACH = 100
RATE = 0.0005
"""Learning rate of the classifier."""
TURNS = 1000
"""Of the loops with a transfer."""
TITLES = {
    "call": "10 tensors of four numbers, added",
    "number": "a loop that adds 1 to a number and appends it to a list",
    "vector": "a loop that adds 1 to 32 numbers and appends the tensor to a list",
    "classifier": "linear classifier, 100 rows, 3,001 epochs per call",
    "a": CASES["a"].title,
    "b": CASES["b"].title,
}


def survey(dtype: Any = np.float32) -> list[np.ndarray]:
    """Inputs (100, 3) with a column of ones, labels (100, 1), first weights (3, 1)."""
    random = np.random.default_rng(5)
    x1, x2 = random.standard_normal(100), random.uniform(-3.0, 14.0, 100)
    labels = x1 - 0.7 * x2 + 4.0 + random.standard_normal(100) > 0.0
    inputs, weights = np.stack([np.ones(100), x1, x2], axis=1), random.standard_normal((3, 1))
    return [x.astype(np.float32).astype(dtype) for x in (inputs, labels[:, None], weights)]


def reference(case: str) -> list[float]:
    """The right numbers of a case."""
    if case in CASES:
        return update_reference(case)
    if case != "classifier":
        return [{"call": 4 * 45.0, "number": 1.0 * TURNS, "vector": 32.0 * TURNS}[case]]
    inputs, labels, weights = survey(np.float64)
    loss = np.float64(0)
    for _ in range(EPOCHS):
        scores = inputs @ weights
        loss = (np.logaddexp(scores, 0) - labels * scores).mean()
        errors = labels - 1 / (1 + np.exp(-scores))
        weights = weights + RATE * (inputs.T @ errors)
    return [*weights.ravel().tolist(), float(loss)]
