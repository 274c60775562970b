"""Runs a program with its function plain or compiled, and notes all that can be seen of it."""

import contextlib
import dis
import io
import itertools
import linecache
import os
import random
import re
import signal
import sys
import tempfile
import threading
import traceback
import types
import warnings
from dataclasses import dataclass, field

import numpy as np

import dilim
from dilim.tensors import dispatch
from slicing.fuzz.describing import Description, without_addresses

LIMIT = 20.0  # seconds of this process for one call: others may keep the machine busy
_numbers = itertools.count()


class TooSlow(BaseException):
    """A call did not end."""


@dataclass
class Moment:
    """What is seen after one call.

    Attributes:
        printed: the text that it printed.
        error: (path, text) lines that describe what it raised; none if it returned.
        origin: where it was raised, in any file.
        state: (path, text) lines that describe the result and everything that can be reached.
        eager: tensor operations that were carried out eagerly while the function ran.
        is_sliced: whether the function was sliced in it.
    """

    printed: str = ""
    error: list = field(default_factory=list)
    origin: str = ""
    state: list = field(default_factory=list)
    eager: int = 0
    is_sliced: bool = False


@dataclass
class Recording:
    """What is seen of a whole program.

    Attributes:
        moments: one per call, up to one that did not end.
        statistics: ``statistics`` of the compiled function; None where it has none.
    """

    moments: list
    statistics: object = None


class Counter:
    """Counts operations on eager tensors, in the place of `dispatch.quiet`.

    What is computed while a graph is made, from constants, is no operation of a run.
    """

    def __init__(self, quiet):
        self.count = 0
        self._quiet = quiet

    def run(self, function, *arguments, **keywords):
        self.count += dispatch.mode.tracer is None
        return self._quiet.run(function, *arguments, **keywords)


COUNTER = dispatch.quiet = Counter(dispatch.quiet)


def record(program, compiler):
    """Run a program in a fresh module whose function was given to ``compiler``."""
    with _source_file(program.source) as path:
        state = random.getstate(), numpy_state(), dilim.default_generator().state
        try:
            return _Run(program, path).run(compiler)
        finally:
            random.setstate(state[0])
            np.random.set_state(state[1])  # noqa: NPY002 - as above
            dilim.default_generator().state = state[2]


def numpy_state():
    """The state of NumPy's own generator."""
    return np.random.get_state()  # noqa: NPY002 - programs use it, as people do


