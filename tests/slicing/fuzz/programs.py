"""`Program`, a generated module with calls of its function; and the strategy `programs()`.

::

    from slicing.fuzz.compare import assert_same
    from slicing.fuzz.programs import programs

    @given(programs())
    def test_my_compiler(program):
        assert_same(program, my_compiler)
"""

import ast
import random
from dataclasses import dataclass, field

from hypothesis import strategies as st

from slicing.fuzz import control, effects, functions, loops
from slicing.fuzz.captures import rebinds_captured
from slicing.fuzz.host_expressions import Expressions
from slicing.fuzz.scenarios import CALLS, Call, Setting, write_calls
from slicing.fuzz.scope import FLOAT, HOST_ONLY, INT, Picks, Scope, Shared, Writer, tensor
from slicing.fuzz.statements import STATEMENTS
from slicing.fuzz.surroundings import (
    GLOBAL_PLACES,
    HELPERS,
    IMPORTS,
    draw_surroundings,
    needed_definitions,
)


@dataclass(frozen=True)
class Program:
    """A module, and calls of one of its functions.

    Attributes:
        source: the text of the module.
        calls: what is done with it.
        owner: the class whose method the function is; empty for a function of the module.
        callee: what is called: ``f``, or a bound method.
        features: what it uses, of `scope.HOST_ONLY`.
    """

    source: str
    calls: tuple[Call, ...]
    owner: str = ""
    callee: str = "f"
    features: frozenset = field(default=frozenset(), compare=False)

    @property
    def sliceable(self):
        """Whether nothing in it has to run on the host as a whole."""
        return not self.features & HOST_ONLY

    def __repr__(self):
        lines = [self.source, ""]
        for call in self.calls:
            lines += [call.before] if call.before else []
            lines.append(f"result = {self.callee}(*{call.arguments}, **{call.keywords})")
            lines += [call.after] if call.after else []
        return "\n".join(lines)


# --- writing --------------------------------------------------------------------------------


def write_program(settings, body, helpers, wanted):
    """A program from what Hypothesis drew.

    Args:
        settings: bytes that choose the surroundings.
        body: the steps of the function.
        helpers: lists of steps, one per helper function.
        wanted: (kind, bytes) per call.
    """
    picks = Picks(settings)
    around = draw_surroundings(picks)
    admits_any = picks.chance(4)
    features = set()
    known = dict(HELPERS)
    texts = []
    for number, steps in enumerate(helpers):
        name = f"helper{number + 1}"
        shared = Shared(features, admits_any, dict(known), entry=False)
        texts.append(_write_helper(name, steps, shared))
        known[name] = tensor()
    scope = Scope(Shared(features, admits_any, known), around.places())
    writer = Writer()
    _write_entry(writer, scope, around, body, picks)
    own = "\n".join(writer.lines)
    method = own if around.form == "method" else ""
    inside = "\n".join([*texts, own])
    definitions = needed_definitions([inside], method, around.optimizer)
    present = frozenset(x for x in [*known, *GLOBAL_PLACES, *_names(definitions)] if x in inside)
    calls = write_calls(Setting(around, present), wanted)
    uses = [" ".join((call.before, call.arguments, call.keywords)) for call in calls]
    definitions = needed_definitions([inside, *uses], method, around.optimizer)
    parts = [IMPORTS, *definitions, *texts]
    parts += [] if method else [own]
    source = "\n\n".join(parts) + "\n"
    if rebinds_captured(ast.parse(source)):
        features.add("rebound capture")
    owner, callee = ("Box", "BOX.f") if method else ("", "f")
    return Program(source, calls, owner, callee, frozenset(features))


def _names(definitions):
    return [text.split("=")[0].split("(")[0].replace("def", "").strip() for text in definitions]


