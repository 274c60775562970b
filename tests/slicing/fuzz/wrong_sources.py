"""Compilers that change the source, and so do something else than the function.

What they make runs from the user's file, with the user's lines, globals and closure.
"""

import ast
import copy
import functools
import inspect
import textwrap
import types

from slicing.fuzz.breakers import BREAKERS as BREAKERS
from slicing.fuzz.breakers import breaker


def _edited(f, transformer):
    """The function with its syntax tree changed, in its file, with its globals and cells."""
    source = textwrap.dedent(inspect.getsource(f))
    tree = ast.parse(source)
    ast.increment_lineno(tree, f.__code__.co_firstlineno - 1)
    tree = ast.fix_missing_locations(transformer.visit(tree))
    function = tree.body[0]
    names = f.__code__.co_freevars
    if names:  # a function around it, so that they stay free
        outer = ast.parse(f"def outer({', '.join(names)}):\n    return {f.__name__}")
        outer.body[0].body.insert(0, function)
        tree = ast.fix_missing_locations(outer)
    code = compile(tree, f.__code__.co_filename, "exec")
    inner = _code_named(code, f.__name__)
    result = types.FunctionType(inner, f.__globals__, f.__name__, f.__defaults__, _cells(f, inner))
    result.__kwdefaults__ = f.__kwdefaults__
    return _following(result, f)


def _following(result, f):
    """The changed function with the defaults that the plain one has when it is called."""

    @functools.wraps(f)
    def call(*arguments, **keywords):
        result.__defaults__ = f.__defaults__
        return result(*arguments, **keywords)

    return call


def _cells(f, code):
    by_name = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
    return tuple(by_name[name] for name in code.co_freevars)


def _code_named(code, name):
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_name == name:
                return constant
            found = _code_named(constant, name)
            if found is not None:
                return found
    return None


def _is_print(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and (
        getattr(node.value.func, "id", "") == "print"
    )  # fmt: skip


class _OnBlocks(ast.NodeTransformer):
    """Changes each list of statements by `block`."""

    def block(self, statements):
        return statements

    def generic_visit(self, node):
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            if isinstance(statements, list) and statements:
                setattr(node, name, self.block(statements) or [ast.Pass()])
        return node


# --- compilers ------------------------------------------------------------------------------


@breaker
def prints_late(f):
    """A print changes places with the statement after it."""

    class Late(_OnBlocks):
        def block(self, statements):
            statements = list(statements)
            for i in range(len(statements) - 1):
                following = statements[i + 1]
                if _is_print(statements[i]) and isinstance(following, (ast.Assign, ast.Expr)):
                    statements[i : i + 2] = [following, statements[i]]
            return statements

    return _edited(f, Late())


@breaker
def drops_appends(f):
    """The first ``append`` of a block is not done."""

    class Dropped(_OnBlocks):
        def block(self, statements):
            return [x for x in statements if not self._is_append(x)]

        def _is_append(self, node):
            return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and (
                getattr(node.value.func, "attr", "") == "append"
            )  # fmt: skip

    return _edited(f, Dropped())


@breaker
def drops_attributes(f):
    """Attributes are not written back."""

    class Dropped(_OnBlocks):
        def block(self, statements):
            return [x for x in statements if not self._is_write(x)]

        def _is_write(self, node):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", 0)]
            return any(isinstance(x, ast.Attribute) for x in targets)

    return _edited(f, Dropped())


@breaker
def copies_instead_of_writing(f):
    """``x += y`` makes a new tensor."""

    class Copying(ast.NodeTransformer):
        def visit_AugAssign(self, node):
            if not isinstance(node.target, ast.Name):
                return node
            left = ast.Name(node.target.id, ast.Load())
            value = ast.BinOp(left, node.op, node.value)
            return ast.copy_location(ast.Assign([node.target], value), node)

    return _edited(f, Copying())


@breaker
def draws_twice(f):
    """A random predicate is evaluated twice."""

    class Twice(ast.NodeTransformer):
        def visit_If(self, node):
            self.generic_visit(node)
            if "random" in ast.unparse(node.test):
                again = copy.deepcopy(node.test)
                both = ast.Tuple([again, node.test], ast.Load())
                node.test = ast.Subscript(both, ast.Constant(1), ast.Load())
            return node

    return _edited(f, Twice())


@breaker
def runs_both_branches(f):
    """What a branch does is done even if it is not taken, when it is an assignment."""

    class Both(_OnBlocks):
        def block(self, statements):
            result = []
            for node in statements:
                if isinstance(node, ast.If) and not node.orelse:
                    result += [x for x in node.body if isinstance(x, ast.Assign)]
                result.append(node)
            return result

    return _edited(f, Both())


@breaker
def forgets_else(f):
    """The else of a loop is left out."""

    class Forgetful(ast.NodeTransformer):
        def visit_For(self, node):
            self.generic_visit(node)
            node.orelse = []
            return node

        visit_While = visit_For

    return _edited(f, Forgetful())


@breaker
def one_turn_less(f):
    class Shorter(ast.NodeTransformer):
        def visit_Call(self, node):
            self.generic_visit(node)
            if getattr(node.func, "id", "") == "range" and len(node.args) == 1:
                node.args[0] = ast.BinOp(node.args[0], ast.Sub(), ast.Constant(1))
            return node

    return _edited(f, Shorter())


@breaker
def keeps_loop_variables(f):
    """After a loop that made no turn its variable is bound."""

    class Binding(_OnBlocks):
        def block(self, statements):
            result = []
            for node in statements:
                if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
                    result.append(ast.Assign([ast.Name(node.target.id, ast.Store())],
                                             ast.Constant(0)))  # fmt: skip
                result.append(node)
            return result

    return _edited(f, Binding())


@breaker
def raises_elsewhere(f):
    """Exceptions are raised at the line before."""

    class Elsewhere(ast.NodeTransformer):
        def visit_Raise(self, node):
            return ast.increment_lineno(node, -1)

        visit_Assert = visit_Raise

    return _edited(f, Elsewhere())
