"""Regions: functions, or loops of running functions, as pairs of programs that are ready to run."""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from dilim.ir.graph import Graph
from dilim.ir.structure import STRUCTURAL, walk
from dilim.ir.types import Type
from dilim.runtime.cache import cache
from dilim.slicing import handing_back, heap, modes, program
from dilim.slicing.actions import CHECK, END, EXIT, RECEIVE, TURN, Action
from dilim.slicing.changes import kinds_of
from dilim.slicing.direct import direct_call
from dilim.slicing.endings import Ending, ending_of
from dilim.slicing.entry import Entry
from dilim.slicing.errors import OnHost, Restart, Unsliceable
from dilim.slicing.fingerprints import Fingerprint, Names, but_for_modes
from dilim.slicing.given_containers import KEY
from dilim.slicing.interpreter import Scope
from dilim.slicing.learning import kind_of
from dilim.slicing.leaves import follow_leaves
from dilim.slicing.pieces import Later, fragments_by_function
from dilim.slicing.report import Notes
from dilim.slicing.runner import Runner, interrupt
from dilim.slicing.slicer import Slicer
from dilim.slicing.tracebacks import Caller, of_operation
from dilim.slicing.tracing import SlicerTrace
from dilim.slicing.values import Host, Range
from dilim.slicing.worth import has_loop
from dilim.tensors.symbolic import finish
from dilim.tensors.tape import mode

if TYPE_CHECKING:
    from dilim.slicing.leaving import Leaving, Level
    from dilim.slicing.meters import Trial
    from dilim.slicing.observers import Observer

MOST_SECONDS: Final = 3.0
"""How long slicing a function may take, in seconds of this thread's time."""
MOST_DIFFERING: Final = 0.25
"""In how many of its runs a value of the host may have another type than expected."""
LEFT: Final = "%left"
"""The name under which the items that are left are handed to the region of a loop."""
MOST_ATTEMPTS: Final = 64
"""How often slicing may begin again, knowing more."""


