"""What becomes one kernel, what does not, and in which order kernels run."""

import pytest

from dilim.ir.structure import FUSED
from dilim.ir.verify import verify
from dilim.ops.nest import compose
from dilim.ops.table import OPERATIONS
from dilim.passes import fusion as module
from dilim.passes.fusion import fusion
from dilim.passes.pipeline import optimise
from passes.graphs import body, find, ops

MATRICES = "%x: float32[8,4], %w: float32[4,5], %b: float32[5], %i: int64[8]; %v: float32[8,5]"


def kernels(lines, inputs="%x: float32[3]"):
    """The operations of each kernel that fusion makes, views and constants left out."""
    graph = fusion(body(lines, inputs))
    verify(graph, OPERATIONS)
    found = []
    for node in find(graph, FUSED):
        compose(node.regions[0], OPERATIONS)
        hidden = ("full", "reshape", "permute", "expand", "slice", "flip")
        found.append([op for op in ops(node.regions[0]) if op not in hidden])
    return found


JOINED = {
    "a chain": (
        "%a: float32[3] = exp(%x)\n%b: float32[3] = negative(%a)\nreturn %b",
        [["exp", "negative"]],
    ),
    "a chain with a result in the middle": (
        "%a: float32[3] = exp(%x)\n%b: float32[3] = negative(%a)\nreturn %b, %a",
        [["exp", "negative"]],
    ),
    "moments of an optimiser": (
        "%a: float32[3] = multiply(%x, %x)\n%b: float32[3] = negative(%x)\nreturn %b, %a",
        [["multiply", "negative"]],
    ),
    "a sum and what it sums": (
        "%a: float32[3] = exp(%x)\n%b: float32[] = sum[axis=(0,), keepdims=False](%a)\nreturn %b",
        [["exp", "sum"]],
    ),
    "a sum and what follows": (
        "%a: float32[] = sum[axis=(0,), keepdims=False](%x)\n%b: float32[] = exp(%a)\nreturn %b",
        [["sum", "exp"]],
    ),
    "two reductions of one thing": (
        "%a: float32[] = sum[axis=(0,), keepdims=False](%x)\n"
        "%b: float32[] = max[axis=(0,), keepdims=False](%x)\nreturn %b, %a",
        [["sum", "max"]],
    ),
    "the sum of exponentials below the largest": (
        "%a: float32[1] = max[axis=(0,), keepdims=True](%x)\n%b: float32[3] = subtract(%x, %a)\n"
        "%c: float32[3] = exp(%b)\n%d: float32[] = sum[axis=(0,), keepdims=False](%c)\nreturn %d",
        [["max", "subtract", "exp", "sum"]],
    ),
    "a transposed view between": (
        "%a: float32[3] = exp(%x)\n%b: float32[3] = flip[axis=(0,)](%a)\n"
        "%c: float32[3] = multiply(%b, %x)\nreturn %c",
        [["exp", "multiply"]],
    ),
}


@pytest.mark.parametrize("name", JOINED)
def test_joined(name):
    lines, wanted = JOINED[name]
    assert kernels(lines) == wanted


APART = {
    "a sum and those who spread it over columns": (
        "%a: float32[1,4] = sum[axis=(0,), keepdims=True](%x)\n"
        "%c: float32[8,4] = subtract(%x, %a)\nreturn %c",
        [["sum"], ["subtract"]],
    ),
    "an exponential that is read in two orders": (
        "%a: float32[8,4] = exp(%x)\n%f: float32[8,4] = flip[axis=(0,)](%a)\n"
        "%c: float32[8,4] = add(%a, %f)\nreturn %c",
        [["exp"], ["add"]],
    ),
    "an exponential of each row, used for all of it": (
        "%s: float32[8,1] = slice[index=((0, 8, 1), (0, 1, 1))](%x)\n%a: float32[8,1] = exp(%s)\n"
        "%c: float32[8,4] = subtract(%x, %a)\nreturn %c",
        [["exp"], ["subtract"]],
    ),
    "what is computed for a matrix product": (
        "%a: float32[8,4] = exp(%x)\n%c: float32[8,5] = matmul(%a, %w)\nreturn %c",
        [["exp"], ["matmul"]],
    ),
    "two matrix products": (
        "%a: float32[8,5] = matmul(%x, %w)\n%y: float32[8,4] = negative(%x)\n"
        "%c: float32[8,5] = matmul(%y, %w)\n%d: float32[8,5] = add(%a, %c)\nreturn %d",
        [["negative"], ["matmul"], ["matmul", "add"]],
    ),
    "a matrix product and what may raise": (
        "%a: float32[8,5] = matmul(%x, %w)\n%p: int64[8,1] = reshape[shape=(8, 1)](%i)\n"
        "%c: float32[8,1] = take_along_axis[axis=1](%a, %p)\nreturn %c",
        [["matmul"], ["take_along_axis"]],
    ),
    "a scan and its consumer": (
        "%a: float32[8,4] = cumulative_sum[axis=0](%x)\n%c: float32[8,4] = exp(%a)\nreturn %c",
        [["cumulative_sum"], ["exp"]],
    ),
}


