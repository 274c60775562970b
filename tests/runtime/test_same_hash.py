"""Six thousand training steps leave the same bits in all state, whatever runs them."""

import hashlib

import numpy as np
import pytest

import dilim
from dilim import nn, optim
from dilim.backends.llvm.targets import LEVELS
from dilim.errors import DeviceError
from dilim.runtime.programs import compile_graph

STEPS, FEW = 6000, 150
BATCH = 8


def update_graph():
    """A DQN update with target network, Huber loss and Adam, and the memory of its variables."""
    generator = dilim.Generator(3)
    online = nn.MLP(4, [19, 13, 2], generator=generator)
    target = nn.MLP(4, [19, 13, 2], generator=generator)
    optimizer = optim.Adam(online, learning_rate=1e-3)

    def update(s, action, reward, s2, done):
        with dilim.no_grad():
            goal = reward + 0.99 * (1.0 - done) * target(s2).max(axis=1)
        optimizer.zero_grad()
        chosen = dilim.take_along_axis(online(s), action.reshape(BATCH, 1), axis=1)
        loss = nn.losses.huber(chosen.reshape(BATCH), goal)
        loss.backward()
        optimizer.step()
        return loss

    graph = dilim.Graph.from_function(update, *batches()[0])
    traced = graph.compile(backend="reference").traced
    return traced.graph, traced.arrays()


def batches():
    rng = np.random.default_rng(0)
    return [
        (
            rng.standard_normal((BATCH, 4)).astype(np.float32),
            rng.integers(0, 2, BATCH),
            rng.standard_normal(BATCH).astype(np.float32),
            rng.standard_normal((BATCH, 4)).astype(np.float32),
            (rng.random(BATCH) < 0.1).astype(np.float32),
        )
        for _ in range(20)
    ]


def state_hash(program, initial, steps):
    """The hash of all variables, and the number of steps after which a NaN appeared, or 0."""
    variables = [np.array(array) for array in initial]
    data = batches()
    for step in range(steps):
        (loss,) = program.run(data[step % len(data)], variables)
        assert np.isfinite(loss)
    digest = hashlib.sha256()
    for array in variables:
        digest.update(array.tobytes())
    return digest.hexdigest()


@pytest.fixture(scope="module")
def wanted():
    """The hashes on the processor at hand, after few and after many steps."""
    graph, initial = update_graph()
    program = compile_graph(graph)
    return {steps: state_hash(program, initial, steps) for steps in (FEW, STEPS)}


@pytest.mark.parametrize("cpu", LEVELS)
def test_every_vector_width(cpu, wanted):
    graph, initial = update_graph()
    try:
        program = compile_graph(graph, cpu=cpu)
    except DeviceError as error:
        pytest.skip(str(error))
    assert state_hash(program, initial, STEPS) == wanted[STEPS]


def test_the_reference(wanted):
    graph, initial = update_graph()
    program = compile_graph(graph, backend="reference")
    assert state_hash(program, initial, FEW) == wanted[FEW]


def test_fused_rounding_is_found_out(wanted):
    graph, initial = update_graph()
    assert state_hash(compile_graph(graph, numerics="fast"), initial, FEW) != wanted[FEW]
