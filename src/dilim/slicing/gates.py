"""What a region demands when it is called, and where it finds what it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Demands:
    """What is demanded of a tensor.

    Attributes:
        layout: conditions on its class, type, device and memory.
        tape: conditions on its gradient.
        is_plain: whether it has nothing to do with gradients.
    """

    layout: tuple[str, ...]
    tape: tuple[str, ...]
    is_plain: bool


@dataclass(frozen=True, slots=True)
class Gate:
    """Conditions and paths, as Python expressions; see `dilim.slicing.entry`.

    Attributes:
        arguments: names of the values of the region's frame.
        conditions: what has to hold; first what others take for granted, such as attributes.
        distinct: paths of objects that are all different.
        inputs: paths of the numbers that are inputs of the graph.
        memory: paths of the tensors that are its variables.
        written: for each of these, whether the graph writes it.
        slots: paths of the objects that host code may need.
        constants: the objects that the expressions refer to, by name.
        tensors: what is demanded of those of ``memory`` that are found by a path.
    """

    arguments: tuple[str, ...]
    conditions: tuple[str, ...]
    distinct: tuple[str, ...]
    inputs: tuple[str, ...]
    memory: tuple[str, ...]
    written: tuple[bool, ...]
    slots: tuple[str, ...]
    constants: Mapping[str, Any]
    tensors: Mapping[str, Demands]

    def function(self, without: Sequence[str] = ()) -> Callable[..., Any]:
        """A function from the frame's values to what the program needs, or None.

        Args:
            without: paths of what the program itself changes; they are not looked at, and None
                stands for what is found there.

        Returns:
            A function that gives numbers, memory (tensors) and slots, three tuples.
        """

        def kept(text: str) -> bool:
            return not any(path in text for path in without)

        conditions = [text for text in self.conditions if kept(text)] or ["True"]
        conditions += all_different(filter(kept, self.distinct))
        pairs = zip(self.memory, self.written, strict=True)
        conditions += storages_apart((path, is_written) for path, is_written in pairs if kept(path))
        parts = (
            tuple_of([path if kept(path) else "None" for path in paths])
            for paths in (self.inputs, self.memory, self.slots)
        )
        lines = [
            f"def gate({', '.join(self.arguments)}):",
            *checked(conditions, [f"return {', '.join(parts)}"], "return None"),
        ]
        space = dict(self.constants)
        exec(compile("\n".join(lines), "<dilim gate>", "exec"), space)
        made: Callable[..., Any] = space["gate"]
        return made

    def failing(self, without: Sequence[str]) -> Callable[[Sequence[Any]], list[str]]:
        """What finds the conditions that do not hold for some values of the region's frame.

        Args:
            without: as for `function`.
        """
        kept = [text for text in self.conditions if not any(path in text for path in without)]

        def found(values: Sequence[Any]) -> list[str]:
            space = dict(self.constants) | dict(zip(self.arguments, values, strict=True))
            return [condition for condition in kept if not _holds(condition, space)]

        return found


def _holds(condition: str, space: dict[str, Any]) -> bool:
    try:
        return bool(eval(condition, space))
    except (AttributeError, LookupError, TypeError, ValueError):
        return False


def checked(conditions: Sequence[str], then: Sequence[str], otherwise: str) -> list[str]:
    """Lines of a function: what is done where all conditions hold, and where one does not."""
    return [
        "  try:",
        "    if not (",
        *(f"      {'and ' if k else ''}({text})" for k, text in enumerate(conditions)),
        "    ):",
        f"      {otherwise}",
        *(f"    {line}" for line in then),
        "  except (AttributeError, LookupError, TypeError, ValueError):",
        f"    {otherwise}",
    ]


def all_different(paths: Iterable[str]) -> list[str]:
    """The condition that objects are all different ones, if there are several."""
    ids = [f"id({path})" for path in paths]
    return [f"len({{{', '.join(ids)}}}) == {len(ids)}"] if len(ids) > 1 else []


def storages_apart(memory: Iterable[tuple[str, bool]]) -> list[str]:
    """The condition that what is written is memory of its own, if there is any.

    Args:
        memory: paths of tensors, and whether their memory is written.
    """
    written: dict[str, None] = {}
    read: dict[str, None] = {}
    for path, is_written in memory:
        (written if is_written else read)[f"{path}._storage"] = None
    conditions = all_different(written)
    if written and read:
        first, others = (", ".join(f"id({x})" for x in paths) for paths in (written, read))
        conditions.append(f"{{{first}}}.isdisjoint(({others},))")
    return conditions


def tuple_of(paths: Sequence[str]) -> str:
    """Code for a tuple."""
    return f"({', '.join(paths)}{',' if paths else ''})"