@pytest.mark.parametrize("name", APART)
def test_apart(name):
    lines, wanted = APART[name]
    assert sorted(kernels(lines, MATRICES)) == sorted(wanted)


def test_a_layer_is_one_kernel():
    lines = """
        %a: float32[8,5] = matmul(%x, %w)
        %c: float32[8,5] = add(%a, %b)
        %d: float32[8,5] = relu(%c)
        return %d"""
    assert kernels(lines, MATRICES) == [["matmul", "add", "relu"]]


def test_a_mask_is_made_again_rather_than_stored():
    lines = """
        %a: float32[8,5] = matmul(%x, %w)
        %r: float32[8,5] = relu(%a)
        %z: float32[] = full[shape=(), value=0.0, dtype=float32]()
        %m: bool[8,5] = greater(%r, %z)
        %t: float32[4,8] = permute[order=(1, 0)](%x)
        %g: float32[4,5] = matmul(%t, %r)
        %u: float32[5,4] = permute[order=(1, 0)](%g)
        %h: float32[8,4] = matmul(%r, %u)
        %k: float32[8,5] = matmul(%h, %g)
        %q: float32[8,5] = where(%m, %k, %z)
        return %q"""
    found = kernels(lines, MATRICES)
    assert found[0] == ["matmul", "relu"]
    assert sorted(found[-1]) == ["greater", "matmul", "where"]


def test_kernels_have_no_cycle_through_others():
    """a -> sort -> c and a -> c: a and c stay apart, because the sort is between them."""
    lines = """
        %a: float32[3] = exp(%x)
        %s: int64[3] = argsort[axis=0, descending=False](%a)
        %t: float32[3] = astype[dtype=float32](%s)
        %c: float32[3] = add(%a, %t)
        return %c"""
    assert kernels(lines) == [["exp"], ["argsort"], ["astype", "add"]]


RAISERS = "%x: float32[3], %i: int64[2], %j: int64[2]; %v: float32[3], %w: float32[2]"


def test_what_may_raise_stays_between_the_effects_around_it():
    graph = fusion(
        body(
            """
            %a: float32[3] = exp(%x)
            write(%v, %a)
            %b: float32[2] = take[axis=0](%x, %i)
            send[channel='c'](%b)
            %c: float32[2] = take[axis=0](%x, %j)
            write(%w, %c)
            return""",
            RAISERS,
        )
    )
    effects = [node.op if node.op != FUSED else ops(node.regions[0])[0] for node in graph.nodes]
    assert [op for op in effects if op != "exp"] == ["write", "take", "send", "take", "write"]


def test_two_that_may_raise_do_not_share_a_kernel():
    lines = """
        %a: float32[2] = take[axis=0](%x, %i)
        %b: float32[2] = take[axis=0](%x, %j)
        %c: float32[2] = add(%a, %b)
        return %c"""
    assert len(kernels(lines, RAISERS)) == 2


def test_unless_they_test_the_same_positions():
    lines = """
        %a: float32[2] = take[axis=0](%x, %i)
        %y: float32[3] = read(%v)
        %b: float32[2] = take[axis=0](%y, %i)
        %c: float32[2] = add(%a, %b)
        return %c"""
    assert kernels(lines, RAISERS) == [["take", "take", "add"]]


def test_a_test_is_made_though_only_part_of_the_result_is_used():
    lines = """
        %a: float32[2] = take[axis=0](%x, %i)
        %b: float32[1] = slice[index=((0, 1, 1),)](%a)
        %c: float32[1] = exp(%b)
        return %c"""
    assert kernels(lines, RAISERS) == [["take"], ["exp"]]


@pytest.mark.parametrize(
    "form",
    [
        "float32[2,4] = cumulative_sum[axis=0](%b)",
        "int64[2,4] = argsort[axis=1, descending=False](%b)",
        "int64[4] = argmax[axis=(0,), keepdims=False](%b)",
        "float32[3,4] = index_add[axis=0](%y, %j, %b)",
    ],
)
def test_what_may_raise_stays_out_of_forms_that_test_nothing_of_others(form):
    lines = f"""
        %j: int64[2] = full[shape=(2,), value=1, dtype=int64]()
        %a: float32[4,2] = take[axis=1](%x, %i)
        %t: float32[2,4] = permute[order=(1, 0)](%a)
        %b: float32[2,4] = exp(%t)
        %c: {form}
        return %c"""
    found = kernels(lines, "%x: float32[4,3], %i: int64[2], %y: float32[3,4]")
    assert found[0] == ["take"]
    assert len(found) == 2


