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
        parts = (
            tuple_of([path if _is_kept(path, without) else "None" for path in paths])
            for paths in (self.inputs, self.memory, self.slots)
        )
        conditions = self._conditions(without) + storages_apart(self._memory(without))
        return self._compiled(
            self.arguments, conditions, f"return {', '.join(parts)}", "return None"
        )

    def still(self, without: Sequence[str] = ()) -> Callable[..., bool]:
        """A function that says whether all is as it was, asked after host code.

        Args:
            without: as for `function`.

        Returns:
            A function of what that of `function` has given, and of the frame's values.
        """
        conditions = self._conditions(without)
        memory = self._memory(without)
        if any(path not in self.constants for path, _ in memory):  # others stay as they are
            conditions += storages_apart(memory)
        for group, paths in enumerate((self.inputs, self.memory, self.slots)):
            for place, path in enumerate(paths):
                if path in self.constants or path in self.arguments or path in without:
                    continue  # always what it was, or not looked at
                known = f"found[{group}][{place}]"
                if _is_kept(path, without):
                    conditions.append(f"{path} is {known} or is_equal({path}, {known})")
        return self._compiled(("found", *self.arguments), conditions, "return True", "return False")

    def _conditions(self, without: Sequence[str]) -> list[str]:
        conditions = [text for text in self.conditions if _is_kept(text, without)] or ["True"]
        conditions += all_different(path for path in self.distinct if _is_kept(path, without))
        return conditions

    def _memory(self, without: Sequence[str]) -> list[tuple[str, bool]]:
        """Paths of memory, and whether it is written."""
        pairs = zip(self.memory, self.written, strict=True)
        return [pair for pair in pairs if _is_kept(pair[0], without)]

    def _compiled(
        self, parameters: Sequence[str], conditions: Sequence[str], then: str, otherwise: str
    ) -> Callable[..., Any]:
        lines = [
            f"def gate({', '.join(parameters)}):",
            *checked(conditions, [then], otherwise),
        ]
        space = dict(self.constants) | {"is_equal": is_equal}
        exec(compile("\n".join(lines), "<dilim gate>", "exec"), space)
        made: Callable[..., Any] = space["gate"]
        return made

    def failing(self, without: Sequence[str]) -> Callable[[Sequence[Any]], list[str]]:
        """What finds the conditions that do not hold for some values of the region's frame.

        Args:
            without: as for `function`.
        """
        kept = [text for text in self.conditions if _is_kept(text, without)]

        def found(values: Sequence[Any]) -> list[str]:
            space = dict(self.constants) | dict(zip(self.arguments, values, strict=True))
            return [condition for condition in kept if not _holds(condition, space)]

        return found


def is_equal(a: Any, b: Any) -> bool:
    """Whether a value is a number, and equal to another."""
    return a.__class__ in (int, float) and bool(a == b)


def _is_kept(text: str, without: Sequence[str]) -> bool:
    """Whether an expression has none of some paths in it."""
    return not any(path in text for path in without)


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
