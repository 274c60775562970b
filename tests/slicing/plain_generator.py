"""Random functions without tensors, as texts."""

from hypothesis import strategies as st

NAMES = ["a", "b", "c", "d"]
MOST_STATEMENTS = 4


FORMS = [
    "{x}",
    "log({x})",
    "({x} + {y})",
    "({x} - {y})",
    "({x} // {y})",
    "({x} and {y})",
    "({x} or {y})",
    "(not {x})",
    "({x} if {y} else {z})",
    "({x} < {y} <= {z})",
    "({x} == {y})",
    "({m} := {x})",
    "pair({x}, *[{y}], k={z})",
    "({x}, {y})",
    "[{x}, *t, {y}]",
    "[k + {x} for k in range(3) if k != {y}]",
    "f'{{{v}}}-{{{w}!r:>{{{m}}}}}'",
    "t[0]",
    "t[:{x}]",
    "t[{x}]",
    "box.u",
    "box.v",
    "change({x})",
    "max([{x}], key=lambda k: {y})",
    "sum(k for k in {x} if {y})",
]


class Writer:
    """Writes a function by drawing; every name may be unbound, every operation may fail."""

    def __init__(self, draw):
        self.draw = draw
        self.loops = 0

    def pick(self, *options):
        return self.draw(st.sampled_from(options))

    def name(self):
        return self.pick(*NAMES)

    def value(self, depth):
        if depth == 0:
            return self.pick(self.name(), self.name(), "1", "2", "0", "t", "G", "[1, 2]", "-3")
        form = self.pick(*FORMS)
        used = {
            part: self.value(depth - 1 if part in "xyz" else 0)
            for part in "xyzvw"
            if f"{{{part}}}" in form
        }
        names = {part: self.name() for part in "mn"}
        return form.format(**used, **names)

    def target(self):
        return self.pick(
            self.name(), self.name(), "t[0]", "box.u", f"{self.name()}, {self.name()}", "box.v"
        )

    def block(self, depth, indent):
        count = self.draw(st.integers(1, MOST_STATEMENTS))
        lines = []
        for _ in range(count):
            lines += self.statement(depth, indent)
        return lines

    def statement(self, depth, indent):
        pad = "    " * indent
        kinds = ["assign", "assign", "update", "expression", "return", "raise", "delete", "global"]
        if depth:
            kinds += ["if", "for", "while", "try", "with", "for", "if"]
        if self.loops:
            kinds += ["break", "continue"]
        return [pad + line for line in getattr(self, f"_{self.pick(*kinds)}")(depth)]

    def inner(self, depth, *, loop=False):
        outer, self.loops = self.loops, self.loops + loop
        lines = self.block(depth - 1, 1)
        self.loops = outer
        return lines

    def _assign(self, depth):
        return [f"{self.target()} = {self.value(2)}"]

    def _update(self, depth):
        target = self.pick(self.name(), "t[0]", "box.u")
        return [f"{target} {self.pick('+', '-')}= {self.value(2)}"]

    def _expression(self, depth):
        return [self.value(2)]

    def _return(self, depth):
        return [f"if {self.value(1)}:", f"    return {self.value(2)}"]

    def _raise(self, depth):
        return [f"if {self.value(1)}:", f"    raise ValueError({self.value(1)})"]

    def _delete(self, depth):
        return [f"del {self.name()}"]

    def _global(self, depth):
        return [f"G = {self.value(1)}"]

    def _break(self, depth):
        return [f"if {self.value(1)}: break"]

    def _continue(self, depth):
        return [f"if {self.value(1)}: continue"]

    def _if(self, depth):
        lines = [f"if {self.value(2)}:", *self.inner(depth)]
        return lines + ["else:", *self.inner(depth)] * self.draw(st.booleans())

    def _for(self, depth):
        items = self.pick("range(3)", "t", "[(1, 2), (3, 4)]", self.value(1))
        stop = "    if not turn(): break"
        lines = [f"for {self.target()} in {items}:", stop, *self.inner(depth, loop=True)]
        return lines + ["else:", *self.inner(depth)] * self.draw(st.booleans())

    def _while(self, depth):
        test = f"turn() and {self.value(1)}"
        lines = [f"while {test}:", *self.inner(depth, loop=True)]
        return lines + ["else:", *self.inner(depth)] * self.draw(st.booleans())

    def _try(self, depth):
        error = self.pick("Exception", "ValueError", "TypeError as a", "Exception as b")
        lines = ["try:", *self.inner(depth), f"except {error}:", *self.inner(depth)]
        return lines + ["finally:", *self.inner(depth)] * self.draw(st.booleans())

    def _with(self, depth):
        name = self.pick("", f" as {self.name()}", " as box.v")
        return [f"with Loud('w', {self.pick('True', 'False')}){name}:", *self.inner(depth)]


HEAD = """
G = 5
turns = 0
class Box:
    def __init__(self): self.u, self.v = 1, [2]
    def __repr__(self): return f"Box({vars(self)})"
def turn():
    global turns
    turns += 1
    return turns < 12
def pair(*args, **keywords): return args[:2], keywords
def change(x):
    global G, turns
    turns += 1
    G = x
    return 7
"""


@st.composite
def functions(draw):
    """The text of a module with a function ``f(a, b, t, box)``."""
    lines = Writer(draw).block(2, 1)
    body = "\n".join(lines)
    return (
        f"{HEAD}def f(a, b, t, box):\n    global G\n{body}\n"
        "    return a, b, t, box\nFRAMES_DIFFER = '<listcomp>'\n"
        "CALLS = [(1, 2, [3, 4], Box()), (0, [1], [5, 6, 0], Box())]\n"
    )
