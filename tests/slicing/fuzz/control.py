"""Random statements with blocks: branches, loops, contexts, inner functions, training."""

from slicing.fuzz.host_expressions import Expressions
from slicing.fuzz.scope import Picks
from slicing.fuzz.statements import STATEMENTS

BLOCKS = {}
"""Name -> (weight, function of a writer, a scope, expressions, and steps of two blocks)."""
EXITS = ("leave", "go_back", "skip")
DEEPEST = 4


def blocks(weight):
    """Register a function as a kind of statement with blocks that is chosen so often."""

    def register(function):
        BLOCKS[function.__name__] = (weight, function)
        return function

    return register


def write_steps(writer, scope, steps):
    """Write statements for steps; whether the end of the block can be reached."""
    for kind, numbers, inner in steps:
        e = Expressions(scope, Picks(numbers))
        if kind in EXITS:
            if write_exit(writer, scope, e, kind):
                return False
        elif kind in BLOCKS and scope.depth < DEEPEST:
            if BLOCKS[kind][1](writer, scope, e, *inner) == "ends":
                return False
        elif kind in STATEMENTS:
            STATEMENTS[kind][1](writer, scope, e)
    return True


def write_exit(writer, scope, e, kind):
    """A return, break or continue; whether it ends the block."""
    if kind == "go_back" or not scope.in_loop:
        written = f"return {returned(scope, e)}"
    else:
        written = "break" if kind == "leave" else "continue"
    if scope.guarded:
        writer.line(written)
        return True
    with writer.block(f"if {e.condition()}:"):
        writer.line(written)
    return False


def returned(scope, e):
    """The expression of a return statement."""
    if scope.returns is not None:
        return e.tensor_like(scope.returns)
    option = e.picks.number(6)
    places = [x for x in scope.having("tensor", "int", "float", "tensors", "floats", "dict",
                                      "other", "str", "bool") if "[" not in x]  # fmt: skip
    first = e.picks.one(places) if places else "0"
    several = ", ".join(places[: 2 + e.picks.number(5)]) or "0"
    texts = (
        f"({several})",
        first,
        f'{{"first": {first}, "all": [{several}]}}',
        f"{e.tensor()}",
        f"[{first}, {first}]",
        f"{first} if {e.condition(1)} else None",
    )
    return texts[option]


def run_block(writer, scope, head, steps):
    """A block; whether its end can be reached."""
    with writer.block(head):
        return write_steps(writer, scope, steps)


# --- branches -------------------------------------------------------------------------------


@blocks(8)
def branch(writer, scope, e, first, second):
    """``if``, often with ``else``, sometimes with ``elif``."""
    before = scope.inner()
    arms = [(f"if {e.condition()}:", first)]
    if second and e.picks.chance(4):
        arms.append((f"elif {e.condition()}:", second[1:]))
        second = second[:1]
    if second:
        arms.append(("else:", second))
    ends = []
    for head, steps in arms:
        inner = before.inner(guarded=True, depth=scope.depth + 1)
        if run_block(writer, inner, head, steps):
            ends.append(inner)
    if not second:
        ends.append(before)
    if not ends:
        return "ends"
    scope.join(*ends)
    return None


# --- contexts and errors --------------------------------------------------------------------


@blocks(2)
def unrecorded(writer, scope, e, first, second):
    """``with dilim.no_grad():``, in which parameters may be written."""
    choose = e.picks.ahead()
    inner = scope.inner(recording=False)
    leaves = [x for x, place in scope.places.items() if place.leaf]
    with writer.block("with dilim.no_grad():"):
        if leaves and e.picks.number(2) == 0:
            leaf = e.picks.one(leaves)
            value = e.tensor_like(scope.places[leaf].kind)
            texts = ("{}.sub_(0.1 * {})", "{}[0] = {}[0]", "{}.copy_({})", "{}.mul_({})")
            writer.line(choose(texts).format(leaf, value))
        reached = write_steps(writer, inner, first)
    inner.recording = scope.recording
    if not reached:
        return "ends"
    scope.join(inner)
    return None


@blocks(2)
def attempted(writer, scope, e, first, second):
    """``try``, with what may be raised inside."""
    if not scope.shared.admits("try"):
        return branch(writer, scope, e, first, second)
    option = e.picks.number(4)
    before, inner = scope.inner(), scope.inner(guarded=True)
    raised = (
        f"print(1 // ({e.whole(1)} % 2))",
        f'raise ValueError(f"got {{{e.real(0)}}}")',
        f"print({e.tensor((3,))}[{e.whole(1)} + 1])",
        f"print([0.5, 1.5][{e.whole(1)}])",
    )
    with writer.block("try:"):
        write_steps(writer, inner, first)
        if option == 1:
            with writer.block(f"if {e.condition()}:"):
                writer.line(raised[option])
        else:
            writer.line(raised[option])
    caught = before.inner()
    for name in inner.places:
        if name not in caught.places:
            caught.places[name] = inner.places[name]
    with writer.block("except (ValueError, ZeroDivisionError, IndexError) as error:"):
        writer.line('print("caught", type(error).__name__, error)')
    if e.picks.chance(5):
        with writer.block("else:"):
            write_steps(writer, inner, second)
    if e.picks.chance(5):
        with writer.block("finally:"):
            writer.line('print("finally")')
    scope.join(before, inner)
    return None
