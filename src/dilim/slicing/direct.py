"""Regions whose host program has nothing to do until the end: they are called directly.

Such a region is an ordinary graph program: what is sent at its end are its results. Machine code
looks at the tensors among the arguments, makes those among the results, and runs the program on
memory that is always the same (parameters, state of optimisers) without being told where it is.
What remains is one Python function per region, written here: it asks the other conditions, calls
that code, and does what the host does at the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dilim.runtime.devices import Storage
from dilim.slicing.direct_code import Code, Missed, Spares, Stopped
from dilim.slicing.endings import Ending
from dilim.slicing.fingerprints import Standing, is_standing
from dilim.slicing.gates import Gate, all_different, checked, storages_apart
from dilim.slicing.host_tensors import memory_of, part_of, past_gradient, view_of, with_gradient
from dilim.slicing.runs import Run
from dilim.tensors.tape import mode

if TYPE_CHECKING:
    from dilim.slicing.region import Region
    from dilim.slicing.statistics import Statistics

Call: TypeAlias = Callable[[tuple[Any, ...]], Any]

MISS: Final = object()
"""What a direct call gives where a condition does not hold: nothing was done."""
DIRECT_FILE: Final = "<dilim direct call>"
"""The file name of the code of direct calls."""
_FUNCTIONS: Final = with_gradient, past_gradient, memory_of, view_of, part_of
_STATELESS: Final = {x.__name__: x for x in _FUNCTIONS}
_TAKING: Final = (  # another thread may come first at any time
    "  try:",
    "    spare = sets.pop()",
    "  except IndexError:",
    "    spare = more()",
    "  else:",
    "    if not spare.same():",
    "      sets.insert(0, spare)",
    "      spare = None",
)
"""Takes a set of gradients that nobody has, or None; see `Spares`."""


class _Call:
    """Writes a direct call.

    Args:
        ending: of the region.
        gate: what it demands.
    """

    def __init__(self, ending: Ending, gate: Gate) -> None:
        self.ending = ending
        self.gate = gate
        self.given = [path for path in gate.memory if path not in gate.constants]
        self.is_plain = all(gate.tensors[path].is_plain for path in self.given)
        written = dict(zip(gate.memory, gate.written, strict=True))
        self.written = [path for path in gate.memory if written[path]]
        taken = (*gate.inputs, *self.given)
        self._taken = {path: f"x{number}" for number, path in enumerate(taken)}
        self.standing = [x for x in gate.conditions if is_standing(x)]

    def fixed(self, paths: Sequence[str]) -> tuple[Storage, ...]:
        """The storages among these that are always the same."""
        constants = self.gate.constants
        return tuple(constants[path]._storage for path in paths if path in constants)

    def text(self) -> str:
        """The function ``call``."""
        ending, gate = self.ending, self.gate
        early = (line for _, writes in ending.early for line in writes)
        code = "\n".join([*ending.lines, *ending.gradients, *early])
        taken = self._taken
        then = [f"{name} = {path}" for path, name in taken.items()]
        slots = set(re.findall(r"\bs[0-9]+\b", code))
        then += [f"s{k} = {path}" for k, path in enumerate(gate.slots) if f"s{k}" in slots]
        touched = "".join(f"{self._taken[x]}._storage, " for x in self.written if x in self._taken)
        lines = [
            f"def call({', '.join(gate.arguments)}):",
            *checked(self._conditions(), then or ["pass"], "return MISS"),
            *(_TAKING if ending.gradients else []),
            *(["  told = None"] if ending.stops else []),
            "  try:",
            *self._run(),
            *(["  except Stopped as error:", "    told = error"] if ending.stops else []),
            "  except BaseException as error:",
            *(
                ["    if spare is not None:", "      sets.insert(0, spare)"]
                if ending.gradients
                else []
            ),
            "    if error.__class__ is Missed:",
            "      return MISS",
            *self._early(),
            f"    failed(error, ({touched}))",
            "    raise",
            *(self._stopped(touched) if ending.stops else []),
            *(f"  {told}{taken.get(x, x)}._storage.version += 1" for x, told in ending.counted),
            *(["  R = Run(0)"] if re.search(r"\bR\.", code) else []),
            *(["  M = {}"] if re.search(r"\bM\b", code) else []),
            *(f"  {line}" for line in ending.lines),
            *self._set_gradients(),
            f"  return {ending.result}",
        ]
        return "\n".join(lines)

    def _stopped(self, touched: str) -> list[str]:
        """What is done where Ctrl-C has ended a turn."""
        given = "".join(f"{x}, " for x in self.gate.arguments)
        back = ["    if spare is not None:", "      sets.insert(0, spare)"]
        return [
            "  if told is not None:",
            *(back if self.ending.gradients else []),
            f"    failed(told, ({touched}))",
            f"    stopped(told, ({given}))",
        ]

    def _run(self) -> list[str]:
        """The call of the program; in memory of gradients that nobody has any more, if there is."""
        numbers = range(len(self.ending.graph.outputs))
        gradients = self.ending.gradients.values()

        def called(function: str, results: Iterable[int]) -> str:
            names = ", ".join(f"r{k}" for k in results)
            given = ", ".join(self._taken.values())
            return f"{names}{' = ' if names else ''}{function}({given})"

        if not gradients:
            return [f"    {called('function', numbers)}"]
        return [
            "    if spare is None:",
            f"      {called('function', numbers)}",
            "    else:",
            f"      {called('spare.function', (k for k in numbers if k not in gradients))}",
        ]

    def _set_gradients(self) -> list[str]:
        gradients = self.ending.gradients
        if not gradients:
            return []
        return [
            "  if spare is None:",
            *(f"    {owner}.grad = r{number}" for owner, number in gradients.items()),
            "  else:",
            f"    {', '.join(f'{owner}.grad' for owner in gradients)}, = spare.tensors",
            "    sets.insert(0, spare)",
        ]

    def _early(self) -> list[str]:
        """What is done where an operation failed, before anything else."""
        lines = ["    place = getattr(error, 'site', None)"] if self.ending.early else []
        for number, (_, writes) in enumerate(self.ending.early):
            lines += [
                f"    if place in places[{number}]:",
                *(f"      {x}" for x in writes or ["pass"]),
            ]
        return lines

    def _conditions(self) -> list[str]:
        """What machine code does not look at on its own."""
        demands = [self.gate.tensors[path] for path in self.given]
        settled = {x for each in demands for x in each.layout}
        if self.is_plain:
            settled |= {x for each in demands for x in each.tape}
        conditions = ["standing.same() or standing.holds()"] if self.standing else []
        conditions += [
            x for x in self.gate.conditions if x not in settled and x not in self.standing
        ]
        conditions += all_different(self.gate.distinct)
        conditions += storages_apart((path, path in self.written) for path in self.given)
        return conditions or ["True"]

    def _writes_given(self) -> bool:
        return any(path in self._taken for path in self.written)

    @property
    def apart(self) -> tuple[Storage, ...]:
        """Memory that is always the same, and must not be among what is given."""
        return self.fixed(self.gate.memory if self._writes_given() else self.written)


def direct_call(
    ending: Ending,
    gate: Gate,
    native: Any,
    constants: Mapping[str, Any],
    tell: Callable[[Exception], object],
    stopped: Callable[[Stopped, tuple[Any, ...]], None],
) -> Callable[..., Any]:
    """A function from the values of a region's frame to what the region gives, or to `MISS`.

    Args:
        ending: of the region.
        gate: what it demands.
        native: the program of ``ending.graph`` as machine code.
        constants: of the region.
        tell: is shown an exception of the program.
        stopped: called with where Ctrl-C has ended a turn, and with the values; raises.
    """
    call = _Call(ending, gate)
    written = call.fixed(call.written)

    def failed(error: BaseException, given: tuple[Storage, ...]) -> None:
        for storage in (*written, *given):
            storage.version += 1
        if isinstance(error, Exception):
            tell(error)

    space: dict[str, Any] = dict(constants)
    space |= {"MISS": MISS, "Missed": Missed, "Run": Run, "failed": failed, **_STATELESS}
    space |= {"Stopped": Stopped, "stopped": stopped}
    space["places"] = [places for places, _ in ending.early]
    space["standing"] = Standing(call.standing, constants)
    code = Code(native, ending.tensors, gate, call.is_plain, call.apart)
    space["function"] = code.function()
    if ending.gradients:
        spares = Spares(code, tuple(ending.gradients.values()))
        space |= {"sets": spares.sets, "more": spares.more}
    exec(compile(call.text(), DIRECT_FILE, "exec"), space)
    made: Callable[..., Any] = space["call"]
    return made


def quick_call(region: Region, statistics: Statistics, otherwise: Call) -> Call:
    """A call that begins with a program without host code.

    Args:
        region: the program.
        statistics: to be counted in.
        otherwise: what is done where it cannot be used.
    """
    direct: Any = region.direct

    def call(values: tuple[Any, ...]) -> Any:
        if mode.watched:
            return otherwise(values)
        try:
            result = direct(*values)
        except BaseException:
            statistics.calls += 1
            statistics.native_calls += 1
            raise
        if result is MISS:
            return otherwise(values)
        statistics.calls += 1
        statistics.native_calls += 1
        region.direct_runs += 1
        return result

    return call
