"""What programs were made for, and what changes between them, in the user's words."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dilim.slicing.numbers import Number
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.entry import Entry

Kinds: TypeAlias = dict[tuple[str, str], Any]
"""(what, aspect) -> value: ``("argument 'x'", "shape") -> "(3, 2)"``."""

_PATH: Final = re.compile(r"([ak])([0-9]+)(.*)", re.DOTALL)
_IN_DICT: Final = re.compile(r"\.__dict__\['(\w+)'\]")
_GLOBAL: Final = re.compile(r"\['(\w+)'\](.*)", re.DOTALL)
_MOST_SHOWN: Final = 5  # values of one thing
_MOST_CHANGES: Final = 2  # things that are named
_ASPECTS: Final = {
    "shape": "shapes",
    "dtype": "dtypes",
    "type": "types",
    "value": "values",
    "requires_grad": "values of requires_grad",
    "length": "lengths",
    "object": "objects",
}
"""In the order in which they are told, and what they are called."""


def kinds_of(entry: Entry, names: Sequence[str], word: str) -> Kinds:
    """What a region was made for.

    Args:
        entry: of the region.
        names: of its arguments.
        word: what these are called.
    """
    found: Kinds = {}
    for path, value, standing in entry.outside():
        what = _in_words(path, entry, names, word)
        is_fixed = entry.has_constant(value)
        for aspect, kind in _aspects(value, standing, is_fixed) if what else ():
            found.setdefault((what, aspect), kind)
    return found


def _in_words(path: str, entry: Entry, names: Sequence[str], word: str) -> str:
    """What the user knows a path as; empty where nothing is known."""
    match = _PATH.fullmatch(path)
    if match is None:
        return ""
    letter, number, rest = match.groups()
    rest = _IN_DICT.sub(r".\1", rest)
    if letter == "a":
        name = names[int(number)]
        return "" if name.startswith("%") else f"{word} '{name}{rest}'"
    root = entry.constants[f"{letter}{number}"]
    if isinstance(root, types.CellType):
        name = entry.cells.get(id(root), "")
        return f"variable '{name}{rest.removeprefix('.cell_contents')}'" if name else ""
    found = _GLOBAL.fullmatch(rest) if isinstance(root, dict) else None
    if found is not None:
        return f"global '{found[1]}{found[2]}'"
    name = getattr(root, "__name__", "")
    return f"'{name}{rest}'" if name else ""


def _aspects(value: Any, standing: Any, is_fixed: bool) -> Iterator[tuple[str, Any]]:
    kind = value.__class__
    yield "type", kind.__name__
    if kind is Tensor:
        yield "shape", repr(value.shape)
        yield "dtype", value.dtype.name
        yield "requires_grad", repr(value.requires_grad)
    elif standing.__class__ is Number:
        return
    elif kind in (int, float, bool, str, bytes, complex, type(None)):
        yield "value", repr(value)
    elif kind in (list, dict, tuple):
        yield "length", str(len(value))
    elif is_fixed:
        yield "object", value


def changes_in_words(programs: Sequence[Mapping[tuple[str, str], Any]]) -> str:
    """What differs most between programs; empty where nothing is known to differ."""
    order = list(_ASPECTS)
    common = [key for key in programs[-1] if all(key in kinds for kinds in programs)]
    found: dict[str, list[Any]] = {}
    for what, aspect in sorted(common, key=lambda key: order.index(key[1])):
        values: list[Any] = []
        for kinds in programs:
            value = kinds[what, aspect]
            if not any(value is known or _equal(value, known) for known in values):
                values.append(value)
        if len(values) > 1:
            found[f"{what} had {len(values)} {_ASPECTS[aspect]}{_shown(aspect, values)}"] = values
    most = sorted(found, key=lambda text: -len(found[text]))[:_MOST_CHANGES]
    return " and ".join(most)


def _equal(a: Any, b: Any) -> bool:
    return isinstance(a, str) and isinstance(b, str) and a == b


def _shown(aspect: str, values: Sequence[Any]) -> str:
    if aspect == "object":
        return ""
    shown = list(map(str, values))
    if len(shown) > _MOST_SHOWN:
        shown = [*shown[: _MOST_SHOWN - 1], "...", shown[-1]]
    return f" ({', '.join(shown)})"