@contextlib.contextmanager
def _source_file(source):
    """A file of its own, so that no cache of sources can be mistaken."""
    path = os.path.join(_folder(), f"program_{next(_numbers)}.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    try:
        yield path
    finally:
        os.remove(path)
        linecache.cache.pop(path, None)


_temporary = None


def _folder():
    global _temporary
    if _temporary is None:
        _temporary = tempfile.TemporaryDirectory(prefix="dilim-fuzz-")
    return _temporary.name


class _Run:
    """One run of a program."""

    def __init__(self, program, path):
        self._program = program
        self._path = path
        self._module = types.ModuleType("program")
        self._module.__file__ = path
        self._results = []

    def run(self, compiler):
        random.seed(1)
        np.random.seed(2)  # noqa: NPY002 - as above
        dilim.seed(3)
        moments = []
        sys.modules["program"] = self._module
        try:
            names = self._module.__dict__
            with open(self._path, encoding="utf-8") as file:
                exec(compile(file.read(), self._path, "exec"), names)
            compiled = self._compile(compiler, names)
            for call in self._program.calls:
                before = _seconds_of_slicing(compiled)
                moments.append(self._call(call, names))
                moments[-1].is_sliced = _seconds_of_slicing(compiled) != before
                if any(text.startswith("TooSlow") for _, text in moments[-1].error):
                    break
        finally:
            del sys.modules["program"]
        return Recording(moments, getattr(compiled, "statistics", None))

    def _compile(self, compiler, names):
        """Put the compiled function in the place of the plain one."""
        owner = names[self._program.owner] if self._program.owner else self._module
        original = vars(owner)["f"]
        compiled = compiler(original)
        owner.f = compiled
        names.update(original=original, backward=_backward, fill=_fill)
        return compiled

    def _call(self, call, names):
        moment, caught = Moment(), None
        arguments, keywords = [], {}
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings(), _time_limit():
            warnings.simplefilter("ignore")
            try:
                exec(call.before, names)
                arguments = eval(call.arguments, names)
                keywords = eval(call.keywords, names)
                before = COUNTER.count
                try:
                    result = eval(self._program.callee, names)(*arguments, **keywords)
                finally:
                    moment.eager = COUNTER.count - before
                self._results.append(result)
                exec(call.after, names, {"result": result})
            except (Exception, TooSlow) as error:
                caught = error
        moment.printed = without_addresses(printed.getvalue())
        if caught is not None:
            moment.error = _describe_error(caught, self._path, "raised")
            moment.origin = _origin(caught)
        moment.state = self._describe(names, arguments, keywords)
        return moment

    def _describe(self, names, arguments, keywords):
        description = Description("program")
        for name, value in sorted(names.items()):
            if not (name.startswith("__") or name in HIDDEN or isinstance(value, types.ModuleType)):
                description.add(name, value)
        description.add("arguments", arguments)
        description.add("keywords", keywords)
        for number, result in enumerate(self._results):
            description.add(f"result of call {number + 1}", result)
        description.add("random state", hash(random.getstate()))
        _, words, position, *_ = numpy_state()
        description.add("numpy random state", (hash(words.tobytes()), position))
        description.add("dilim random state", dilim.default_generator().state.tolist())
        return description.finish()


HIDDEN = frozenset({"f", "original", "backward", "fill"})


# --- errors ---------------------------------------------------------------------------------


def _seconds_of_slicing(compiled):
    return getattr(getattr(compiled, "statistics", None), "compile_seconds", 0.0)


def _describe_error(error, path, where, depth=0):
    """Type, message and user's lines of an exception, and of those it came from."""
    lines = [(f"{where}: type and message", without_addresses(f"{type(error).__name__}: {error}"))]
    frames = list(_frames(error, path))
    lines.append((f"{where}: line", f"{frames[-1][1] if frames else None}"))
    lines.append((f"{where}: frames", str(frames)))
    for name in ("__cause__", "__context__"):
        other = getattr(error, name)
        if other is not None and depth < 3:
            lines += _describe_error(other, path, f"{where} {name}", depth + 1)
    return lines


def _frames(error, path):
    """Name and line of the frames of a file."""
    entry = error.__traceback__
    while entry is not None:
        code = entry.tb_frame.f_code
        if code.co_filename == path:
            line = _line_of_use(code, entry.tb_lasti, error) or entry.tb_lineno
            yield code.co_name, line
        entry = entry.tb_next


def _line_of_use(code, position, error):
    """Where an unbound local was read.

    CPython 3.11 joins a store and the load after it when it has run them some times, and then tells
    the line of the store.
    """
    if not isinstance(error, UnboundLocalError) or sys.version_info >= (3, 12):
        return None
    found = re.search("'(.*?)'", str(error))
    after = [x for x in dis.get_instructions(code) if x.offset >= position][:2]
    if found is None or len(after) < 2 or after[0].argval == found[1]:
        return None
    return after[1].positions.lineno if after[1].argval == found[1] else None


def _origin(error):
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    last = frames[-1]
    return f"{os.path.basename(last.filename)}:{last.lineno} {last.name}"


@contextlib.contextmanager
def _time_limit():
    """Stops Python code that does not end; not code that is native."""
    if not hasattr(signal, "setitimer") or (
        threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def stop(number, frame):
        raise TooSlow(f"no end after {LIMIT:g} seconds")

    before = signal.signal(signal.SIGPROF, stop)
    # again each second: an exception inside a callback of the garbage collector is only printed
    signal.setitimer(signal.ITIMER_PROF, LIMIT, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# --- what callers do with results -----------------------------------------------------------


def _tensors(value, depth=0):
    if isinstance(value, dilim.Tensor):
        yield value
    elif isinstance(value, dict) and depth < 3:
        for item in value.values():
            yield from _tensors(item, depth + 1)
    elif isinstance(value, (list, tuple)) and depth < 3:
        for item in value:
            yield from _tensors(item, depth + 1)


def _backward(result):
    """Differentiate the first tensor of a result that was recorded."""
    for x in _tensors(result):
        if x.requires_grad and not x.is_leaf:
            x.sum().backward()
            return


def _fill(result):
    """Write into the tensors of a result, as a caller may."""
    with dilim.no_grad():
        for x in _tensors(result):
            x.fill_(x.dtype is dilim.bool or 1)
