"""What the body of a loop may bind, and how it may be left, as its text shows it."""

from __future__ import annotations

import ast

from dilim.slicing import program, scopes


def written(block: program.Block) -> list[str]:
    """The names that a block may bind, in order."""
    found: dict[str, None] = {}
    for statement in block:
        found.update(dict.fromkeys(scopes.writes(statement)))
    return list(found)


def exits(block: program.Block) -> set[str]:
    """The kinds of exits that lead out of the body of a loop."""
    found: set[str] = set()
    for statement in block:
        match statement:
            case program.Exit():
                found.add(statement.kind)
            case program.Unit():
                found |= {"return", "break", "continue"} if statement.exits else set()
            case program.While() | program.For():
                found |= exits(statement.body) & {"return"}
                found |= exits(statement.otherwise)
            case _:
                for inner in scopes.inner_blocks(statement):
                    found |= exits(inner)
    return found


def only_changed_in_place(block: program.Block) -> set[str]:
    """The names that a block binds by augmented assignments only, such as ``x += 1``."""
    augmented: set[str] = set()
    bound: set[str] = set()
    for statement in block:
        for inner in scopes.inner_blocks(statement):
            found = set(written(inner))
            augmented |= only_changed_in_place(inner)
            bound |= found - only_changed_in_place(inner)
        if isinstance(statement, program.Step) and isinstance(statement.node, ast.AugAssign):
            augmented |= set(statement.writes)
        elif isinstance(statement, program.Step | program.Unit):
            bound |= set(statement.writes)
        elif isinstance(statement, program.For):
            bound.add(statement.target)
        elif isinstance(statement, program.With) and statement.target is not None:
            bound.add(statement.target)
    return augmented - bound


def may_fall_through(block: program.Block) -> bool:
    """Whether the end of a block may be reached, as far as its last statement tells."""
    match block[-1] if block else None:
        case program.Exit():
            return False
        case program.Step(node=ast.Raise()):
            return False
        case program.Branch() as branch:
            return may_fall_through(branch.then) or may_fall_through(branch.otherwise)
        case program.With() as opened:
            return may_fall_through(opened.body)
    return True
