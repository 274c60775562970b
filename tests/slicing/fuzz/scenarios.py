"""Random calls of a generated function: arguments, what changes before, what is done after."""

from dataclasses import dataclass

from slicing.fuzz.scope import FLOAT, FLOATING, INT, Picks
from slicing.fuzz.tensor_expressions import NUMBERS

CALLS = (
    "same", "same", "other numbers", "other numbers", "changed", "changed", "changed",
    "same objects", "aliases", "other types", "twice",
)  # fmt: skip
ROWS = (0.5, -1.0, 2.0, 0.0, 1.5, -0.25, 3.0, -2.0, 0.1, 1e-3, 7.0, -0.0)


@dataclass(frozen=True)
class Call:
    """One call.

    Attributes:
        before: a statement that is run in the module first; may be empty.
        arguments: the text of a list.
        keywords: the text of a dictionary.
        after: a statement with the name ``result``, run at the end; may be empty.
    """

    arguments: str
    keywords: str = "{}"
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Setting:
    """What calls depend on.

    Attributes:
        around: the `Surroundings` of the function.
        helpers: names of module-level functions that the program has.
    """

    around: object
    helpers: frozenset


def write_calls(setting, wanted):
    """Calls as (kind, numbers) ask for them; the first is a plain one."""
    first = Picks(wanted[0][1] if wanted else b"")
    base = first.number(7)
    calls = [_call(setting, "same", first, base)]
    for kind, numbers in wanted[1:]:
        calls.append(_call(setting, kind, Picks(numbers), base))
    return tuple(calls)


def _call(setting, kind, picks, base):
    around = setting.around
    shift = base + (1 + picks.number(5) if kind == "other numbers" else 0)
    values = {
        name: _value(of, shift + position, kind == "other types" and picks.number(3) == 0)
        for position, (name, of) in enumerate(around.parameters.items())
    }
    if kind == "aliases":
        _make_aliases(values, around.parameters, picks)
    before = _change(setting, picks) if kind in ("changed", "twice") else ""
    if kind == "same objects":
        values["x"] = "LAST"
        before = f"LAST = {_value(around.parameters['x'], base, False)}"
    if around.boxed:
        values["box"] = "BOX"
    positional, named = _passed(around, picks)
    arguments = ", ".join(values[x] for x in positional)
    keywords = ", ".join(f'"{x}": {values[x]}' for x in named)
    after = picks.one(("", "", "backward(result)", "fill(result)", "", "backward(result)"))
    return Call(f"[{arguments}]", f"{{{keywords}}}", before, after)


def _passed(around, picks):
    """The parameters that are passed by position and by name; some are left to their default."""
    parts = [part.split("=") for part in around.signature().split(", ")]
    named = around.by_name()
    positional = [x for x, *_ in parts if x not in ("self", "*", *named)]
    usual = {x for x, *default in parts if default}
    while positional and positional[-1] in usual and picks.chance(5):
        positional.pop()
    if len(positional) > 1 and picks.chance(2):
        named = [positional.pop(), *named]
    return positional, [x for x in named if x not in usual or not picks.chance(4)]


def _value(kind, shift, other):
    """The text of an argument of this kind."""
    if kind.name == "tensor":
        return _tensor(kind, shift, other)
    if kind.name == "tensors":
        return f"[{_tensor(kind, shift, other)}, {_tensor(kind, shift + 3, False)}]"
    if kind == INT:
        return "True" if other else str((3, 2, 0, 1, 4, 5)[shift % 6])
    if kind == FLOAT:
        return "2" if other else str(ROWS[(shift * 5) % len(ROWS)])
    if kind.name == "bool":
        return "None" if other else ("True", "False")[shift % 2]
    if kind.name == "floats":
        return "[]" if other else f"[{ROWS[shift % 12]}, {ROWS[(shift + 4) % 12]}]"
    return '"plain"' if shift % 2 == 0 else '"other"'


def _tensor(kind, shift, other):
    size = 1
    for extent in kind.shape:
        size *= extent
    shape, dtype = kind.shape, kind.dtype
    if other:
        dtype = "float64" if dtype in FLOATING else "int32"
    numbers = [ROWS[(shift * 5 + i * 7) % len(ROWS)] for i in range(size)]
    if dtype not in FLOATING:
        numbers = [int(2 * x) for x in numbers]
    data = str(numbers) if shape else str(numbers[0])
    text = f"dilim.tensor({data}, dtype=dilim.{dtype})"
    return f"{text}.reshape{shape}" if len(shape) > 1 else text


def _make_aliases(values, parameters, picks):
    """Make two arguments share memory, or be one object."""
    alike = [name for name, kind in parameters.items() if kind == parameters["x"]]
    if "items" in parameters and picks.number(2):
        values["x"] = f"(SHARED := {values['x']})"
        values["items"] = picks.one(("[SHARED, SHARED]", "[SHARED[:], SHARED]"))
    elif "z" in parameters:
        values["x"] = f"(SHARED := {_value(parameters['z'], 1, False)})[1]"
        values["z"] = picks.one(("SHARED", "SHARED.T"))
    elif len(alike) > 1:
        values[alike[1]] = values["x"]


def _change(setting, picks):
    """A statement that changes what the function depends on."""
    around = setting.around
    number = picks.one(NUMBERS)
    texts = [
        f"original.__defaults__ = {_defaults(around)}",
        "random.seed(5)",
        "dilim.seed(3)",
        f"SCALE = {number}",
    ]
    changes = {
        "WEIGHT": f"WEIGHT = dilim.tensor([{number}, 1.0, 2.0])",
        "LIMIT": "LIMIT = 1",
        "MODE": 'MODE = "other"',
        "PARAMETER": f"PARAMETER = dilim.tensor([{number}, 0.5, 0.5], requires_grad=True)",
        "GENERATOR": "GENERATOR = dilim.Generator(9)",
        "NOTES": "NOTES = [0.25]",
        "STATE": 'STATE = {"n": 4, "t": dilim.zeros((3,)), "x": 0}',
        "scaled": "scaled = other",
        "loud": "loud = bump",
        "deep": "deep.__defaults__ = (1,)",
        "score": "score = abs",
        "draw": "draw = lambda: 0.25",
        "early": "early = scaled",
        "helper1": "helper1.__defaults__ = (3, 0.25)",
        "helper2": "helper2 = helper1",
        "MODEL": "MODEL.weight.requires_grad_(False)",
        "OPTIMIZER": "OPTIMIZER.learning_rate = 0.01",
        "adder": "adder = lambda t: (lambda v: v - t)",
    }
    texts += [text for name, text in changes.items() if name in setting.helpers]
    if around.boxed or around.form == "method":
        texts += [
            "BOX.w = dilim.tensor([0.5, 0.5, -1.0])",
            f"BOX.scale = {number}",
            "BOX.n = 3",
            "BOX.w += 1.0",
            "BOX.parts.append(dilim.zeros((3,)))",
            "Box.advance = lambda self, t: t + self.n",
            "BOX.log = [1.0]",
            "BOX = Box(2.0)",
            "BOX.w = BOX.parts[0]",
        ]
    if around.form == "closure":
        texts += [f"set_bias(dilim.tensor([{number}, 0.0, 1.0]))"] * 3
    return picks.one(texts)


def _defaults(around):
    """Other defaults for the positional parameters that have one."""
    changed = {"n": "1", "u": "-0.5", "flag": "False", "mode": '"other"'}
    names = [x for x in around.parameters if x in changed and x not in around.by_name()]
    return f"({''.join(changed[x] + ', ' for x in names)})"
