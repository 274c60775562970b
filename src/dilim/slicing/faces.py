"""Finds what ``f.slices()`` and ``f.explain()`` are about."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dilim.slicing.errors import Unsliceable
from dilim.slicing.explanation import Explanation
from dilim.slicing.findings import Findings
from dilim.slicing.fronts import front
from dilim.slicing.listing import Slices
from dilim.slicing.region import Region
from dilim.slicing.wording import short_path

if TYPE_CHECKING:
    from dilim.slicing.sliced import Sliced


@dataclass(slots=True)
class _Subject:
    """What there is to show.

    Attributes:
        regions: the programs.
        remarks: sentences on where they come from, or why there are none.
    """

    regions: list[Region] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def slices_of(
    sliced: Sliced, arguments: Sequence[Any] = (), keywords: Mapping[str, Any] | None = None
) -> Slices:
    """See `Sliced.slices`."""
    subject = _subject(sliced, arguments, keywords or {})
    return Slices([Findings(region) for region in subject.regions], " ".join(subject.remarks))


def explanation_of(
    sliced: Sliced, arguments: Sequence[Any] = (), keywords: Mapping[str, Any] | None = None
) -> Explanation:
    """See `Sliced.explain`."""
    subject = _subject(sliced, arguments, keywords or {})
    found = [Findings(region) for region in subject.regions]
    return Explanation(_name(sliced), found, sliced.statistics, subject.remarks)


def _subject(sliced: Sliced, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> _Subject:
    if not arguments and not keywords:
        if sliced.programs:
            return _of_variants(sliced)
        if sliced._loops.newest:
            return _Subject(sliced._loops.newest)
        if _needed(sliced):
            if sliced._shown is None:
                return _Subject([], [_not_yet(sliced)])
            remark = (
                "A first look: what host code binds was not known yet, so lines that use it are "
                "the host's here. The next call slices the function anew, knowing more."
            )
            return _Subject([sliced._shown], [remark])
    return _analysed(sliced, arguments, keywords)


def _of_variants(sliced: Sliced) -> _Subject:
    programs = sliced.programs
    count = len(programs)
    remark = f"The newest of {count} programs, which differ in their arguments."
    return _Subject(programs[-1:], [remark] if count > 1 else [])


def _analysed(sliced: Sliced, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> _Subject:
    """What runs for example arguments: a program that is there, or a slice that is not kept."""
    if sliced._code is None:
        return _Subject([], [_plain(sliced)])
    if sliced._bound is not None:
        arguments = (sliced._bound, *arguments)
    values = front(sliced._function, lambda values: values)(*arguments, **keywords)
    for region in sliced.programs:
        if region.gate(*values) is not None:
            return _Subject([region])
    frame = dict(zip(sliced._code.parameters, values, strict=True))
    function: Any = sliced._function
    try:
        region = Region(
            sliced._code,
            function,
            frame,
            dict(sliced._profile),
            set(),
            numerics=sliced._settings["numerics"],
            backend=sliced._settings["backend"],
        )
    except Unsliceable as refusal:
        place = f"{short_path(sliced._code.filename)}:{refusal.line}"
        return _Subject([], [f"{_name(sliced)} runs as plain Python: {refusal.reason} ({place})."])
    return _Subject([region], ["Sliced for these arguments, and not run."])


def _needed(sliced: Sliced) -> list[str]:
    """The parameters without a default."""
    parameters = list(inspect.signature(sliced._function).parameters.values())
    if sliced._bound is not None:
        parameters = parameters[1:]
    free = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        parameter.name
        for parameter in parameters
        if parameter.default is inspect.Parameter.empty and parameter.kind not in free
    ]


def _not_yet(sliced: Sliced) -> str:
    if sliced.statistics.fallbacks:
        return _plain(sliced)
    called = "was not called yet" if not sliced.statistics.calls else "ran as plain Python so far"
    return (
        f"{_name(sliced)} {called}, so its arguments are not known. Call it until it is compiled "
        f"(compile_after=0: at once), or give example arguments: {', '.join(_needed(sliced))}."
    )


def _name(sliced: Sliced) -> str:
    name: str = sliced._function.__name__
    return name


def _plain(sliced: Sliced) -> str:
    reason, file, line = sliced.statistics.fallbacks[-1]
    return f"{_name(sliced)} runs as plain Python: {reason} ({short_path(file)}:{line})."
