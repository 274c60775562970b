"""The state of a region that is being sliced, and going back in it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Final

from dilim.ir.structure import READ, SEND, STRUCTURAL, final
from dilim.passes.raising import may_raise
from dilim.runtime.devices import CPU
from dilim.slicing import attributes, grads, modes, program
from dilim.slicing.actions import Action
from dilim.slicing.entry import Entry
from dilim.slicing.errors import OnHost
from dilim.slicing.fingerprints import Fingerprint, Names
from dilim.slicing.host import Objects
from dilim.slicing.iterators import Copy
from dilim.slicing.keeping import Held, Keeping
from dilim.slicing.liveness import Liveness, liveness_of
from dilim.slicing.numbers import Number
from dilim.slicing.quiet import quiet_in
from dilim.slicing.report import Notes
from dilim.slicing.tapes import Tapes
from dilim.slicing.tracebacks import Caller
from dilim.slicing.tracing import SlicerTrace, symbolic
from dilim.slicing.values import AtEntry, Choice, like
from dilim.tensors.random import default_generator
from dilim.tensors.tensor import Tensor

RETURNED: Final = "%return"
RESULT: Final = "%result"


@dataclass(slots=True, eq=False)
class Scope:
    """A function that is being interpreted.

    Attributes:
        code: its normal form.
        function: the function object, for globals and closure cells.
        number: of its frame on the host.
        env: what its local names stand for.
        flags: names in ``env`` of the ways out that lead past the statement at hand.
        path: where the statement at hand stands; see `Walker.resume`.
        at: the statement at hand.
        loops: those that it is in.
        iterators: name of the iterator of a loop that it is in -> the items that are left.
        given: the values of its parameters when it began.
        told: which type a value has that has one of so many -> how many; see `splits`.
        contexts: ``with`` statements that it is in; see `contexts.Open`.
    """

    code: program.Function
    function: FunctionType
    number: int
    env: dict[str, Any]
    flags: list[str] = field(default_factory=lambda: [RETURNED])
    path: list[Any] = field(default_factory=list)
    at: program.Statement | None = None
    loops: list[program.Statement] = field(default_factory=list)
    iterators: dict[str, Any] = field(default_factory=dict)
    contexts: list[Any] = field(default_factory=list)
    told: dict[int, int] = field(default_factory=dict)
    given: list[Any] = field(default_factory=list)
    live: Liveness = field(init=False)

    def __post_init__(self) -> None:
        self.env[RETURNED] = False
        self.live = liveness_of(self.code, quiet_in(self.code, self.function))

    def names_after(self, statement: program.Statement | None) -> frozenset[str]:
        """The names that may be read after a statement, on any way out of it."""
        after = self.live.after
        found = after[statement] if statement is not None else frozenset()
        return found.union(*(after[x] | self.live.head[x] for x in self.loops))


@dataclass(slots=True)
class State:
    """What changes from statement to statement, to go back to."""

    envs: list[dict[str, Any]]
    heap: dict[tuple[int, Any], Any]
    grads: dict[int, Any]
    contents: dict[int, Any]
    held: dict[Any, Any]
    seen: dict[tuple[int, Any], Any]
    shown: dict[tuple[int, Any], tuple[Any, Any]]
    handed: dict[tuple[int, str], Number]
    received: dict[tuple[int, str], Any]
    cleared: frozenset[int]
    taken: frozenset[int]
    uncounted: dict[Any, Any]
    releases: int
    writes: int
    keeping: Held
    dead: bool


class Interpreter:
    """What is known while a region is interpreted.

    Args:
        trace: the graph to be filled.
        entry: what comes from outside.
        profile: types of results of host calls, as earlier runs have shown them, by
            statement and name.
        decisions: what earlier attempts have learned.
        notes: takes what is to be reported.

    Attributes:
        heap: places, as (identity of an object, key) -> the value that the region gave it.
        seen: places of the heap, and gradients -> the object that the host sees there.
        shown: likewise -> a value, and whether the host sees it; see `shown`.
        handed: (number of a frame on the host, name) -> the number that it has there.
        received: likewise -> what the graph was given for it.
        fresh: lists and dicts that the region made, by identity.
        makings, taken: likewise, iterators, and those of them that are used up.
        actions: what the host does, by channel.
        written: the places of the heap that the program changes.
        passing: conditions at entry that the program makes otherwise.
        copies: what iterators go over instead of dicts and lists from outside, by identity.
        dead: whether the statement at hand cannot be reached.
    """

    def __init__(
        self,
        trace: SlicerTrace,
        entry: Entry,
        profile: dict[tuple[program.Statement, str], Any],
        decisions: set[Any],
        notes: Notes,
    ) -> None:
        self.trace = trace
        self.entry = entry
        self.profile = profile
        self.decisions = decisions
        self.notes = notes
        self.scopes: list[Scope] = []
        self.heap: dict[tuple[int, Any], Any] = {}
        self.seen: dict[tuple[int, Any], Any] = {}
        self.shown: dict[tuple[int, Any], tuple[Any, Any]] = {}
        self.handed: dict[tuple[int, str], Number] = {}
        self.received: dict[tuple[int, str], Any] = {}
        self.hints: dict[program.Statement, Any] = {}
        self.owners: dict[int, Any] = {}
        self.modes: dict[tuple[int, Any], tuple[Any, Any]] = {}
        self.leaves: dict[int, Tensor] = {}
        self.grad_paths: dict[int, str] = {}
        self.actions: list[Action] = []
        self.frames = 0
        self.keeping = Keeping()
        self.made_by: dict[int, program.Statement] = {}
        self.cleared, self.taken = set[int](), set[int]()
        self.at_entry: dict[int, AtEntry] = {}
        self.relied: dict[int, Fingerprint] = {}
        self.outer_names = Names()
        self.touched: dict[int, Any] = {}
        self.copies: dict[int, Copy] = {}
        self.looked_into: dict[int, Any] = {}
        self.peeled: dict[program.Statement, int] = {}
        self.kept: list[Any] = []
        self.dead = False
        self.current: program.Statement | None = None
        self.step_frame: Any = trace.top
        self.deadline = math.inf
        self.objects = Objects(trace, entry)
        self.one_of, self.makings = self.objects.one_of, self.objects.makings
        self.fresh, self.depth_of = self.objects.containers.fresh, self.objects.containers.depth_of
        self.tapes = self.objects.tapes = Tapes(self.objects, self.count_writes)
        self.unknown = 0
        self.written, self.passing = set[tuple[int, Any]](), set[str]()
        self.names: dict[tuple[str, int], str] = {}
        self.places: dict[tuple[str, int], tuple[Caller, ...]] = {}

    # --- state ----------------------------------------------------------------------------

    @property
    def scope(self) -> Scope:
        """The function that is being interpreted."""
        return self.scopes[-1]

    @property
    def env(self) -> dict[str, Any]:
        """Its local names."""
        return self.scopes[-1].env

    def save(self) -> State:
        """All that a branch may change."""
        return State(
            [dict(scope.env) for scope in self.scopes],
            dict(self.heap),
            {key: leaf.grad for key, leaf in self.leaves.items()},
            {key: value.copy() for key, value in self.fresh.items()},
            dict(self.objects.held),
            dict(self.seen),
            dict(self.shown),
            dict(self.handed),
            dict(self.received),
            frozenset(self.cleared),
            frozenset(self.taken),
            dict(self.trace.uncounted),
            len(self.trace.released),
            len(self.trace.writes),
            dict(self.keeping.held),
            self.dead,
        )

    count_writes: Callable[[Action], list[str]]
    original: Callable[[tuple[int, Any]], Any]

    def drop_pending(self) -> None:
        """Forget a fragment that was being collected in an attempt that is given up."""

    def keep_pending(self) -> Callable[[], None]:
        """What puts the fragment that is being collected back as it is now."""
        return self.drop_pending

    def restore(self, state: State) -> None:
        """Go back to a state."""
        for scope, env in zip(self.scopes, state.envs, strict=True):
            scope.env.clear()
            scope.env.update(env)
        self.drop_pending()
        self.heap = dict(state.heap)
        modes.show(self)
        for key, leaf in self.leaves.items():
            leaf.grad = state.grads.get(key, self.initial_grads[key][1])
        self.fill(state)
        self.objects.held, self.keeping.held = dict(state.held), dict(state.keeping)
        self.seen, self.shown = dict(state.seen), dict(state.shown)
        self.handed, self.received = dict(state.handed), dict(state.received)
        self.cleared, self.taken = set(state.cleared), set(state.taken)
        self.trace.uncounted = dict(state.uncounted)
        self.trace.forget_releases(state.releases)
        self.trace.writes.take_back(state.writes)
        self.dead = state.dead

    def fill(self, state: State) -> None:
        """Let lists and dicts that the region has made hold what they held in a state."""
        for key, contents in state.contents.items():
            made = self.fresh[key]
            made.clear()
            (made.extend if made.__class__ is list else made.update)(contents)

    def end_here(self) -> None:
        """The host does not come back from what was sent last."""
        self.dead = True
        nodes = self.trace.top.builder.nodes
        if nodes and nodes[-1].op == SEND:
            nodes[-1] = final(nodes[-1])

    # --- objects that the region makes ----------------------------------------------------

    def make(self, container: Any) -> Any:
        """Take note of a list or dict that the region makes."""
        self.fresh[id(container)] = container
        self.depth_of[id(container)] = sum(frame.is_loop for frame in self.trace.frames)
        if self.current is not None:
            self.made_by[id(container)] = self.current
        return container

    def in_graph(self, result: Any) -> Any:
        """What a function of the library gave, with memory that it made as memory of the run."""
        if isinstance(result, Tensor):
            if result.device is CPU and not self.trace.holds(result):
                symbol = symbolic(self.trace, result)
                symbol._requires_grad = result._requires_grad
                return symbol
            return result
        if isinstance(result, tuple | list):
            items = [self.in_graph(x) for x in result]
            return like(result, items) if isinstance(result, tuple) else self.make(items)
        if result.__class__ is dict:
            return self.make({key: self.in_graph(x) for key, x in result.items()})
        if result is default_generator():
            known = self.entry.constant(default_generator)
            self.entry.guard(f"{known}() is {self.entry.constant(result)}")
            return result
        if attributes.is_dilims(type(result)) and not result.__class__.__module__.startswith(
            ("dilim.dtypes", "dilim.tensors.tape")
        ):
            raise OnHost("a function that makes an object of dilim")
        self.kept.append(result)
        return result

    def grad_path(self, leaf: Tensor) -> str:
        """Where the gradient of a leaf is found: always the same, however the leaf was reached."""
        path = self.grad_paths.get(id(leaf))
        if path is None:
            path = self.grad_paths[id(leaf)] = f"{self.entry.path(leaf)}.grad"
        return path

    def use_grad(self, leaf: Tensor) -> None:
        """The gradient of a leaf is looked at, or added to.

        Raises:
            OnHost: host code changes it.
            Unsliceable: a loop carries it.
        """
        if self.trace.owns(leaf):
            self.trace.is_own_leaf(leaf)
            _refuse_choice(leaf)
            return
        path = self.grad_path(leaf)
        if ("host path", path) in self.decisions:
            raise OnHost("a gradient that host code changes")
        _refuse_choice(leaf)
        if id(leaf) in self.cleared or id(leaf) not in self.leaves:
            return
        if leaf.grad is None and self.initial_grads[id(leaf)][1] is None:
            grads.demand_none(self, leaf)

    def clear_grad(self, leaf: Tensor) -> None:
        """The gradient of a leaf is forgotten."""
        if self.trace.owns(leaf):
            self.trace.is_own_leaf(leaf)
            return
        if ("host path", self.grad_path(leaf)) in self.decisions:
            raise OnHost("a gradient that host code changes")
        self.cleared.add(id(leaf))

    def rely_on(self, value: Any) -> None:
        """Library code may look at all that an object of dilim holds."""
        kind = type(value)
        if id(value) in self.relied or isinstance(value, Tensor):
            return
        if not (attributes.is_dilims(kind) or attributes.is_module(kind)):
            return
        if not hasattr(value, "__dict__") or isinstance(value, type):
            return
        found = self.relied[id(value)] = Fingerprint(value)
        known = self.entry.constant(found)
        self.entry.guard(f"{known}.same() or {known}.holds()")

    def rely_on_names(self, space: dict[str, Any] | type, *names: str) -> None:
        """The program takes names of Python, of dilim or of a class for what they are now."""
        for name in names:
            self.outer_names.add(space, name)
        known = self.entry.constant(self.outer_names)
        self.entry.guard(f"{known}.same() or {known}.holds()")

    initial_grads: dict[int, tuple[Tensor, Any]]

    def new_frame(self) -> int:
        """The number of another frame on the host."""
        self.frames += 1
        return self.frames - 1

    def forget(self) -> None:
        """Let go of all values, which cycles would hold until the garbage collector comes."""
        self.trace.forget()
        for part in (self.entry, self.objects, self.tapes, self):
            vars(part).clear()


def _refuse_choice(leaf: Tensor) -> None:
    grad: object = leaf.grad  # while slicing, also a value of `values`
    if grad.__class__ is Choice:
        raise OnHost("a gradient that may be there or not")


class Mark:
    """A point of a region to go back to."""

    def __init__(self, slicer: Interpreter, frame: Any) -> None:
        self._slicer = slicer
        self._frame = frame
        self._state = slicer.save()
        self._put_back = slicer.keep_pending()
        self._actions = len(slicer.actions)
        self._count = len(frame.builder.nodes)
        self._known = dict(frame.contents), dict(frame.reads), dict(frame.written)
        self._constants, self._dead = dict(frame.constants), set(frame.dead)

    def has_grown(self) -> bool:
        """Whether nodes were added."""
        return len(self._frame.builder.nodes) > self._count

    def has_effects(self) -> bool:
        """Whether what was added may fail, or can be seen from outside."""
        return any(
            (node.op in STRUCTURAL and node.op != READ) or may_raise(node)
            for node in self._frame.builder.nodes[self._count :]
        )

    def undo(self) -> None:
        """Forget what was added."""
        frame = self._frame
        del frame.builder.nodes[self._count :]
        frame.contents, frame.reads, frame.written = self._known
        frame.constants, frame.dead = self._constants, self._dead
        frame._pending.clear()
        self._slicer.restore(self._state)
        del self._slicer.actions[self._actions :]
        self._put_back()
