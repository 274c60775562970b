"""How tests build each layer: name -> list of (constructor of generator and dtype, input shape).

The input is None for a layer that takes integers; then `INTEGER_INPUTS` has it.
"""

import numpy as np

from dilim import nn


def _sequential(g, d):
    return nn.Sequential(nn.Dense(3, 4, generator=g, dtype=d), nn.Tanh(), nn.Dense(4, 2, dtype=d))


LAYER_CASES = {
    "Conv2d": [
        (lambda g, d: nn.Conv2d(2, 3, 3, generator=g, dtype=d), (2, 2, 5, 4)),
        (
            lambda g, d: nn.Conv2d(1, 2, (2, 3), stride=(2, 1), padding=1, generator=g, dtype=d),
            (2, 1, 4, 5),
        ),
        (
            lambda g, d: nn.Conv2d(2, 2, (3, 2), padding="same", bias=False, generator=g, dtype=d),
            (1, 2, 3, 4),
        ),
        (
            lambda g, d: nn.Conv2d(2, 1, 3, stride=2, padding="same", generator=g, dtype=d),
            (1, 2, 5, 4),
        ),
    ],
    "Dense": [
        (lambda g, d: nn.Dense(3, 2, generator=g, dtype=d), (4, 3)),
        (lambda g, d: nn.Dense(3, 2, bias=False, generator=g, dtype=d), (2, 2, 3)),
        (lambda g, d: nn.Dense(3, 1, generator=g, dtype=d), (3,)),
        (lambda g, d: nn.Dense(3, 2, generator=g, dtype=d), (0, 3)),
    ],
    "Dropout": [(lambda g, d: nn.Dropout(0.3, generator=g).eval(), (4, 3))],
    "Embedding": [(lambda g, d: nn.Embedding(5, 3, generator=g, dtype=d), None)],
    "Flatten": [(lambda g, d: nn.Flatten(), (2, 3, 4)), (lambda g, d: nn.Flatten(0), (2, 3))],
    "GELU": [(lambda g, d: nn.GELU(), (3, 4)), (lambda g, d: nn.GELU("tanh"), (3, 4))],
    "LayerNorm": [
        (lambda g, d: nn.LayerNorm(4, dtype=d), (3, 4)),
        (lambda g, d: nn.LayerNorm((2, 3), epsilon=0.1, dtype=d), (2, 2, 3)),
    ],
    "LogSoftmax": [(lambda g, d: nn.LogSoftmax(), (3, 4))],
    "MLP": [
        (lambda g, d: nn.MLP(3, [4, 4, 2], generator=g, dtype=d), (5, 3)),
        (lambda g, d: nn.MLP(3, [4, 1], "tanh", init="kaiming", generator=g, dtype=d), (2, 3)),
    ],
    "MaxPool2d": [
        (lambda g, d: nn.MaxPool2d(2), (2, 3, 4, 5)),
        (lambda g, d: nn.MaxPool2d((3, 2), stride=1), (1, 1, 4, 4)),
    ],
    "ReLU": [(lambda g, d: nn.ReLU(), (3, 4))],
    "Sequential": [(_sequential, (4, 3)), (lambda g, d: nn.Sequential(), (2, 2))],
    "Sigmoid": [(lambda g, d: nn.Sigmoid(), (3, 4))],
    "Softmax": [(lambda g, d: nn.Softmax(), (3, 4)), (lambda g, d: nn.Softmax(0), (3, 4))],
    "Tanh": [(lambda g, d: nn.Tanh(), (3, 4))],
}

INTEGER_INPUTS = {"Embedding": np.array([[0, 4], [4, 2]])}

CASES = [
    (name, number, make, shape)
    for name, cases in LAYER_CASES.items()
    for number, (make, shape) in enumerate(cases)
]
IDS = [f"{name}-{number}" for name, number, _, _ in CASES]


def input_of(name, shape, dtype=np.float64):
    if shape is None:
        return INTEGER_INPUTS[name]
    return np.random.default_rng(3).normal(size=shape).astype(dtype)
