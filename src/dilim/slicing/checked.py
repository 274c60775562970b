"""`dilim.compile` with ``check=True``: each call runs twice, and must do the same."""

from __future__ import annotations

import contextlib
import io
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from dilim.errors import CheckError
from dilim.runtime.interrupts import is_ours
from dilim.slicing.pictures import Difference, Look, Picture, difference, text_looks
from dilim.slicing.reach import roots_of
from dilim.slicing.region import Region
from dilim.slicing.sliced import Sliced
from dilim.slicing.snapshots import Snapshot
from dilim.slicing.wording import short_path


class Checked(Sliced):
    """A function that is compared with itself as plain Python at each call.

    A call runs as two programs, compiled at once. Then everything that the function can reach is
    put back to what it was: arguments, variables and globals that its code or that of its helpers
    names, and all that these refer to; tensors with their memory, gradients and tape; the random
    numbers of dilim, Python and NumPy. Then it runs as plain Python. Compared are the result,
    everything that can be reached, bit for bit, which objects are the same ones, the random
    numbers, printed text, and exceptions with their lines. What stays, and what is shown, is what
    the plain run did.

    What the function does elsewhere happens twice: in files, over a network, in a process that it
    talks to. Files are put back to the place where they were read. Objects whose contents Python
    code cannot set are named in a warning, once; they keep what the first run did to them. Where a
    generator has moved on after the first run, there is no second one.
    """

    def __init__(self, function: Any, **options: Any) -> None:
        super().__init__(function, **options | {"compile_after": 0.0})

    def _call(self, values: tuple[Any, ...]) -> Any:
        if self._levels.count:  # it has called itself
            return super()._call(values)
        if all(region.gate(*values) is None for region in self._variants):
            self._compile(values)
        roots = [value for _, value in roots_of(self._function, values)]
        snapshot = Snapshot([*roots, self._function])
        if snapshot.unknown:
            self._advice.not_put_back(snapshot.unknown)
        with _captured() as captured:
            first = self._outcome(super()._call, values)
        used_up = snapshot.used_up()
        if used_up:
            self._advice.not_checked(used_up)
            captured.show(*captured.texts)
            return first.leave()
        snapshot.restore()
        with _captured(sys.stdout, sys.stderr) as shown:
            second = self._outcome(self._itself, values)
        known = set(shown.texts[1].splitlines(keepends=True))
        ours = [x for x in captured.texts[1].splitlines(keepends=True) if x not in known]
        captured.show("", "".join(ours))
        found = difference(first.looks(captured.texts[0]), second.looks(shown.texts[0]))
        if found is not None:
            raise CheckError(self._message(found))
        return second.leave()

    def _begin_measuring(self, region: Region) -> None:
        """Runs that are checked show no times."""

    def _outcome(self, run: Callable[[tuple[Any, ...]], Any], values: tuple[Any, ...]) -> _Outcome:
        result, error = None, None
        try:
            result = run(values)
        except (Exception, SystemExit) as raised:
            error = raised
        picture = Picture([("result", result), *roots_of(self._function, values)])
        return _Outcome(result, error, picture.looks)

    def _message(self, found: Difference) -> str:
        code = self._function.__code__
        place = f"{short_path(code.co_filename)}:{code.co_firstlineno}"
        return (
            f"check: {code.co_name} ({place}), call {self._statistics.calls}: {found.path} is "
            f"{found.first} where it is compiled, {found.second} in plain Python; this is a fault "
            "of dilim, unless the function depends on something that changes between two runs"
        )


class _Outcome:
    """What a run did.

    Args:
        result: what it gave.
        error: what it raised instead.
        seen: what could be seen after it.
    """

    def __init__(self, result: Any, error: BaseException | None, seen: list[Look]) -> None:
        self._result = result
        self._error = error
        self._raised = list(_raised(error))
        self._seen = seen

    def looks(self, printed: str) -> list[Look]:
        """Everything, in the order in which it is compared."""
        return [*self._raised, *text_looks("the printed text", printed), *self._seen]

    def leave(self) -> Any:
        """Give the result, or raise the error."""
        if self._error is not None:
            raise self._error
        return self._result


def _raised(error: BaseException | None, depth: int = 0) -> Iterator[Look]:
    """Class, message and lines of an exception, and of those it came from."""
    what = "the exception" if not depth else f"the exception {depth} before it"
    if error is None or depth > 4:
        yield Look(what, "none")
        return
    yield Look(what, f"{type(error).__name__}: {error}")
    frames = traceback.extract_tb(error.__traceback__)
    places = [(x.name, x.lineno) for x in frames if not is_ours(x.filename)]
    yield Look(f"where {what} was raised", ", ".join(f"{a} line {b}" for a, b in places))
    yield from _raised(error.__cause__ or error.__context__, depth + 1)


class _Captured:
    """Text that was written to stdout and stderr.

    Attributes:
        texts: of both, when it is over.
    """

    def __init__(self) -> None:
        self.texts: tuple[str, str] = ("", "")
        self._streams = sys.stdout, sys.stderr

    def show(self, *texts: str) -> None:
        """Write text to where it would have gone."""
        for stream, text in zip(self._streams, texts, strict=True):
            if text:
                stream.write(text)


class _Copying(io.StringIO):
    """Keeps what is written, and hands it on."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self._stream = stream

    def write(self, text: str, /) -> int:
        """See `io.TextIOBase`."""
        if self._stream is not None:
            self._stream.write(text)
        return super().write(text)

    def flush(self) -> None:
        """See `io.TextIOBase`."""
        if self._stream is not None:
            self._stream.flush()


@contextlib.contextmanager
def _captured(out: TextIO | None = None, error: TextIO | None = None) -> Iterator[_Captured]:
    """Keep what is written, and hand it on if streams are given."""
    found = _Captured()
    copies = _Copying(out), _Copying(error)
    with contextlib.redirect_stdout(copies[0]), contextlib.redirect_stderr(copies[1]):
        try:
            yield found
        finally:
            found.texts = copies[0].getvalue(), copies[1].getvalue()
