"""Makes a program with a difference smaller, on its source: what hypothesis does for choices.

Statements and calls are left out, blocks take the place of what holds them, expressions that of
what they are part of, as long as the difference stays of the same group.
"""

import ast
import copy
import time
import warnings
from dataclasses import replace


def reduce(program, fails, seconds=60.0):
    """A smaller program for which ``fails`` still holds.

    Args:
        program: one for which it holds.
        fails: a test of programs.
        seconds: how long to try.
    """
    end = time.monotonic() + seconds
    tidy = replace(program, source=ast.unparse(ast.parse(program.source)) + "\n")
    program = tidy if fails(tidy) else program
    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for step in (_fewer_calls, _fewer_statements, _smaller_expressions):
            smaller = _repeated(program, step, fails, end)
            changed |= smaller is not program
            program = smaller
    return program


def _repeated(program, step, fails, end):
    """Take every step that keeps the failure, the position of the next one going on."""
    position = 0
    while time.monotonic() < end:
        candidate = step(program, position)
        if candidate is None:
            return program
        if candidate is not program and _holds(fails, candidate):
            program = candidate
        else:
            position += 1
    return program


def _holds(fails, candidate):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's, of odd programs
        try:
            compile(candidate.source, "candidate", "exec")
            return fails(candidate)
        except Exception:
            return False  # a program that cannot be run at all


# --- steps: the candidate at a position, or None after the last -----------------------------


def _fewer_calls(program, position):
    calls = program.calls
    if position >= 3 * len(calls):
        return None
    number, what = divmod(position, 3)
    if what == 0:
        if len(calls) == 1:
            return program
        return replace(program, calls=calls[:number] + calls[number + 1 :])
    name = ("before", "after")[what - 1]
    if not getattr(calls[number], name):
        return program
    shorter = replace(calls[number], **{name: ""})
    return replace(program, calls=(*calls[:number], shorter, *calls[number + 1 :]))


def _fewer_statements(program, position):
    return _edited(program, position, _statement_edits)


def _smaller_expressions(program, position):
    return _edited(program, position, _expression_edits)


def _edited(program, position, edits_of):
    tree = ast.parse(program.source)
    edits = list(edits_of(tree))
    if position >= len(edits):
        return None
    edits[position]()
    source = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    return replace(program, source=source) if source != program.source else program


def _blocks(tree):
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield node, name, block


def _statement_edits(tree):
    """Functions that leave out a statement, or put its blocks in its place; large ones first."""
    edits = []
    for owner, name, block in _blocks(tree):
        for length in (len(block) // 2, len(block) // 4):
            for start in range(0, len(block) - length, length) if length > 1 else ():
                end = start + length
                size = (block[end - 1].end_lineno or 0) - block[start].lineno
                edits.append((size, _replacing(owner, name, block, start, [], length)))
        for number, statement in enumerate(block):
            size = (statement.end_lineno or 0) - statement.lineno
            if not isinstance(statement, ast.Pass):
                edits.append((size, _replacing(owner, name, block, number, [])))
            for inner in ("body", "orelse"):
                inside = getattr(statement, inner, None)
                if inside and isinstance(inside, list) and not _is_definition(statement):
                    edits.append((size - 1, _replacing(owner, name, block, number, inside)))
    return [edit for _, edit in sorted(edits, key=lambda pair: -pair[0])]


def _is_definition(statement):
    return isinstance(statement, (ast.FunctionDef, ast.ClassDef))


def _replacing(owner, name, block, number, statements, length=1):
    def edit():
        block[number : number + length] = statements
        if not block and name == "body" and not isinstance(owner, ast.Module):
            block.append(ast.Pass())

    return edit


def _expression_edits(tree):
    """Functions that put a part of an expression in its place."""
    for owner in ast.walk(tree):
        for name, value in ast.iter_fields(owner):
            if isinstance(value, ast.expr):
                for part in _parts(value):
                    yield lambda o=owner, n=name, p=part: setattr(o, n, copy.deepcopy(p))
            elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
                for number, item in enumerate(value):
                    if len(value) > 1 or not isinstance(owner, ast.Assign):
                        yield lambda v=value, i=number: v.pop(i)
                    for part in _parts(item):
                        yield lambda v=value, i=number, p=part: v.__setitem__(i, copy.deepcopy(p))


def _parts(value):
    """Expressions that can stand in the place of this one."""
    if value is None or isinstance(value, (ast.Name, ast.Constant)):
        return
    for node in ast.walk(value):
        if node is not value and isinstance(node, ast.expr) and not isinstance(node, ast.Starred):
            context = getattr(node, "ctx", None)
            if context is None or isinstance(context, ast.Load):
                yield node