class Region:
    """A function sliced for one kind of arguments.

    Args:
        code: its normal form.
        function: the function.
        frame: the values of its parameters.
        profile: types that eager runs have shown.
        decisions: what earlier attempts have learned; what this one learns is added.
        fragments: the compiled pieces of host code, shared by all regions.
        numerics: see `dilim.compile`.
        backend: likewise.
        after: for a region that is a loop of a running function: the names that are read after it.
        hints: see `Tried`.

    Attributes:
        graph: the graph program.
        notes: what is reported.
        gated: what it demands, and where it finds what it needs.
        kinds: what of which kind it was made for.
        narrator: tells what happens in a run; None for nobody.
        watch: see `Leaving`.
        trial: finds out whether it is quicker than plain Python; None if nobody wants to know.
        learned: types of values of the host that were asked for, by statement and name.
        seen: likewise, of the rest of runs that were left to the host.
        left: why the rest of a run was left to the host, and how often.
        sources: the code of actions; see `runner.source_of`.
        cache_hits: pieces of machine code that were found on disk.
        cache_misses: pieces that were not.

    Raises:
        Unsliceable: the function has to run on the host.
    """

    def __init__(
        self,
        code: program.Function,
        function: FunctionType,
        frame: Mapping[str, Any],
        profile: dict[Any, Any],
        decisions: set[Any],
        *,
        numerics: str,
        backend: str,
        after: frozenset[str] | None = None,
        hints: Set[Any] = frozenset(),
    ) -> None:
        self.after = after
        self.unstable: set[Any] = set()
        self.code = code
        self.function = function
        self._settings = numerics, backend
        self._deadline = time.thread_time() + MOST_SECONDS  # the same under load
        for _ in range(MOST_ATTEMPTS):
            try:
                self._slice(frame, profile, decisions)
                break
            except Restart as restart:
                if restart.decision in decisions:
                    raise Unsliceable("slicing finds no end", 0) from None
                decisions |= hints if restart.decision in hints else {restart.decision}
        else:
            raise Unsliceable("slicing finds no end", 0)
        self.decisions = {x for x in decisions if x[0] == "host"}
        self.learned: dict[Any, Any] = {}
        self.seen: dict[Any, Any] = {}
        self.left: Counter[str] = Counter()
        self._runs_differing: Counter[bool] = Counter()
        is_draft = after is None and self.unknown > 0 and not has_loop(self.graph)
        if is_draft:
            self._settings = numerics, "reference"
        self.direct: Callable[..., Any] | None = None
        self.direct_runs = 0
        self._program: Any = None
        self._free: list[Runner] = []
        self._runners: list[Runner] = []
        self.narrator: Any = None
        self.sources: dict[bool, Any] = {}
        self.watch: Callable[[Level, Leaving], Observer] | None = None
        self.trial: Trial | None = None
        self.cache_hits = self.cache_misses = 0

    # --- slicing --------------------------------------------------------------------------

    def _slice(
        self, frame: Mapping[str, Any], profile: dict[Any, Any], decisions: set[Any]
    ) -> None:
        trace = SlicerTrace()
        names = self.names = tuple(frame)
        entry = Entry(trace, names, decisions)
        slicer = Slicer(trace, entry, profile, decisions, Notes())
        slicer.deadline = self._deadline
        slicer.fragments_of = fragments_by_function(functools.partial(self._observe, profile))
        slicer.finish = lambda value, atom: handing_back.finish(
            slicer, value, atom, self.after is not None
        )
        try:
            self._interpret(slicer, frame)
            self._keep(slicer)
        finally:
            slicer.forget()

    def _observe(self, profile: Mapping[Any, Any], step: program.Step, value: Any) -> None:
        """Learn the type of what a step gives that is part of a larger piece of host code."""
        key = step, step.writes[0]
        if key not in profile:
            self.learned.setdefault(key, kind_of(value))

    def _interpret(self, slicer: Slicer, frame: Mapping[str, Any]) -> None:
        entry = slicer.entry
        grads = follow_leaves(slicer)
        entry.guard(f"{entry.constant(mode)}.recording is {mode.recording}")
        entry.guard_code(self.function)
        try:
            with slicer.trace.tracing():
                env: dict[str, Any] = {}
                scope = Scope(self.code, self.function, slicer.new_frame(), env)
                slicer.scopes.append(scope)
                for name in self.names:
                    env[name] = self._enter(slicer, frame[name], entry.argument(name), name)
                scope.given = list(env.values())
                slicer.block(self.code.body)
                if not slicer.dead:
                    handing_back.fall_through(slicer, lambda: self._end(slicer))
        finally:
            for leaf, grad in grads.values():
                leaf.grad = grad
            slicer.trace.writes.take_back()  # none has been carried out yet
            modes.take_back(slicer)

    def _keep(self, slicer: Slicer) -> None:
        """Take over what slicing has made."""
        entry = slicer.entry
        entry.check_shared(slicer.trace.cells)
        traced = finish(slicer.trace, [])
        self.graph: Graph = traced.graph
        cells = traced.cells
        entry.guard_generator(cells)
        self.gated = entry.gate(cells)
        self.kinds = kinds_of(entry, self.names, "argument" if self.after is None else "variable")
        self.unknown = slicer.unknown
        self.actions: list[Action] = slicer.actions
        self.is_checked = any(action.channel[0] == CHECK for action in self.actions)
        if self.is_checked:
            self._keep_checks(slicer)
        self.constants = {
            name: constant.compiled() if constant.__class__ is Later else constant
            for name, constant in entry.constants.items()
        }
        for constant in self.constants.values():
            if isinstance(constant, Fingerprint):
                constant.renew()
        self.ending: Ending | None = None
        if self._settings[1] == "llvm" and self.after is None:
            arguments = dict(zip(self.names, self.gated.arguments, strict=True))
            self.ending = ending_of(self.graph, self.actions, arguments)
        self.frames = slicer.frames
        self.notes = slicer.notes
        self._callers, self._names = slicer.places, slicer.names
        for action in self.actions:
            action.finish()

    def _keep_checks(self, slicer: Slicer) -> None:
        """What is looked at again after host code that may have changed anything."""
        entry = slicer.entry
        changed = [heap.path(slicer, slicer.owners[k], key) for k, key in slicer.written]
        changed += slicer.passing
        owners = [(slicer.owners[k], key) for k, key in slicer.written]
        owners = [x for x in owners if heap.decision(*x) not in slicer.decisions]
        self.find_owners = entry.finder([entry.path(owner) for owner, _ in owners])
        self.written_keys = [key for _, key in owners]
        known = {
            slicer.grad_path(leaf): entry.path(leaf)
            for leaf in slicer.leaves.values()
            if not slicer.trace.owns(leaf)
        }
        changed += known
        # those that the host changes anyway are nothing to the program
        self.grad_paths = [x for x in known if ("host path", x) not in slicer.decisions]
        leaves = [known[path] for path in self.grad_paths]
        known_to_set = but_for_modes if slicer.modes else str
        conditions = tuple(map(known_to_set, self.gated.conditions))
        gate = replace(self.gated, conditions=conditions)
        self.again, self._failing = gate.function(changed), gate.failing(changed)
        self.still = gate.still(changed)
        looked_into = map(entry.path, slicer.looked_into.values())
        self._found = {path: ("touched", path) for path in looked_into}
        self._found |= {path: ("host path", path) for path, *_ in entry.outside()}
        self.find_leaves = entry.finder(leaves)
        self.makers = {
            slicer.objects.number_of((KEY, key)): maker for key, maker in slicer.made_by.items()
        }

    def _enter(self, slicer: Slicer, value: Any, path: str, name: str) -> Any:
        if name != LEFT or value.__class__ is not range:
            try:
                return slicer.outside(value, path)
            except OnHost:
                return Host(kind_of(value))
        entry = slicer.entry
        entry.guard(f"{path}.__class__ is range")
        entry.guard(f"{path}.step == {value.step}")
        try:
            start = entry.enter(value.start, f"{path}.start")
            return Range(start, entry.enter(value.stop, f"{path}.stop"), value.step)
        except OnHost as refusal:
            raise Unsliceable(refusal.reason) from None

    def _end(self, slicer: Slicer) -> None:
        if self.after is None:
            slicer.finish(None, None)
        else:
            handing_back.end_of_loop(slicer, self.after)

    def unlike(self, values: tuple[Any, ...]) -> set[Any]:
        """Decisions for the next time: what the conditions that do not hold any more are about."""
        failing = "\n".join(self._failing(values))
        return {decision for path, decision in self._found.items() if path in failing}

    @property
    def is_native(self) -> bool:
        """Whether machine code runs the graph program."""
        return self._settings[1] == "llvm"

    @functools.cached_property
    def gate(self) -> Callable[..., Any]:
        """From the values of the parameters to what the program needs, or None."""
        return self.gated.function()

    # --- running --------------------------------------------------------------------------

    @property
    def is_compiled(self) -> bool:
        """Whether the machine code is at hand."""
        from dilim.runtime.programs import is_compiled  # llvmlite takes time to import

        numerics, backend = self._settings
        return backend == "reference" or is_compiled(self._runs, numerics)  # type: ignore[arg-type]

    @property
    def _runs(self) -> Graph:
        """The graph that is compiled."""
        return self.graph if self.ending is None or self.narrator is not None else self.ending.graph

    def prepare(self) -> None:
        """Compile the graph program."""
        if self._program is None:
            from dilim.runtime.programs import compile_graph  # llvmlite takes time to import

            numerics, backend = self._settings
            kept = cache()
            hits, misses = kept.hits, kept.misses
            program_: Any = compile_graph(self._runs, numerics=numerics, backend=backend)  # type: ignore[arg-type]
            self._program = program_
            self.cache_hits, self.cache_misses = kept.hits - hits, kept.misses - misses
            if backend == "llvm":
                for constant in self.constants.values():
                    if isinstance(constant, Fingerprint | Names):
                        constant.be_native()
            if self.ending is not None and self.narrator is None:
                self.direct = direct_call(
                    self.ending,
                    self.gated,
                    program_.native,
                    self.constants,
                    self.seen_by_user,
                    functools.partial(interrupt, self),
                )

    def run(
        self, found: tuple[Any, Any, Any], values: tuple[Any, ...], frame: dict[str, Any]
    ) -> Any:
        """Run both programs.

        Args:
            found: what the gate gave.
            values: what it was given.
            frame: the values of the parameters.
        """
        self.prepare()
        try:
            runner = self._free.pop()
        except IndexError:
            runner = Runner(self, self._program)
            self._runners.append(runner)
        try:
            if self.narrator is not None:
                return self.narrator.told(lambda: runner.run(found, values, frame))
            return runner.run(found, values, frame)
        finally:
            self._free.append(runner)

    def count_run(self, differing: Mapping[Any, Any]) -> None:
        """Count a run; where types differ too often from those expected, nothing is expected."""
        self._runs_differing[bool(differing)] += 1
        if self._runs_differing[True] > MOST_DIFFERING * self._runs_differing.total():
            self.learned.update(differing)

    def seen_by_user(self, error: BaseException) -> BaseException:
        """An error of an operation of the graph, with the calls that were laid out flat."""
        return of_operation(error, self._callers, self._names, self.code.name)

    def callers_of(self, site: tuple[str, int]) -> tuple[Caller, ...]:
        """Name, file and line of the calls in which a line of the user's was laid out flat."""
        return self._callers.get(site, ())

    def transfers(self) -> tuple[int, int, int]:
        """Values handed to the host, those that came from it, and bytes handed to it, so far."""
        sends = receives = size = 0
        served = self.served()
        for action in self.actions:
            count = served.get(action.channel, 0)
            if action.channel[0] in (RECEIVE, TURN, EXIT):
                receives += count
            elif action.sent and action.channel[0] not in (CHECK, END):
                sends += count
                size += count * sum(x.size * x.dtype.itemsize for x in action.sent)
        return sends, receives, size

    @property
    def tensor_operations(self) -> int:
        """How many operations of the table the graph program has."""
        return sum(node.op not in STRUCTURAL and node.op != "full" for node in walk(self.graph))

    def host_operations(self, profile: Mapping[Any, Any]) -> int:
        """How many statements of the host program are known to give tensors."""
        return sum(
            isinstance(profile.get((statement, name)), Type)
            for action in self.actions
            for statement in action.statements
            if isinstance(statement, program.Step)
            for name in statement.writes
        )

    def served(self) -> dict[str, int]:
        """How often the program came to the point of each channel."""
        found = {self.actions[-1].channel: self.direct_runs} if self.direct_runs else {}
        for runner in self._runners:
            for channel, count in runner.session.served().items():
                found[channel] = found.get(channel, 0) + count
        return found
