"""Regions whose host program has nothing to do until their end."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from keyword import iskeyword
from typing import Any, Final

from dilim.ir.graph import NO_SITE, Graph
from dilim.ir.structure import CHANNELS, walk
from dilim.ops.table import OPERATIONS
from dilim.slicing.actions import END, INTERRUPT, STOP, WRITE, Action


@dataclass(frozen=True, slots=True)
class Ending:
    """What the host does at the end of a region without other host code.

    Attributes:
        graph: the program, with what is sent at the end as its results.
        tensors: which of them are new tensors; the others are arrays.
        lines: what the host does with the results ``r0``, ``r1``, ...
        gradients: what has a result as its new gradient -> the number of that result, which is used
            for nothing else.
        result: what the function returns.
        counted: paths of memory that was written, each with the code of the condition for it.
        early: what is done already where an operation fails: the places in the user's source of
            operations that may, and lines; in their order.
        stops: whether its loops come to the end of a turn where Ctrl-C was pressed.
    """

    graph: Graph
    tensors: frozenset[int]
    lines: tuple[str, ...]
    gradients: dict[str, int]
    result: str
    counted: tuple[tuple[str, str], ...]
    early: tuple[tuple[frozenset[Any], tuple[str, ...]], ...]
    stops: bool = False


def ending_of(
    graph: Graph, actions: Sequence[Action], arguments: Mapping[str, str]
) -> Ending | None:
    """The end of a region; None if its host program has something to do before.

    Args:
        graph: the graph program.
        actions: all that the host does.
        arguments: the local names of the region's frame, and what finds their values.
    """
    stops = [x for x in actions if x.channel[0] == STOP]
    actions = [x for x in actions if x.channel[0] != STOP]
    if actions[-1].channel[0] != END or actions[-1].statements:
        return None
    if any(x.channel[0] != WRITE or x.sent for x in actions[:-1]):
        return None
    if any(x.lines[-1] != INTERRUPT for x in stops):
        return None
    points = [node for node in graph.nodes if node.op in CHANNELS]
    count = sum(n.op in CHANNELS and not n.params.get("stop") for n in walk(graph))
    if len(points) != len(actions) or count != len(actions):
        return None
    try:
        last = _Rewriter(actions[-1], arguments)
        earlier = [_Rewriter(action, arguments) for action in actions[:-1]]
        early = tuple(zip(_places_after(graph), map(_Rewriter.writes, earlier), strict=False))
    except _Unknown:
        return None
    sets = {key: text for each in (*earlier, last) for key, text in each.sets.items()}
    gradients = _gradients(last, sets)
    return Ending(
        graph=replace(
            graph,
            nodes=tuple(node for node in graph.nodes if node.op not in CHANNELS),
            outputs=tuple(points[-1].inputs[position] for position in last.sent),
        ),
        tensors=frozenset(last.tensors.values()),
        lines=(*last.lines, *(f"{owner}{key} = {x}" for (owner, key), x in sets.items())),
        gradients=gradients,
        result=last.result,
        counted=tuple(pair for each in (*earlier, last) for pair in each.counted),
        early=early,
        stops=bool(stops),
    )


def _gradients(last: _Rewriter, sets: dict[tuple[str, str], str]) -> dict[str, int]:
    """Takes those out of what is set that are results used for nothing else."""
    code = "\n".join([*last.lines, *sets.values()])
    found = {}
    for (owner, key), value in list(sets.items()):
        if key == ".grad" and len(re.findall(rf"\b{re.escape(value)}\b", code)) == 1:
            number = next((n for n in last.tensors.values() if value == f"r{n}"), None)
            if number is not None:
                found[owner] = number
                del sets[owner, key]
    return found


class _Unknown(Exception):
    """Code that a direct call cannot have."""


def _places_after(graph: Graph) -> list[frozenset[Any]]:
    """For each channel point, where the operations stand that may fail after it.

    Raises:
        _Unknown: one that may fail before stands there too.
    """
    places: list[set[Any]] = [set()]  # between one point and the next
    for node in graph.nodes:
        if node.op in CHANNELS:
            places.append(set())
        for each in (node, *(inner for region in node.regions for inner in walk(region))):
            operation = OPERATIONS.get(each.op)
            if operation is not None and operation.can_fail(each.results[0].dtype):
                site = graph.sites[each.site] if each.site != NO_SITE else None
                places[-1].add(None if site is None else (site.file, site.line))
    found = []
    for number in range(1, len(places)):
        before, after = set().union(*places[:number]), set().union(*places[number:])
        if before & after or None in after:
            raise _Unknown
        found.append(frozenset(after))
    return found


class _Rewriter(ast.NodeTransformer):
    """The code of an action as that of a direct call.

    Objects ``O[n]`` become results of the program, ``v[n]`` too, and ``S[n]`` local variables.

    Args:
        action: the action.
        arguments: see `ending_of`.

    Attributes:
        sent: per result its position in what is sent.
        tensors: number of an object -> number of the result that it is.
        counted: paths of memory that was written, each with the code of the condition for it.
        sets: what is set, by owner and how it is found there.
        lines: everything else, in order.
        result: what the function returns.

    Raises:
        _Unknown: it does what a direct call cannot do.
    """

    def __init__(self, action: Action, arguments: Mapping[str, str]) -> None:
        self._arguments = arguments
        self._arrays: dict[int, int] = {}  # position in what is sent -> number of a result
        self.sent: list[int] = []
        self.tensors: dict[int, int] = {}
        self.counted: list[tuple[str, str]] = []
        self.sets: dict[tuple[str, str], str] = {}
        self.lines: list[str] = []
        self.result = "None"
        for statement in ast.parse("\n".join([*action.prelude, *action.lines])).body:
            self._statement(statement)

    def writes(self) -> tuple[str, ...]:
        """The lines of an action that only writes back."""
        if self.lines or self.sent:
            raise _Unknown
        return tuple(f"{owner}{key} = {value}" for (owner, key), value in self.sets.items())

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(
                ast.Call(ast.Attribute(ast.Name("R"), "tensor"), [ast.Constant(int(number)), sent])
            ):
                self.tensors[number] = self._take(_number(sent))
            case ast.Expr(ast.Call(ast.Attribute(ast.Name("R"), "count_writes"), [paths])):
                self.counted += ((path, "") for path in ast.literal_eval(paths))
            case ast.If(
                test, [ast.Expr(ast.Call(ast.Attribute(ast.Name("R"), "count_writes"), [paths]))]
            ):
                told = f"if {self._text(test)}: "
                self.counted += ((path, told) for path in ast.literal_eval(paths))
            case ast.Expr(
                ast.Call(
                    ast.Attribute(ast.Name("R"), "view" | "part" as kind),
                    [ast.Constant(int(number)), base, where],
                )
            ):
                made = f"w{number} = {kind}_of({self._text(base)}, {self._text(where)})"
                self.lines.append(made)
            case ast.Expr(
                ast.Call(
                    ast.Attribute(ast.Name("R"), "set"), [owner, ast.Constant(str(name)), value]
                )
            ) if name.isidentifier() and not iskeyword(name):
                self.sets[self._text(owner), f".{name}"] = self._text(value)
            case ast.Expr(
                ast.Call(ast.Attribute(ast.Name("R"), "put"), [owner, ast.expr() as key, value])
            ):
                self.sets[self._text(owner), f"[{self._text(key)}]"] = self._text(value)
            case ast.Assign([ast.Attribute(ast.Name("R"), "result")], value):
                self.result = "result"
                self.lines.append(f"result = {self._text(value)}")
            case _:
                self.lines.append(self._text(statement))

    def _text(self, node: ast.AST) -> str:
        return ast.unparse(self.visit(node))

    def _take(self, position: int) -> int:
        """The number of a new result."""
        self.sent.append(position)
        return len(self.sent) - 1

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        match node:
            case ast.Subscript(ast.Name("O"), ast.Constant(int(number))):
                return _name(f"r{self.tensors[number]}")
            case ast.Subscript(ast.Name("S"), ast.Constant(int(number))):
                return _name(f"s{number}")
            case ast.Subscript(ast.Attribute(ast.Name("R"), "views"), ast.Constant(int(number))):
                return _name(f"w{number}")
            case ast.Subscript(ast.Name("v"), ast.Constant(int(position))):
                if position not in self._arrays:
                    self._arrays[position] = self._take(position)
                return _name(f"r{self._arrays[position]}")
            case ast.Subscript(
                ast.Subscript(ast.Name("F"), ast.Constant(0)), ast.Constant(str(name))
            ):
                if name in self._arguments:
                    return _name(self._arguments[name])
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(ast.Attribute(ast.Name("R"), "memory"), [ast.Constant(str(path))]):
                return ast.Call(_name("memory_of"), [ast.parse(path, mode="eval").body], [])
            case ast.Call(ast.Attribute(ast.Name("R"), "with_gradient" | "past_gradient" as name)):
                node.func = _name(name)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == "R" and node.attr in _OTHER:
            raise _Unknown
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in ("F", "O", "v", "S"):
            raise _Unknown
        return node


_OTHER: Final = frozenset({"refresh", "refill", "note", "memories", "objects", "views", "frames"})
"""Of a `Run`: what other actions have left there."""


def _name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def _number(sent: ast.expr) -> int:
    match sent:
        case ast.Subscript(ast.Name("v"), ast.Constant(int(position))):
            return position
    raise _Unknown
