"""Functions as the slicer sees them: blocks of simple steps, and control flow with structure.

Source code is normalised (see `normal`): every operation is a step of its own whose operands are
names or constants, in the order in which Python evaluates them. So each point at which a program
can be cut lies between two statements. Names that begin with ``%`` are made by the slicer; no
identifier of a user can. In compound statements ``at`` is the user's syntax that they come from.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Atom: TypeAlias = ast.Name | ast.Constant
"""What an operand may be: a name or a constant."""

FRAME: Final = "%frame"
"""What the slicer's own code calls the variables of a function, a dict."""
ENTER: Final = "%enter"
"""What enters a context: a function of the frame, the name that keeps ``__exit__``, the context."""
LEAVE: Final = "%leave"
"""What leaves a context: a function of its ``__exit__`` and an error or None."""


@dataclass(slots=True, eq=False)
class Step:
    """A statement without control flow.

    Attributes:
        node: one of

            - ``Assign`` of one operation on atoms (or an atom) to one Name;
            - ``Assign`` of an atom to a Tuple or List of Names, one of which may be Starred;
            - ``Assign`` of an atom to ``atom.attribute`` or ``atom[index]``;
            - ``AugAssign`` of an atom to a Name;
            - ``Delete`` of one Name, ``atom.attribute`` or ``atom[index]``;
            - ``Raise`` of atoms;
            - ``Assert`` of the constant False and an atom, which raises AssertionError.

            An index is an atom, a Slice of atoms, or a Tuple of these. Lambdas, generator
            expressions, set and dict comprehensions, and list comprehensions that are no plain
            loop, stay whole, as operations.
        reads: the local names that it reads, in order, each once.
        writes: the local names that it binds or deletes.
        line: in the user's file.
        summary: another way to do the same, for some calls and comprehensions.
    """

    node: ast.stmt
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    line: int
    summary: Summary | None = None


@dataclass(slots=True, eq=False)
class Summary:
    """A call such as ``sum(x for x in items)``, or a comprehension, as a loop.

    Attributes:
        builtin: the name of the function, which has to be the built-in one; empty for none.
        block: a loop that does the same, but for a frame of its own in errors.
    """

    builtin: str
    block: Block


@dataclass(slots=True, eq=False)
class Branch:
    """``if test: then else: otherwise``.

    Also what ``and``, ``or``, chained comparisons, ``x if c else y`` and ``assert`` become.
    """

    test: Atom
    then: Block
    otherwise: Block
    line: int
    at: ast.AST | None = None


@dataclass(slots=True, eq=False)
class While:
    """``while``: ``before`` computes the test of each turn; ``otherwise`` is the loop's else."""

    before: Block
    test: Atom
    body: Block
    otherwise: Block
    line: int
    at: ast.AST | None = None


@dataclass(slots=True, eq=False)
class For:
    """``for``: each turn binds ``target``, one name; the body begins by unpacking a tuple.

    Attributes:
        iterator: the name under which a running loop keeps its iterator in the frame.
        from_comprehension: whether it is a list comprehension, whose variable ends with it.
    """

    target: str
    items: Atom
    iterator: str
    body: Block
    otherwise: Block
    line: int
    from_comprehension: bool = False
    at: ast.AST | None = None


@dataclass(slots=True, eq=False)
class Exit:
    """``break``, ``continue`` or ``return value``."""

    kind: str
    value: Atom | None
    line: int
    at: ast.AST | None = None


@dataclass(slots=True, eq=False)
class With:
    """``with context [as target]: body`` with one context; several are nested.

    Attributes:
        manager: the name under which an entered context keeps its ``__exit__`` in the frame.
        entering: a step that enters it.
        leaving: a step that leaves it where there is no error.
    """

    context: Atom
    target: str | None
    body: Block
    line: int
    manager: str
    entering: Step
    leaving: Step
    at: ast.AST | None = None


@dataclass(slots=True, eq=False)
class Unit:
    """A statement that the host runs as it stands: try, def, class, import, match, global writes.

    Attributes:
        node: the user's statement.
        reads: the local names that it may read.
        writes: those that it may bind.
        exits: whether it holds a return, break or continue that leaves it.
        reason: why it is not sliced, in plain words.
    """

    node: ast.stmt
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    exits: bool
    reason: str
    line: int


Statement: TypeAlias = Step | Branch | While | For | Exit | With | Unit
Block: TypeAlias = list[Statement]


@dataclass(slots=True, eq=False)
class Function:
    """A normalised function.

    Attributes:
        name: of its code object.
        filename: the user's file.
        lines: the user's source, and the number of its first line.
        parameters: the names of the parameters, in the order of the code object's variables.
        locals: all local names.
        cells: names of variables of enclosing functions (free variables).
        captured: local names that inner functions, lambdas and generator expressions may read.
        body: what it does.
        qualified_name: of its code object.
        flags: the compiler's switches under which it was compiled (``from __future__``).
        globals_written: names that it declares ``global``.
        cells_written: names that it declares ``nonlocal``.
        builtins: names of built-in functions that the normal form relies on to be what they are
            (they use up a generator at once, so that it cannot see later values of variables).
        stable: parameters that are never deleted, and so always bound.
        codes: compiled pieces of it (see `fragments`).
    """

    name: str
    filename: str
    lines: tuple[list[str], int]
    parameters: tuple[str, ...]
    locals: frozenset[str]
    cells: tuple[str, ...]
    captured: frozenset[str]
    body: Block = field(default_factory=list)
    qualified_name: str = ""
    flags: int = 0
    globals_written: frozenset[str] = frozenset()
    cells_written: frozenset[str] = frozenset()
    builtins: frozenset[str] = frozenset()
    stable: frozenset[str] = frozenset()
    codes: dict[Any, Any] = field(default_factory=dict)
