"""Whether inner functions read variables that are bound anew after."""

import ast

INNER = (ast.FunctionDef, ast.Lambda, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.ClassDef)
LOOPS = (ast.For, ast.While)


def rebinds_captured(tree):
    """Whether a function binds a variable anew that a function inside it has captured."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return any(_rebinds(function) for function in functions)


def _rebinds(function):
    bound = _bindings(function)
    for inner, loops in _inner_functions(function, ()):
        start = loops[0].lineno if loops else inner.lineno
        for name in _free(inner):
            if any(line >= start for line in bound.get(name, ()) if line != inner.lineno):
                return True
    return False


def _inner_functions(node, loops):
    """Functions directly inside, with the loops around them, the outermost first."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, INNER):
            yield child, loops
        else:
            around = (*loops, child) if isinstance(child, LOOPS) else loops
            yield from _inner_functions(child, around)


def _bindings(function):
    """Name -> the lines at which the function itself binds it."""
    found = {}
    pending = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.setdefault(node.id, []).append(node.lineno)
        if not isinstance(node, INNER):
            pending += ast.iter_child_nodes(node)
    return found


def _free(inner):
    """Names that it reads and does not bind."""
    nodes = list(ast.walk(inner))
    own = {node.arg for node in nodes if isinstance(node, ast.arg)}
    own |= {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    return {node.id for node in nodes if isinstance(node, ast.Name)} - own
