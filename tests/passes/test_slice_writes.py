"""A row written into large storage costs a row."""

import numpy as np

from dilim.ir.structure import walk
from dilim.ir.text import from_text, to_text
from dilim.passes.pipeline import optimise
from dilim.passes.slice_writes import slice_writes
from dilim.runtime.programs import compile_graph
from ir.programs import same_bits

WRITING = """graph(%row: float32[1,4]; %store: float32[1000,4]) {
  %old: float32[1000,4] = read(%store)
  %new: float32[1000,4] = slice_update[index=((7, 1, 1), (0, 4, 1))](%old, %row)
  write(%store, %new)
  return
}"""
READING = WRITING.replace("return", "return %old")


def operations(graph):
    return [node.op for node in walk(graph)]


def test_the_old_contents_that_nobody_else_wants_are_written_in_place():
    graph = slice_writes(from_text(WRITING))
    assert operations(graph) == ["read", "slice_write", "write"]
    final = optimise(from_text(WRITING))
    kernel = next(node for node in walk(final) if node.op == "fused")
    assert kernel.params["alias"] == ((0, kernel.inputs.index(final.nodes[0].results[0])),)
    assert next(node for node in walk(final) if node.op == "write").params == {"in_place": True}


def test_old_contents_that_are_wanted_stay():
    assert operations(slice_writes(from_text(READING))) == ["read", "slice_update", "write"]


def test_only_the_row_changes_and_nothing_is_copied():
    row = np.arange(4, dtype=np.float32)[None]
    for text in (WRITING, READING):
        store = np.random.default_rng(0).standard_normal((1000, 4)).astype(np.float32)
        want, before = store.copy(), store.copy()
        want[7] = row
        program = compile_graph(from_text(text), poison=True)
        results = program.run([row], [store])
        assert same_bits(store, want)
        assert all(same_bits(result, before) for result in results)
    small = compile_graph(from_text(WRITING))
    assert small.native.built.size < 1000, to_text(optimise(from_text(WRITING)))


INDEXED = """graph(%i: int64[], %n: float32[]; %store: float32[10,10]) {
  %old: float32[10,10] = read(%store)
  %flat: float32[100] = reshape[shape=(100,)](%old)
  %new: float32[100] = index_update[axis=0](%flat, %i, %n)
  %back: float32[10,10] = reshape[shape=(10, 10)](%new)
  write(%store, %back)
  return
}"""


def test_an_element_at_a_position_of_two_axes_is_written_in_place():
    graph = slice_writes(from_text(INDEXED))
    assert "index_write" in operations(graph)
    assert "index_update" not in operations(graph)
    store = np.zeros((10, 10), np.float32)
    want = store.copy()
    want[4, 2] = 3
    compile_graph(from_text(INDEXED), poison=True).run([np.array(42), np.float32(3)], [store])
    assert same_bits(store, want)
    final = optimise(from_text(INDEXED))
    assert next(node for node in walk(final) if node.op == "write").params == {"in_place": True}
    kernels = [node for node in walk(final) if node.op == "fused"]
    assert [kernel.params["alias"] for kernel in kernels] == [((0, 0),)]


def test_another_shape_than_before_is_not_that_of_the_store():
    text = INDEXED.replace("(10, 10)](%new)", "(5, 20)](%new)")
    text = text.replace("%back: float32[10,10]", "%b: float32[5,20]")
    text = text.replace("  write(%store, %back)\n", "").replace("return", "return %b")
    graph = slice_writes(from_text(text))
    assert "index_update" in operations(graph)
