"""Whole graphs as native programs: all operations that can run, buffers, and errors."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from single import assert_same_bits, one_node

import dilim
from dilim import dtypes
from dilim.backends.llvm.program import Program
from dilim.backends.reference.executor import by_recipe, execute
from dilim.errors import ShapeError, UnsupportedError
from dilim.ir.graph import GraphBuilder
from dilim.ir.types import Type
from dilim.ops.table import OPERATIONS
from dilim.tensors.symbolic import trace

f32 = dtypes.float32
MISSING_PRIMITIVES = set(
    "atan2 ceil cos floor floor_divide nextafter pow remainder round sin trunc".split()
)
NATIVE = set(
    "exp expm1 log log1p log2 log10 logaddexp tanh sigmoid erf sinh cosh asinh acosh atanh sum "
    "matmul add multiply divide relu sqrt max prod where astype reshape permute expand "
    "flip slice slice_update concat windows full equal logical_not bitwise_xor random_bits".split()
)


def samples_of(op, dtype):
    for sample in op.samples(np.random.default_rng(7), dtype):
        tensors = [x for x in sample.inputs if isinstance(x, np.ndarray)]
        scalar = tensors[-1].dtype if tensors else dtype.numpy
        arrays = [x if isinstance(x, np.ndarray) else np.asarray(x, scalar) for x in sample.inputs]
        yield [np.array(x, order="C") for x in arrays], sample.params


REFUSAL = re.compile(
    r"llvm: (\w+): (the primitive (\w+) on \w+ cannot be emitted|the loop form "
    r"(ArgReduce|Scatter|Scan) cannot be emitted|it reads at positions that are data|it has no "
    r"recipe)"
)


def compiled_or_refused(graph):
    """The program of a graph, or why there is none."""
    try:
        return Program(graph), None
    except UnsupportedError as error:
        return None, REFUSAL.match(str(error))


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_runs_natively_as_interpreted_or_says_why_not(name):
    op = OPERATIONS[name]
    dtype = f32 if f32 in op.sample_dtypes else op.sample_dtypes[0]
    for arrays, params in itertools.islice(samples_of(op, dtype), 6):
        graph = one_node(name, *arrays, **params)
        program, refusal = compiled_or_refused(graph)
        if program is not None:
            assert_same_bits(program(*arrays)[0], execute(graph, arrays, by_recipe)[0])
        else:
            assert name not in NATIVE
            assert refusal[1] == name
            assert refusal[3] is None or refusal[3] in MISSING_PRIMITIVES


def test_a_training_step_runs_natively_with_the_interpreters_bits():
    def loss(x, w1, b1, w2, target):
        hidden = dilim.softmax((x @ w1 + b1).relu())
        difference = hidden @ w2 - target
        return dilim.where(difference > 0.5, difference, difference * difference).mean()

    def step(*arguments):
        value, found = dilim.value_and_grad(loss, argnums=(1, 2, 3))(*arguments)
        updated = [w - 0.1 * g for w, g in zip(arguments[1:4], found, strict=True)]
        return [value, *updated]

    rng = np.random.default_rng(0)
    shapes = (6, 5), (5, 4), (4,), (4, 2), (6, 2)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    graph = trace(step, *(Type(x.shape, f32) for x in arrays)).graph
    program = Program(graph)
    for _ in range(3):
        want = execute(graph, arrays, by_recipe)
        got = program(*arrays)
        for a, b in zip(got, want, strict=True):
            assert_same_bits(a, b)
        arrays[1:4] = got[1:]
    eager = step(*map(dilim.tensor, arrays))
    assert program(*arrays)[0] == pytest.approx(eager[0].item(), rel=1e-5)


def test_outputs_may_repeat_and_be_inputs():
    builder = GraphBuilder()
    x = builder.input(Type((3,), f32), "x")
    y = builder.add("negative", [x], {}, x.type)
    z = builder.add("negative", [y], {}, x.type)
    array = np.array([1, 2, 3], np.float32)
    first, second, third, fourth = Program(builder.build([y, x, z, y]))(array)
    assert [r.tolist() for r in (first, second, third)] == [[-1, -2, -3], [1, 2, 3], [1, 2, 3]]
    np.testing.assert_array_equal(first, fourth)
    assert not np.shares_memory(first, fourth)
    assert not np.shares_memory(second, array)


def test_a_graph_without_nodes_or_inputs_runs():
    assert Program(GraphBuilder().build([]))() == []
    graph = one_node("full", shape=(2,), value=0.1, dtype=f32)
    assert Program(graph)()[0].tolist() == [np.float32(0.1)] * 2


def test_equal_operations_share_one_kernel():
    builder = GraphBuilder()
    x = builder.input(Type((3,), f32))
    y = builder.add("exp", [builder.add("exp", [x], {}, x.type)], {}, x.type)
    total = builder.add("sum", [y], {"axis": (0,), "keepdims": False}, Type((), f32))
    again = builder.add("sum", [y], {"axis": (0,), "keepdims": True}, Type((1,), f32))
    text = Program(builder.build([total, again])).llvm_ir
    assert text.count("define void @exp_") == 1
    assert text.count("call void @exp_") == 2
    assert text.count("define void @sum_") == 2


def test_calls_do_not_share_memory():
    x = np.arange(5000, dtype=np.float32)
    program = Program(one_node("sum", x, axis=(0,), keepdims=False))
    first = program(x)[0]
    second = program(2 * x)[0]
    assert first * 2 == second


def test_inputs_of_another_type_or_layout_are_refused():
    program = Program(one_node("exp", np.zeros((2, 3), np.float32)))
    with pytest.raises(ShapeError, match="expected 1 inputs, received 2"):
        program(np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32))
    for wrong in (
        np.zeros((3, 2), np.float32),
        np.zeros((2, 3)),
        np.zeros((3, 2), np.float32).T,
        np.zeros((2, 3), ">f4"),
    ):
        with pytest.raises(ShapeError, match=r"row-major input of type float32\[2,3\], received"):
            program(wrong)


def test_what_cannot_run_is_named():
    x = np.zeros(3, np.float32)
    with pytest.raises(UnsupportedError, match="llvm: tan: the primitive sin on float32 cannot"):
        Program(one_node("tan", x))
    with pytest.raises(UnsupportedError, match="argmax: the loop form ArgReduce cannot"):
        Program(one_node("argmax", x, axis=(0,), keepdims=False))
    with pytest.raises(UnsupportedError, match="argsort: it has no recipe"):
        Program(one_node("argsort", x, axis=0, descending=True))
    with pytest.raises(UnsupportedError, match="take: it reads at positions that are data"):
        Program(one_node("take", x, np.array([0, 7]), axis=0))


def test_one_file_alone_imports_llvmlite():
    folder = Path(dilim.__file__).parent
    users = [p for p in folder.rglob("*.py") if "import llvmlite" in p.read_text(encoding="utf-8")]
    assert [p.relative_to(folder).as_posix() for p in users] == ["backends/llvm/binding.py"]