def test_a_power_of_integers_may_raise_unless_the_exponents_are_known():
    lines = """
        %t: {0}[3] = {1}
        %a: {0}[3] = pow(%x, %t)
        return"""
    for dtype, exponents, found in (
        ("int64", "negative(%x)", [["negative", "pow"]]),
        ("int64", "full[shape=(3,), value=-1, dtype=int64]()", [["pow"]]),
        ("int64", "full[shape=(3,), value=2, dtype=int64]()", []),
        ("uint8", "identity(%x)", []),
        ("float32", "negative(%x)", []),
    ):
        assert kernels(lines.format(dtype, exponents), f"%x: {dtype}[3]") == found


def test_an_unused_result_that_may_raise_is_a_kernel():
    assert kernels("%a: float32[2] = take[axis=0](%x, %i)\nreturn", RAISERS) == [["take"]]


def test_views_and_constants_are_copied_into_kernels_of_inner_blocks():
    lines = """
        %t: float32[3] = flip[axis=(0,)](%x)
        %c: float32[] = full[shape=(), value=2.0, dtype=float32]()
        %n: int64[] = full[shape=(), value=3, dtype=int64]()
        %r: float32[3] = loop(%n, %x) do (%k: int64[], %a: float32[3]) {
          %d: float32[3] = multiply(%a, %t)
          %e: float32[3] = add(%d, %c)
          yield %e
        }
        return %r"""
    graph = optimise(body(lines))
    (limit, kernel) = find(graph, FUSED)
    assert ops(limit.regions[0]) == ["full"]
    assert sorted(ops(kernel.regions[0])) == ["add", "flip", "full", "multiply"]
    assert len(kernel.inputs) == 2


def test_a_view_that_leaves_is_a_kernel():
    assert kernels("%t: float32[3] = flip[axis=(0,)](%x)\nreturn %t") == [[]]


def test_very_long_chains_are_cut():
    steps = "\n".join(f"%v{k + 1}: float32[3] = sin(%v{k})" for k in range(50))
    lines = f"%v0: float32[3] = negative(%x)\n{steps}\nreturn %v50"
    found = kernels(lines)
    assert sum(map(len, found)) == 51
    assert 3 <= len(found) <= 6


def test_a_reduction_of_repeated_rows_stores_them():
    """It would be computed again for every row."""
    lines = """
        %e: float32[3,8,4] = expand[shape=(3, 8, 4)](%x)
        %f: float32[3,4,5] = expand[shape=(3, 4, 5)](%w)
        %m: float32[3,8,5] = matmul(%e, %f)
        return %m"""
    assert kernels(lines, MATRICES) == [[], [], ["matmul"]]


def test_a_product_with_a_repeated_constant_stores_it():
    lines = """
        %c: float32[3,4,5] = full[shape=(3, 4, 5), value=1.0, dtype=float32]()
        %m: float32[3,8,5] = matmul(%x, %c)
        return %m"""
    assert kernels(lines, MATRICES) == [[], ["matmul"]]


def test_a_reduction_that_is_read_under_a_condition_stays_apart():
    lines = """
        %m: float32[] = max[axis=(0,), keepdims=False](%x)
        %r: float32[1] = reshape[shape=(1,)](%m)
        %t: float32[2] = full[shape=(2,), value=3.0, dtype=float32]()
        %c: float32[3] = concat[axis=0](%r, %t)
        %b: bool[3] = astype[dtype=bool](%c)
        %a: bool[] = any[axis=(0,), keepdims=False](%b)
        %s: float32[] = sum[axis=(0,), keepdims=False](%x)
        %w: float32[] = where(%a, %s, %s)
        return %w"""
    assert kernels(lines) == [["max"], ["concat", "astype", "any", "sum", "where"]]


def test_a_unit_that_is_no_nest_becomes_one_kernel_for_each_operation(monkeypatch):
    monkeypatch.setattr(module, "_is_nest", lambda kernel: False)
    monkeypatch.setattr(module, "_MANY", 1)
    lines = "%a: float32[3] = exp(%x)\n%b: float32[3] = negative(%a)\nreturn %b, %a"
    assert kernels(lines) == [["exp"], ["negative"]]
