"""`dilim.compile`: functions that run as a graph program and a host program."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, Final

from dilim.errors import UnsupportedError
from dilim.slicing import faces
from dilim.slicing.advice import Adviser
from dilim.slicing.direct import MISS, quick_call
from dilim.slicing.errors import TOO_LONG, NoSource, Unsliceable
from dilim.slicing.explanation import Explanation
from dilim.slicing.fronts import redirect
from dilim.slicing.implicit import refuse_transfers
from dilim.slicing.learning import Learner, merged, teach
from dilim.slicing.leaving import Leaving, Level
from dilim.slicing.levels import LEVELS, Levels
from dilim.slicing.likeness import Likeness
from dilim.slicing.listing import Slices
from dilim.slicing.meters import TransferWatch, Trial
from dilim.slicing.narration import Narrator
from dilim.slicing.program import Function
from dilim.slicing.region import Region
from dilim.slicing.running_loops import LoopWatcher, RestWatcher
from dilim.slicing.running_parts import FEWEST_WALKS, MANY, MOST_LESSONS, MOST_VARIANTS, Parts
from dilim.slicing.source import function_of
from dilim.slicing.statistics import Statistics
from dilim.slicing.tries import Tries, one_at_a_time
from dilim.slicing.walker import Walker
from dilim.slicing.worth import has_loop, is_idle
from dilim.tensors.tape import mode

DEBUG = False
"""Whether faults of the slicer are raised, not only reported."""
TRIAL: Final = 0.03
"""Seconds of plain running after which it is seen whether the code is in the cache on disk."""
ESTIMATE: Final = 0.25
"""Seconds that compiling is expected to take."""


class Sliced(Likeness):
    """A function, sliced; made by `dilim.compile`.

    Attributes:
        statistics: see `Statistics`.
    """

    __slots__ = ()

    def __init__(
        self,
        function: Any,
        *,
        strict: bool = False,
        trace: bool = False,
        numerics: str = "strict",
        backend: str = "llvm",
        compile_after: float | None = None,
    ) -> None:
        self._settings = {"numerics": numerics, "backend": backend}
        more = {"strict": strict, "trace": trace, "compile_after": compile_after}
        super().__init__(function, **self._settings, **more)
        self._strict, self._trace = strict, trace
        self._after = ESTIMATE if compile_after is None else compile_after
        self._statistics = Statistics()
        self._advice = Adviser(self._function)
        self._levels = Levels()
        self._made: list[Region] = []
        self.begin_anew()

    def begin_anew(self) -> None:
        """See `Likeness.begin_anew`."""
        function = self._function
        self._seconds = 0.0
        self._trial = TRIAL
        self._variants: list[Region] = []
        self._doubted: list[Region] = []
        self._refused = self._walks = 0
        self._profile: dict[Any, Any] = {}
        self._decisions: set[Any] = set()
        self._on_paths: dict[Function, set[Any]] = {}
        self._tries = Tries()
        self._relearned = 0
        self._loops = Parts(self._sliced_part, self._learn, self._advice)
        self._rests = Parts(self._sliced_rest, self._learn, self._advice)
        self._shown: Region | None = None
        try:
            self._code = function_of(function)
        except Unsliceable as refusal:
            self._code = None  # type: ignore[assignment]
            self._note(refusal)
            if isinstance(refusal, NoSource):
                self._advice.without_source()
        self._stand_for(self._call if self._code is not None else self._call_plain)

    @property
    def programs(self) -> list[Region]:
        """The programs of the whole function; those that are used come first."""
        return [*self._variants, *self._doubted]

    @property
    def statistics(self) -> Statistics:
        """What happened so far."""
        statistics = self._statistics
        statistics.sends = statistics.receives = statistics.sent_bytes = 0
        statistics.left.clear()
        for region in self._made:
            sends, receives, size = region.transfers()
            statistics.sends += sends
            statistics.receives += receives
            statistics.sent_bytes += size
            statistics.left.update(region.left)
        return statistics

    def _call_plain(self, values: tuple[Any, ...]) -> Any:
        if self._function.__code__ is not self._source:
            return self._renewed(values)
        self._statistics.calls += 1
        return self._itself(values)

    def _call(self, values: tuple[Any, ...]) -> Any:
        if self._levels.count >= LEVELS:
            return self._itself(values)
        self._statistics.calls += 1
        if mode.watched:
            return self._itself(values)
        for region in self._variants:
            result = self._tried(region, values)
            if result is not MISS:
                return result
        for region in self._doubted:
            if region.gate(*values) is not None:
                self._shown = region
                return self._itself(values)
        if self._function.__code__ is not self._source:
            return self._renewed(values)
        if self._seconds >= min(self._after, self._trial):
            new = self._compile(values)
            if new is not None:
                result = self._tried(new, values)
                if result is not MISS:
                    return result
        return self._plainly(values)

    def _tried(self, region: Region, values: tuple[Any, ...]) -> Any:
        """What a program gives, or `MISS` if it cannot be used now."""
        if region.direct is None:
            found = region.gate(*values)
            return MISS if found is None else self._run(region, found, values)
        try:
            result = region.direct(*values)
        except BaseException:
            self._statistics.native_calls += 1
            raise
        if result is not MISS:
            self._statistics.native_calls += 1
            self._shown = region
            region.direct_runs += 1
        return result

    def slices(self, *args: Any, **keywords: Any) -> Slices:
        """The two programs as readable Python; ``print`` them, or end a notebook cell with them.

        Args:
            args: example arguments, for which the function is sliced without being run. Without
                any, the program that runs is shown.
            keywords: likewise.
        """
        return faces.slices_of(self, args, keywords)

    def explain(self, *args: Any, **keywords: Any) -> Explanation:
        """Which line is on which side, what is handed over and why, and what runs as plain Python.

        Args:
            args: example arguments; see `slices`.
            keywords: likewise.
        """
        return faces.explanation_of(self, args, keywords)

    def _plainly(self, values: tuple[Any, ...]) -> Any:
        """Run the function as it stands; loops that take long are compiled meanwhile."""
        if self._is_given_up():
            return self._itself(values)
        frame = dict(zip(self._code.parameters, values, strict=True))
        watcher = LoopWatcher(self._code, self._loops, self._profile)
        before, started = self._seconds, time.perf_counter()
        self._levels.count += 1
        try:
            return Walker(self._code, self._function, watcher).run(frame)
        finally:
            self._levels.count -= 1
            self._statistics.native_calls += watcher.entered
            elapsed = time.perf_counter() - started - watcher.seconds
            self._seconds = max(self._seconds, before + elapsed)  # calls of itself are part of it
            self._walks += 1

    def _is_given_up(self) -> bool:
        """Whether neither the function nor a loop of it could be sliced, after enough time."""
        return (
            self._refused > 0
            and self._walks >= FEWEST_WALKS
            and self._seconds >= 2.0 * self._after
            and not self._loops.newest
        )

    def _timed(self, values: tuple[Any, ...]) -> Any:
        """Call the function while it is tried whether a program is quicker than plain Python."""
        self._shown = None
        started = time.perf_counter()
        result = self._call(values)
        seconds = time.perf_counter() - started
        region = self._shown
        if region is None or region.trial is None or region.trial.is_over:
            return result
        trial = region.trial
        trial.learn(seconds)
        for programs in (self._variants, self._doubted):
            if region in programs:
                programs.remove(region)
                (self._doubted if trial.wants_plain else self._variants).append(region)
                break
        self._redirect()
        return result

    def _redirect(self) -> None:
        """Choose what a call does from now on."""
        call: Callable[[tuple[Any, ...]], Any] = self._call
        if any(x.trial is not None and not x.trial.is_over for x in self.programs):
            call = self._timed
        elif self._variants and self._variants[0].direct is not None:
            call = quick_call(self._variants[0], self._statistics, self._call)
        redirect(self._front, call)

    def _sliced_part(
        self, code: Function, frame: dict[str, Any], after: frozenset[str], seconds: float
    ) -> Region | None:
        if mode.watched or seconds < min(self._after, TRIAL) or self._refused >= MOST_VARIANTS:
            return None
        return self._sliced(code, frame, after, seconds)

    def _sliced_rest(
        self, code: Function, frame: dict[str, Any], after: frozenset[str], seconds: float
    ) -> Region | None:
        """The same for what is left of a call; where that is refused, it is no more than that."""
        refused, known = self._refused, self._statistics.fallbacks[:]
        try:
            return self._sliced_part(code, frame, after, seconds)
        finally:
            self._refused, self._statistics.fallbacks[:] = refused, known

    def _watch(self, region: Region, level: Level, run: Leaving) -> Learner:
        """Who looks on while plain Python goes on where a program was left; see `Leaving`."""
        if level.function is not self._function or self._strict or not self._rests.may_go_on:
            return Learner(run.seen)

        def learn() -> None:
            run.tell(region)
            self._learn(region)

        return RestWatcher(level.code, self._rests, run.seen, learn)

    def _run(self, region: Region, found: Any, values: tuple[Any, ...]) -> Any:
        self._statistics.native_calls += 1
        self._shown = region
        self._levels.count += 1
        try:
            return region.run(found, values, dict(zip(self._code.parameters, values, strict=True)))
        finally:
            self._levels.count -= 1
            self._learn(region)

    def _learn(self, region: Region) -> None:
        """Slice anew where a run has shown types that were not known."""
        on_paths = self._on_paths.setdefault(region.code, set())
        unstable, region.unstable = region.unstable - self._decisions - on_paths, set()
        learned, region.learned = region.learned, {}
        if learned or unstable:
            new = learned.keys() - self._profile.keys()
            if all(learned[place] is None for place in new):
                # else much was the host's only because its types were not known
                for decision in unstable:
                    own = region.code is not self._code or decision[0] in ("host path", "touched")
                    (on_paths if own else self._decisions).add(decision)
            for statement, kind in learned.items():
                known = self._profile.setdefault(statement, kind)
                if known != kind:
                    self._profile[statement] = merged(known, kind)
        seen, region.seen = region.seen, {}
        is_more = teach(self._profile, seen) or any(x is not None for x in learned.values())
        for parts in (self._loops, self._rests) if is_more or unstable else ():
            parts.forget(region)
        is_more = bool(is_more or learned or unstable) and self._relearned < MOST_LESSONS
        if is_more and region in self._variants:
            self._relearned += 1
            self._variants.remove(region)

    def _compile(self, values: tuple[Any, ...]) -> Region | None:
        return self._compile_alone(values, len(self._made))

    @one_at_a_time
    def _compile_alone(self, values: tuple[Any, ...], count: int) -> Region | None:
        known = self.programs
        for each in known if len(self._made) > count else ():  # by another thread meanwhile
            if each in self._variants and each.gate(*values) is not None:
                return each
        if len(known) >= MOST_VARIANTS:
            self._advice.no_more(known)
            return None
        if self._refused >= MOST_VARIANTS:
            return None
        frame = dict(zip(self._code.parameters, values, strict=True))
        region = self._sliced(self._code, frame, None, self._seconds)
        if region is not None:
            self._variants.append(region)
            self._redirect()
            self._statistics.variants = len(known) + 1
            if len(known) + 1 == MANY:
                self._advice.often([*known, region], MOST_VARIANTS)
        return region

    @one_at_a_time
    def _sliced(
        self, code: Function, frame: dict[str, Any], after: frozenset[str] | None, seconds: float
    ) -> Region | None:
        """A region ready to run, or None where it cannot be sliced or does not pay yet.

        Args:
            code: of the function, or of a loop.
            frame: the values of its names.
            after: for a loop, the names that are read after it.
            seconds: what running it plainly takes.
        """
        tried = self._tries.of(code, frame, self._profile)
        if tried.is_hopeless:
            return None
        tried.decisions |= self._decisions | self._on_paths.get(code, set())
        started, known = time.perf_counter(), (self._profile, tried.decisions)
        more: dict[str, Any] = {"after": after, "hints": tried.hints, **self._settings}
        try:
            region = Region(code, self._function, frame, *known, **more)
            if self._after and is_idle(region.graph):
                raise Unsliceable("its loops do nothing with tensors")
            if seconds < self._after and not region.is_compiled:
                self._trial = 2.0 * seconds
                return None
            if self._trace:
                region.narrator = Narrator(region)
            region.prepare()
            region.watch = functools.partial(self._watch, region)
            self._made.append(region)
            self._decisions |= region.decisions if code is self._code else set()
            self._statistics.tensor_operations_native = region.tensor_operations
            self._statistics.tensor_operations_host = region.host_operations(self._profile)
        except Unsliceable as refusal:
            self._refused += MOST_VARIANTS if refusal.reason == TOO_LONG else 1
            tried.refusals += 1
            self._note(refusal)
            return None
        except RecursionError:
            self._refused += 1
            self._note(Unsliceable("Python's stack is too full to slice it"))
            return None
        except Exception as error:
            if DEBUG:
                raise
            self._refused += 1
            self._note(Unsliceable(f"a fault in dilim: {type(error).__name__}: {error}"))
            return None
        finally:
            seconds = time.perf_counter() - started
            self._statistics.compile_seconds += seconds
            self._advice.took(seconds)
        if self._strict and not region.unknown:
            refuse_transfers(region)
        self._begin_measuring(region)
        return region

    def _begin_measuring(self, region: Region) -> None:
        TransferWatch(region, self._advice)
        is_free = self._after > 0.0 and not self._strict and region.after is None
        if is_free and not has_loop(region.graph):
            region.trial = Trial()

    def _note(self, refusal: Unsliceable) -> None:
        code = getattr(self._function, "__code__", None)
        filename = code.co_filename if code is not None else ""
        if self._strict:
            name = code.co_name if code is not None else "a function"
            raise UnsupportedError(
                f"compile: {name} cannot be sliced: {refusal.reason} ({filename}:{refusal.line}); "
                "without strict=True it runs as plain Python"
            ) from None
        entry = (refusal.reason, filename, refusal.line)
        if entry not in self._statistics.fallbacks:
            self._statistics.fallbacks.append(entry)
