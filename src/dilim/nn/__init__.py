"""Layers, losses, initialisers, and saving.

To add a layer: write it in a file here, name it in `LAYERS`, and give `tests/nn/layer_cases.py` a
line with how to build one; the tests then check it. Losses likewise in `LOSSES`.
"""

from dilim.nn import init, losses
from dilim.nn.activations import (
    ACTIVATIONS,
    GELU,
    LogSoftmax,
    ReLU,
    Sigmoid,
    Softmax,
    Tanh,
    gelu,
)
from dilim.nn.containers import Dropout, Flatten, Sequential
from dilim.nn.convolution import Conv2d, MaxPool2d
from dilim.nn.dense import MLP, Dense, Linear
from dilim.nn.embedding import Embedding
from dilim.nn.init import INITIALIZERS
from dilim.nn.module import Module
from dilim.nn.normalization import LayerNorm
from dilim.nn.saving import load, save

LAYERS = {
    layer.__name__: layer
    for layer in (
        Conv2d,
        Dense,
        Dropout,
        Embedding,
        Flatten,
        GELU,
        LayerNorm,
        LogSoftmax,
        MaxPool2d,
        MLP,
        ReLU,
        Sequential,
        Sigmoid,
        Softmax,
        Tanh,
    )
}
"""All layers by name; tests walk over them."""

LOSSES = {
    loss.__name__: loss
    for loss in (
        losses.binary_cross_entropy_with_logits,
        losses.cross_entropy,
        losses.hinge,
        losses.huber,
        losses.mae,
        losses.mse,
        losses.nll,
    )
}
"""All losses by name; tests walk over them."""

__all__ = [
    "ACTIVATIONS",
    "GELU",
    "INITIALIZERS",
    "LAYERS",
    "LOSSES",
    "MLP",
    "Conv2d",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "LayerNorm",
    "Linear",
    "LogSoftmax",
    "MaxPool2d",
    "Module",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "gelu",
    "init",
    "load",
    "losses",
    "save",
]
