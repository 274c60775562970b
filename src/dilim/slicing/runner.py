"""Runs of a region: the graph program and the handlers of its channels, one call at a time."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dilim.ir.types import Type, type_of
from dilim.slicing.actions import LEAVE, WRITE, Action
from dilim.slicing.gates import is_equal
from dilim.slicing.leaving import Left
from dilim.slicing.runs import Leaves, Run
from dilim.slicing.tracebacks import users_view
from dilim.slicing.values import UNBOUND
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.direct_code import Stopped
    from dilim.slicing.region import Region

HOST_FILE: Final = "<dilim host program>"
"""The file name of the code of handlers."""


class Runner:
    """One run of a region at a time."""

    def __init__(self, region: Region, program_: Any) -> None:
        from dilim.runtime.sessions import Session

        self.region = region
        self.host = Run(region.frames, region.after is not None)
        handlers = _handlers(region, self.host)
        if region.narrator is not None:
            handlers = region.narrator.wrapped(handlers)
        self.session = Session(program_, handlers)
        self.inputs = [np.zeros(x.shape, x.dtype.numpy) for x in region.graph.inputs]

    def run(
        self, found: tuple[Any, Any, Any], values: tuple[Any, ...], frame: dict[str, Any]
    ) -> Any:
        """See `Region.run`."""
        host = self.host
        numbers, memory, host.slots = found
        for array, number in zip(self.inputs, numbers, strict=True):
            array[()] = number
        host.frames[0] = frame
        host.memories = dict(zip(self.region.gated.memory, memory, strict=True))
        if self.region.is_checked:
            self._be_ready_to_check(found, values)
        try:
            if self._is_over(memory):
                return host.result
            if self.region.watch is not None:
                host.watch = self.region.watch
            while True:
                try:
                    return host.rest()
                except BaseException as error:
                    host.seen_in_rest(error)
                    host.unwind(error)
        finally:
            host.tell(self.region)
            self.region.count_run(host.differing)
            self.region.left.update(host.left)
            host.reset()

    def _is_over(self, memory: tuple[Any, ...]) -> bool:
        """Run the program; whether it came to its end, and was not left for plain Python."""
        host = self.host
        try:
            self.session.run(self.inputs, [holder._data for holder in memory])
        except Left:
            return False
        except BaseException as error:
            if next(_actions_of(error), None) is None:  # else all writes before it were counted
                self._count_all(memory)
            if isinstance(error, Exception) or host.contexts or host.is_stopped:
                self._seen_by_user(error)
            host.unwind(error)
            return False
        return True

    def _be_ready_to_check(self, found: tuple[Any, Any, Any], values: tuple[Any, ...]) -> None:
        """Remember what host code may change, to be compared at the checks of this run."""
        host, region = self.host, self.region
        still = region.still
        host.expect()
        host.know(zip(region.find_owners(*values), region.written_keys, strict=True))
        host.grads = [(leaf, leaf.grad) for leaf in region.find_leaves(*values)]
        # `still` does not look at what the program sets, be it only later: until then it may read
        # the tensor that was there, whose gradient is not known any more once the host writes it.
        recorded = host.recorded_memory()

        def valid(taped: tuple[str, ...] | None, lists: tuple[int, ...], leaves: Leaves) -> bool:
            if (
                still(found, *values)
                and (taped is None or not (host.written(taped) or host.has_spent()))
                and not host.written(recorded)
                and host.are_as_given()
                and host.is_untouched(lists, leaves)
            ):
                host.expect()
                return True
            again = region.again(*values)
            relied = (*(taped or ()), *recorded, *host.recorded_since())
            region.unstable.update(self._changed(again, found, values, relied, lists))
            return False

        host.valid = valid

    def _count_all(self, memory: tuple[Any, ...]) -> None:
        """Count a write into all that may have been written when the run was given up."""
        for holder, is_written in zip(memory, self.region.gated.written, strict=True):
            if is_written:
                holder._storage.version += 1

    def _changed(
        self,
        again: Any,
        found: Any,
        values: Any,
        taped: tuple[str, ...] | None,
        lists: tuple[int, ...],
    ) -> set[Any]:
        """What host code has changed: decisions for the next time that the region is sliced."""
        region, host = self.region, self.host
        changed: set[Any] = {("host attribute", key) for key in host.touched()}
        changed.update(("host", region.makers[number]) for number in host.refilled(lists))
        for path, is_same in zip(region.grad_paths, host.same_grads(), strict=True):
            if not is_same:
                changed.add(("host path", path))
        if again is None:
            changed |= region.unlike(values)
        else:
            for paths, now, before in zip(
                (region.gated.inputs, region.gated.memory, region.gated.slots),
                *(again, found),
                strict=True,
            ):
                for path, x, y in zip(paths, now, before, strict=True):
                    if not _same(x, y):
                        changed.add(("host path", path))
        changed.update(("host path", path) for path in host.written(taped or ()))
        return changed

    def _seen_by_user(self, error: BaseException) -> BaseException:
        """The error with the calls that were laid out flat."""
        for name in _actions_of(error):
            for action in self.region.actions:
                if action.channel == name:
                    here = () if action.at is None else (action.at,)
                    return users_view(error, (*action.callers, *here))
        return self.region.seen_by_user(error)


def _actions_of(error: BaseException) -> Iterator[str]:
    """The actions of the host, by channel, out of which an error has come."""
    entry = error.__traceback__
    while entry is not None:
        code = entry.tb_frame.f_code
        if code.co_filename == HOST_FILE:
            yield code.co_name
        entry = entry.tb_next


def interrupt(region: Region, told: Stopped, values: tuple[Any, ...]) -> None:
    """Let the host see all where Ctrl-C has ended a turn in a direct call.

    Args:
        region: what was called.
        told: where it was.
        values: the arguments.

    Raises:
        KeyboardInterrupt: always.
    """
    found = region.gate(*values)
    if found is None:
        raise KeyboardInterrupt
    host = Run(region.frames)
    _, memory, host.slots = found
    host.frames[0] = dict(zip(region.names, values, strict=True))
    host.memories = dict(zip(region.gated.memory, memory, strict=True))
    handlers = _handlers(region, host)
    for action in region.actions:
        if action.channel == told.channel:
            break
        if action.channel[0] == WRITE:
            handlers[action.channel](())
    try:
        handlers[told.channel](tuple(told.arrays))
    except KeyboardInterrupt as error:
        here = () if action.at is None else (action.at,)
        users_view(error, (*action.callers, *here))
        raise


def _same(a: Any, b: Any) -> bool:
    return a is b or a is None or is_equal(a, b)


def _handlers(region: Region, host: Run) -> dict[str, Callable[..., Any]]:
    """The function of each channel; those that leave the program are compiled when one has to."""

    @functools.cache
    def leaving() -> dict[str, Callable[..., Any]]:
        return _built(region, host, *source_of(region, leaving=True))

    def left(channel: str) -> Callable[..., Any]:
        return lambda values: leaving()[channel](values)

    channels = (action.channel for action in region.actions if action.channel[0] == LEAVE)
    return _built(region, host, *source_of(region, leaving=False)) | {
        channel: left(channel) for channel in channels
    }


def source_of(region: Region, *, leaving: bool) -> tuple[Any, list[Type]]:
    """The code of the actions that leave the program, which is much, or that of all others."""
    if leaving not in region.sources:
        actions = [x for x in region.actions if (x.channel[0] == LEAVE) is leaving]
        region.sources[leaving] = module_of(actions, region.constants, region.is_checked)
    found: tuple[Any, list[Type]] = region.sources[leaving]
    return found


def _built(
    region: Region, host: Run, code: Any, kinds: Sequence[Type]
) -> dict[str, Callable[..., Any]]:
    """The functions of a module; see `module_of`."""
    space: dict[str, Any] = {}
    exec(code, space)
    makers = [_maker(kind, region.is_native) for kind in kinds]
    made: dict[str, Callable[..., Any]] = space["build"](host, makers, **region.constants)
    return made


def _maker(kind: Type, is_native: bool) -> Callable[[np.ndarray], Tensor]:
    """A function from an array of this type to a new tensor with its numbers."""
    if not is_native:
        return lambda array: Tensor._from_array(array.copy())
    from dilim.tensors.fast_calls import tensor_maker  # llvmlite takes time to import

    return tensor_maker(kind.shape, kind.dtype)


_MADE: Final = re.compile(r"R\.tensor\(([0-9]+), v\[([0-9]+)\]\)")
_BOUND: Final = re.compile(r"( *)R\.bind\((F\[[0-9]+\]), ('[^']+'), (.*)\)")


def module_of(
    actions: Sequence[Action], constants: Mapping[str, Any], is_checked: bool
) -> tuple[Any, list[Type]]:
    """The code of some actions, and the types of the tensors that it makes.

    Args:
        actions: the actions.
        constants: the objects that they refer to, by name.
        is_checked: whether it is looked at who writes into these tensors.
    """
    kinds: dict[Type, int] = {}
    unbound = [name for name, value in constants.items() if value is UNBOUND]
    body: list[str] = []
    for action in actions:
        lines = []
        for line in [*action.prelude, *action.lines] or ["pass"]:
            made, bound = _MADE.fullmatch(line), _BOUND.fullmatch(line)
            if made is not None:
                number, position = made.groups()
                kind = type_of(action.sent[int(position)])
                maker = kinds.setdefault(kind, len(kinds))
                lines.append(f"O[{number}] = t{maker}(v[{position}])")
                lines += (
                    [f"R.versions[{number}] = O[{number}]._storage.version"] if is_checked else []
                )
            elif bound is not None and not any(name in line for name in unbound):
                indent, frame, name, value = bound.groups()
                lines.append(f"{indent}{frame}[{name}] = {value}")
            elif is_checked or "R.versions[" not in line:
                lines.append(line)
        body.append(f"  def {action.channel}(v):")
        body += ["    S = R.slots"] if any("S[" in line for line in lines) else []
        body += [f"    {line}" for line in lines or ["pass"]]
    makers = "".join(f"t{k}, " for k in range(len(kinds)))
    head = [f"def build({', '.join(['R', 'makers', *constants])}):"]
    head += [f"  {makers}= makers"] if makers else []
    table = ", ".join(f"{action.channel!r}: {action.channel}" for action in actions)
    head += ["  F, O, M = R.frames, R.objects, R.made", *body, f"  return {{{table}}}"]
    return compile("\n".join(head), HOST_FILE, "exec"), list(kinds)
