"""The compiled pieces of the functions of a region."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from dilim.slicing.fragments import Fragment, Fragments
from dilim.slicing.interpreter import Scope
from dilim.slicing.program import Step


@dataclass(slots=True, eq=False)
class Later:
    """A piece that is yet to be compiled: most attempts at slicing are given up."""

    compiled: Callable[[], Fragment]


def fragments_by_function(observe: Callable[[Step, Any], None]) -> Callable[[Scope], Fragments]:
    """What compiles statements of functions; each function is looked at once.

    Args:
        observe: is shown the values of steps of pieces that are observed.
    """
    known: dict[FunctionType, Fragments] = {}

    def fragments_of(scope: Scope) -> Fragments:
        found = known.get(scope.function)
        if found is None:
            found = known[scope.function] = Fragments(scope.code, scope.function, observe)
        return found

    return fragments_of
