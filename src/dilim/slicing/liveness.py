"""Which local names may be read later, at each statement of a function."""

from __future__ import annotations

import ast

from dilim.slicing.loop_bodies import exits
from dilim.slicing.program import (
    Atom,
    Block,
    Branch,
    Exit,
    For,
    Function,
    Statement,
    Step,
    Unit,
    While,
    With,
)  # fmt: skip

Names = frozenset[str]
_EMPTY: Names = frozenset()


class Liveness:
    """The names that are live after each statement, and at the head of each loop.

    Args:
        code: the function.
        after: names that are read after its body.
        quiet: ``with`` statements that never swallow an error.

    Attributes:
        after: statement -> names that may be read after it, before they are bound anew.
        head: loop -> names that may be read from the beginning of a turn on.
        exposed: loop -> names that a turn may read before it binds them.
        before: names that may be read from the beginning on.
    """

    def __init__(
        self, code: Function, after: Names = _EMPTY, quiet: frozenset[With] = frozenset()
    ) -> None:
        self._quiet = quiet
        self.after: dict[Statement, Names] = {}
        self.head: dict[Statement, Names] = {}
        self.exposed: dict[Statement, Names] = {}
        self._breaks: list[tuple[Names, Names]] = []
        self._caught = _EMPTY  # read where a context around has swallowed an error
        self.before = self._block(code.body, after)

    def _block(self, block: Block, live: Names) -> Names:
        for statement in reversed(block):
            live = self._before(statement, live)
        return live

    def _before(self, statement: Statement, live: Names) -> Names:
        live |= self._caught
        after = live
        if isinstance(statement, Unit | With) and exits([statement]):
            after = live.union(*(names for pair in self._breaks for names in pair))
        self.after[statement] = self.after.get(statement, _EMPTY) | after
        match statement:
            case Step():
                if statement.summary is not None:
                    self._block(statement.summary.block, live)
                if isinstance(statement.node, ast.Delete):
                    return live.union(statement.writes, statement.reads)  # they must be bound
                return (live - set(statement.writes)) | set(statement.reads)
            case Unit(node=ast.FunctionDef()):
                return (after - set(statement.writes)) | set(statement.reads)
            case Unit():  # it need not come to bind what it may bind
                return after | set(statement.reads)
            case Branch():
                then = self._block(statement.then, live)
                return then | self._block(statement.otherwise, live) | _name(statement.test)
            case Exit():
                return self._exit(statement)
            case With():
                caught = _EMPTY if statement in self._quiet else live
                outer, self._caught = self._caught, self._caught | caught
                inner = self._block(statement.body, live) | caught
                self._caught = outer
                self.after[statement.entering], self.after[statement.leaving] = inner, live
                target = {statement.target} if statement.target else set()
                return (inner - target) | caught | _name(statement.context)
            case For():
                return self._for(statement, live)
            case While():
                return self._while(statement, live)
        raise TypeError(type(statement).__name__)

    def _exit(self, statement: Exit) -> Names:
        if statement.kind == "break":
            return self._breaks[-1][0]
        if statement.kind == "continue":
            return self._breaks[-1][1]
        return _name(statement.value)

    def _for(self, statement: For, live: Names) -> Names:
        ended = self._block(statement.otherwise, live)
        head = ended
        while True:
            self._breaks.append((live, head))
            inner = self._block(statement.body, head) - {statement.target}
            self._breaks.pop()
            if inner <= head:
                break
            head |= inner
        self.head[statement] = head
        self.exposed[statement] = self._turn(statement, _EMPTY) - {statement.target}
        return head | _name(statement.items)

    def _turn(self, statement: For | While, live: Names) -> Names:
        """The names that are live before a turn after which these are."""
        self._breaks.append((_EMPTY, live))
        before = self._block(statement.body, live)
        self._breaks.pop()
        return before

    def _while(self, statement: While, live: Names) -> Names:
        ended = self._block(statement.otherwise, live)
        head = ended
        while True:
            self._breaks.append((live, head))
            tested = ended | self._block(statement.body, head) | _name(statement.test)
            self._breaks.pop()
            inner = self._block(statement.before, tested)
            if inner <= head:
                break
            head |= inner
        self.head[statement] = head
        test = self._block(statement.before, _name(statement.test))
        self.exposed[statement] = self._turn(statement, test)
        return head


def liveness_of(code: Function, quiet: frozenset[With] = frozenset()) -> Liveness:
    """The liveness of a function, found once; see `Liveness`."""
    key = "liveness", quiet
    found: Liveness | None = code.codes.get(key)
    if found is None:
        found = code.codes[key] = Liveness(code, code.codes.get("after", _EMPTY), quiet)
    return found


def _name(atom: Atom | None) -> Names:
    name = getattr(atom, "id", None)
    return _EMPTY if name is None else frozenset({name})
