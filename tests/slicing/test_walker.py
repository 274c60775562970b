import inspect
import sys

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from plain_generator import functions
from plain_programs import PROGRAMS
from plain_running import load, seen

from dilim.slicing.errors import Unsliceable
from dilim.slicing.observers import Observer
from dilim.slicing.program import Branch, For, While, With
from dilim.slicing.source import function_of
from dilim.slicing.walker import Walker

# Python 3.12 and 3.13.0 ask some operands of `a and b or c` twice, an error mended since.
if (3, 12) <= sys.version_info < (3, 13, 1):
    del PROGRAMS["truth"]


class Watching(Observer):
    """Watches every loop, and asks for every value."""

    wants_steps = True

    def __init__(self):
        self.turns = []
        self.values = []

    def watches(self, loop):
        return True

    def before_loop(self, loop, path, frame):
        self.turns.append(path)
        return False

    def after_step(self, step, value):
        self.values.append((step.line, type(value)))


def plain_of(f):
    return getattr(f, "__func__", f)


def framed(f, args):
    """The frame of a call, by Python's own binding of arguments."""
    function = function_of(f)
    signature = inspect.signature(plain_of(f))
    bound = signature.bind(*((f.__self__, *args) if hasattr(f, "__self__") else args))
    bound.apply_defaults()
    return function, dict(bound.arguments)


def walked(f, observer=None):
    def run(*args):
        function, frame = framed(f, args)
        return Walker(function, plain_of(f), observer).run(frame)

    return run


@pytest.mark.parametrize("observer", [None, Watching], ids=["in one piece", "loop by loop"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_what_python_does(name, observer):
    for number in range(len(load(PROGRAMS[name])["CALLS"])):
        plain = end_of(name, number, lambda f: f)
        end = end_of(name, number, lambda f: walked(f, observer and observer()))
        assert end == plain, f"call {number}"


class Reached(BaseException):
    """The statement is reached at which a run is to be cut."""


class Stepping(Walker):
    """Walks statement by statement, and stops before the one with a number."""

    stop_at = None

    def __init__(self, function, f):
        super().__init__(function, f)
        self.points = 0

    def _plan(self, block, path, start, inside, final):
        actions = []
        for place in range(start, len(block)):
            here, statement = (*path, place), block[place]
            actions.append(lambda frame, here=here: self.reach(here, frame))
            if isinstance(statement, Branch):
                actions.append(self._branch((), statement, here, inside))
            elif isinstance(statement, While | For | With):
                actions.append(self._compound(statement, here, inside))
            else:
                actions.append(self._fragments.run([statement]))
        return actions

    def _groups(self, block, start):
        return [((), None, start)]

    def _within(self, statement, frame, body):
        leave = self._fragments.leave

        def leave_unless_stopped(statement):
            def function(frame, error):
                return False if isinstance(error, Reached) else leave(statement)(frame, error)

            return function

        self._fragments.leave = leave_unless_stopped
        return super()._within(statement, frame, body)

    def reach(self, path, frame):
        if self.points == self.stop_at:
            raise Reached(path)
        self.points += 1


def cut_at(f, number, observer, points):
    """Runs a function up to a statement in steps, and the rest as one."""

    def run(*args):
        function, frame = framed(f, args)
        first = Stepping(function, plain_of(f))
        first.stop_at = number
        try:
            return first.run(frame)
        except Reached as reached:
            path = reached.args[0]
        points.append(path)
        return Walker(function, plain_of(f), observer).resume(path, frame)

    return run


def end_of(name, number, how):
    namespace = load(PROGRAMS[name])
    show = namespace.get("show", lambda value: value)
    args = namespace["CALLS"][number]
    return seen(how(namespace["f"]), args, namespace, lambda value: repr(show(value)))


# A run that was cut keeps the values on the way in its frame for longer.
@pytest.mark.parametrize("name", [name for name in PROGRAMS if "let go" not in name])
def test_a_run_goes_on_from_every_statement_that_it_comes_to(name):
    for number in range(len(load(PROGRAMS[name])["CALLS"])):
        plain = end_of(name, number, lambda f: f)
        # Runs of many steps are cut at some of them only, others in each call.
        point, reached = 0, [()]
        while reached:
            reached = []
            observer = Watching() if point % 2 else None
            end = end_of(name, number, lambda f: cut_at(f, point, observer, reached))  # noqa: B023
            assert end == plain, reached
            point += 1 + point // 5
        assert point > 1 or name == "nothing"


def is_sliceable(text):
    try:
        function_of(load(text)["f"])
    except (Unsliceable, SyntaxError):  # A walrus may stand where Python does not allow it.
        return False
    return True


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(functions(), st.integers(0, 1), st.integers(0, 30))
def test_random_functions_do_what_python_does(text, number, point):
    assume(is_sliceable(text))
    ends = []
    for how in (
        lambda f: f,
        walked,
        lambda f: walked(f, Watching()),
        lambda f: cut_at(f, point, Watching(), []),
    ):
        namespace = load(text)
        args = namespace["CALLS"][number]
        ends.append(seen(how(namespace["f"]), args, namespace))
    assert ends[1:] == ends[:1] * 3