def _write_entry(writer, scope, around, steps, picks):
    """The function that is compiled, inside of what makes it."""
    if around.form == "closure":
        with writer.block("def make(bias):"):
            _write_function(writer, scope, f"def f({around.signature()}):", steps, picks)
            with writer.block("def set_bias(value):"):
                writer.add(["nonlocal bias", "bias = value"])
            writer.line("return f, set_bias")
        writer.line("f, set_bias = make(dilim.tensor([0.25, -0.5, 1.0]))")
    elif around.form == "method":
        inner = Writer(depth=1)
        _write_function(inner, scope, f"def f({around.signature()}):", steps, picks)
        writer.lines += ["", *inner.lines]
    else:
        _write_function(writer, scope, f"def f({around.signature()}):", steps, picks)


def _write_function(writer, scope, head, steps, picks):
    with writer.block(head):
        if control.write_steps(writer, scope, steps):
            e = Expressions(scope, picks)
            writer.line(f"return {control.returned(scope, e)}")


def _write_helper(name, steps, shared):
    """A function from a tensor and numbers to a tensor of the same kind."""
    scope = Scope(shared, {"SCALE": GLOBAL_PLACES["SCALE"]}, returns=tensor())
    scope.bind("t", tensor(), tracked=True)
    scope.bind("n", INT)
    scope.bind("u", FLOAT)
    writer = Writer()
    _write_function(writer, scope, f"def {name}(t, n=1, u=0.5):", steps, Picks(b""))
    return "\n".join(writer.lines)


# --- drawing --------------------------------------------------------------------------------

WRITERS = (effects, functions, loops)
"""Modules that register kinds of statements, besides those that are used here."""
CHOICES = 40  # numbers per statement
SIMPLE = ["nothing"] + [name for name, (weight, _) in STATEMENTS.items() for _ in range(weight)]
SIMPLE += [name for name in control.EXITS for _ in range(2)]
COMPOUND = [name for name, (weight, _) in control.BLOCKS.items() for _ in range(weight)]
NO_BLOCKS = ((), ())


def random_program(seed, size=12, depth=3, calls=4):
    """The program of this seed: no two are alike, unlike those that Hypothesis draws in a row.

    Args:
        seed: an int.
        size: most statements of the function's outermost block.
        depth: of nested blocks.
        calls: most calls.
    """
    rng = random.Random(seed)
    wanted = [(rng.choice(CALLS), rng.randbytes(CHOICES)) for _ in range(rng.randint(1, calls))]
    return write_program(
        settings=rng.randbytes(CHOICES),
        body=_random_steps(rng, rng.randint(2, size), depth),
        helpers=[_random_steps(rng, rng.randint(0, 4), 1) for _ in range(rng.randint(0, 2))],
        wanted=wanted,
    )


def _random_steps(rng, count, depth):
    steps = []
    for _ in range(count):
        numbers = rng.randbytes(CHOICES)
        if depth and rng.random() < 0.3:
            inner = [
                _random_steps(rng, rng.randint(0, max(2, count // 2)), depth - 1) for _ in "ab"
            ]
            steps.append((rng.choice(COMPOUND), numbers, inner))
        else:
            steps.append((rng.choice(SIMPLE), numbers, NO_BLOCKS))
    return steps


def programs(size=10, depth=3, calls=4):
    """Random programs as Hypothesis draws and shrinks them; see `random_program`."""
    numbers = st.binary(min_size=CHOICES, max_size=CHOICES)  # one draw for many choices: fast
    return st.builds(
        write_program,
        settings=numbers,
        body=_steps(numbers, size, depth, least=2),
        helpers=st.lists(_steps(numbers, 4, 1), max_size=2),
        wanted=st.lists(st.tuples(st.sampled_from(CALLS), numbers), min_size=1, max_size=calls),
    )


def _steps(numbers, most, depth, least=0):
    """Lists of steps: (kind, numbers, steps of two blocks); they shrink to nothing."""
    step = st.tuples(st.sampled_from(SIMPLE), numbers, st.just(NO_BLOCKS))
    if depth:
        inner = _steps(numbers, max(2, most // 2), depth - 1)
        deep = st.tuples(st.sampled_from(COMPOUND), numbers, st.tuples(inner, inner))
        step = st.one_of(step, step, step, deep)
    return st.lists(step, min_size=least, max_size=most)
