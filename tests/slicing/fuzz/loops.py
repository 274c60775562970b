"""Random loops; each ends after a few turns."""

from slicing.fuzz.control import blocks, run_block, write_steps
from slicing.fuzz.scope import FLOAT, FLOATS, INT, OTHER, tensor
from slicing.fuzz.statements import bind


def finish_loop(writer, scope, e, body, second, certain=False):
    """The else of a loop, and what is known after it."""
    ends = [body] if certain else [scope.inner(), body]
    scope.join(*ends)
    if second and e.picks.chance(4):
        inner = scope.inner(guarded=True)
        if run_block(writer, inner, "else:", second):
            scope.join(scope.inner(), inner)


@blocks(6)
def counted(writer, scope, e, first, second):
    """``for`` over a range."""
    option = e.picks.number(6)
    name = scope.shared.fresh("i")
    whole = e.whole(1)
    ranges = (
        "range(3)", f"range({whole} % 4)", "range(1, 4)", "range(3, 0, -1)", f"range({whole} % 3)",
        f"range(0, {whole} % 7, 2)",
    )  # fmt: skip
    body = scope.loop()
    body.bind(name, INT, rebindable=False)
    run_block(writer, body, f"for {name} in {ranges[option]}:", first)
    finish_loop(writer, scope, e, body, second, certain=option in (0, 2, 3) and not first)


@blocks(5)
def iterated(writer, scope, e, first, second):
    """``for`` over tensors: in lists, rows, zipped, enumerated."""
    choose = e.picks.ahead()
    item, number, other = (scope.shared.fresh(x) for x in ("v", "i", "w"))
    lists = [x for x in scope.having("tensors")]
    chosen = e.picks.one(lists) if lists else f"[{e.tensor()}, {e.tensor()}]"
    kind = scope.places[chosen].kind if lists else tensor()
    tracked = scope.places[chosen].tracked if lists else e.tracked
    floats = (scope.having(FLOATS) or ["(0.5, 1.5)"])[0]
    rows = e.tensor((2, 3))
    heads = (
        (f"for {item} in {chosen}:", {item: tensor(kind.shape, kind.dtype)}),
        (f"for {number}, {item} in enumerate({chosen}):", {number: INT, item: kind}),
        (f"for {item}, {other} in zip({chosen}, {floats}):", {item: kind, other: FLOAT}),
        (f"for {item} in {rows}:", {item: tensor()}),
        (f"for {item}, {other} in zip({chosen}, {rows}):", {item: kind, other: tensor()}),
        (f"for {item} in [{e.tensor()}, {e.tensor()}]:", {item: tensor()}),
        (f"for {other} in {floats}:", {other: FLOAT}),
        (f"for {item} in reversed({chosen}):", {item: kind}),
        (f"for {number}, ({item}, {other}) in enumerate(zip({chosen}, {floats})):",
         {number: INT, item: kind, other: FLOAT}),
    )  # fmt: skip
    if scope.shared.admits_any:
        heads += ((f"for {item} in parts_of({e.tensor()}):", {item: tensor()}),) * 4
    head, bound = choose(heads)
    if "parts_of" in head:
        scope.shared.admits("generator")
    body = scope.loop(may_grow=False)
    for name, of in bound.items():
        if of.name == "tensors":
            of = tensor(of.shape, of.dtype)
        body.bind(name, of, (tracked or e.tracked) and of.name == "tensor", rebindable=False)
    run_block(writer, body, head, first)
    finish_loop(writer, scope, e, body, second)


@blocks(5)
def repeated(writer, scope, e, first, second):
    """``while``: on a number, on tensors, on both; it ends after a few turns."""
    number = scope.shared.fresh("k")
    option = e.picks.number(6)
    if option in (1, 4):
        writer.line(f"{number} = dilim.asarray(0)")
    else:
        writer.line(f"{number} = 0")
    floating = [x for x in scope.having(tensor()) if scope.places[x].rebindable]
    carried = floating[0] if floating else "dilim.ones((3,))"
    tests = (
        f"{number} < 3",
        f"{number} < 3",
        f"{number} < 4 and {e.condition()}",
        f"({carried} * {carried}).sum() > 0.5 and {number} < 4",
        f"({number} < 4) & ({carried}.sum() < 9.0)",
        "True",
    )
    # a counter that is a tensor could be written in place, and the loop would not end
    scope.bind(number, OTHER if option in (1, 4) else INT, rebindable=False)
    body = scope.loop()
    if option in (1, 4):
        body.bind(f"({number} + 0)", tensor((), "int64"), rebindable=False)
    with writer.block(f"while {tests[option]}:"):
        step = f"{number} = {number} + 1" if option in (1, 4) else f"{number} += 1"
        writer.line(step)
        if option == 5:
            with writer.block(f"if {number} > 3 or {e.condition(1)}:"):
                writer.line("break")
        if floating and e.picks.number(2) == 0:
            writer.line(f"{carried} = {carried} * 0.5")
        write_steps(writer, body, first)
    finish_loop(writer, scope, e, body, second)


@blocks(1)
def growing(writer, scope, e, first, second):
    """A loop in which a tensor grows."""
    if not scope.shared.admits("growing shape"):
        return counted(writer, scope, e, first, second)
    name, number = scope.shared.fresh("t"), scope.shared.fresh("i")
    writer.line(f"{name} = {e.tensor()}")
    body = scope.loop()
    with writer.block(f"for {number} in range(3):"):
        writer.line(f"{name} = dilim.concat([{name}, {e.tensor()}])")
        write_steps(writer, body, first)
    return bind(writer, scope, name, f"{name}.sum()", tensor(()), e.tracked)
