"""Units merge exactly when nothing has to run between them, and stand in an order that holds."""

from hypothesis import given, settings
from hypothesis import strategies as st

from dilim.ir.graph import Node
from dilim.passes.fusion_units import Order

COUNT = 8
PAIRS = st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1))


def reaches(edges, start, end):
    """Whether there is a path of one edge or more."""
    waiting, seen = [start], set()
    while waiting:
        for a, b in edges:
            if a == waiting[-1] and b not in seen:
                seen.add(b)
                waiting.append(b)
                break
        else:
            waiting.pop()
    return end in seen


@settings(max_examples=150)
@given(st.sets(PAIRS, max_size=14), st.lists(st.tuples(st.booleans(), PAIRS), max_size=12))
def test_merging_and_adding_edges(edges, steps):
    order = Order()
    units = [order.add(number, Node("exp", (), {}, ())) for number in range(COUNT)]
    edges = {(a, b) for a, b in edges if a < b}
    for a, b in edges:
        units[b].needs(units[a])
    group = list(range(COUNT))
    for merge, (a, b) in steps:
        a, b = group[a], group[b]
        if a == b:
            continue
        if merge:
            between = [
                c
                for c in set(group) - {a, b}
                if (reaches(edges, a, c) and reaches(edges, c, b))
                or (reaches(edges, b, c) and reaches(edges, c, a))
            ]
            merged = order.merge(units[a].whole, units[b].whole)
            assert (merged is None) == bool(between)
            if merged is not None:
                group = [a if x == b else x for x in group]
                edges = {(a if x == b else x, a if y == b else y) for x, y in edges}
                edges = {(x, y) for x, y in edges if x != y}
        else:
            added = order.add_edge(units[a].whole, units[b].whole)
            assert added == (not reaches(edges, b, a))
            if added:
                edges.add((a, b))
        check(order, units, group, edges)


def check(order, units, group, edges):
    standing = list(order)
    assert [unit.place for unit in standing] == sorted(unit.place for unit in standing)
    assert sorted(n for unit in standing for n in unit.nodes) == list(range(COUNT))
    for number, unit in enumerate(units):
        assert unit.whole is units[group[number]].whole
        assert number in unit.whole.nodes
    for a, b in edges:
        assert units[a].whole.place < units[b].whole.place
