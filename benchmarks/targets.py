"""What was asked of the compiled programs, and what a run saw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from harness import Row

Rows = dict[str, list[Row]]
PEERS_OF_LARGE = ("jax_scan_1t", "jax_scan_2t", "jax_jit_2t", "torch_fused_1t", "torch_fused_2t")
PEERS_OF_LARGE += ("numpy_1t", "numpy_2t")
SAME_RATIO = 0.79
"""To JAX's scan: 1.1 times the floor in C, of which JAX takes 1.4 times on the small update."""


@dataclass(frozen=True)
class Target:
    """One line: the quantity, its limit, and from which figures it comes.

    Attributes:
        what: the quantity.
        limit: the number asked for.
        seen: the number of this run; None where something was not measured.
        figures: the times behind it.
        at_least: whether more is better.
    """

    what: str
    limit: float
    seen: float | None
    figures: str = ""
    at_least: bool = False

    def cells(self) -> list[str]:
        """Cells of the table."""
        bound = f"at {'least' if self.at_least else 'most'} {self.limit:g}"
        if self.seen is None:
            return [self.what, bound, "–", "", self.figures]
        met = self.seen >= self.limit if self.at_least else self.seen <= self.limit
        return [self.what, bound, f"{self.seen:.3g}", "yes" if met else "**no**", self.figures]


class _Times:
    """Medians of one benchmark by case and peer."""

    def __init__(self, rows: Iterable[Row], per: str = "median_us") -> None:
        self.of = {(row["case"], row["peer"]): row[per] for row in rows if per in row}

    def ratio(
        self, what: str, limit: float, case: str, ours: str, theirs: str, *, faster: bool = False
    ) -> Target:
        """Our time as a share of theirs, or how many times faster we are."""
        mine, other = self.of.get((case, ours)), self.of.get((case, theirs))
        if mine is None or other is None:
            return Target(what, limit, None, at_least=faster)
        figures = f"{ours} {mine:.4g} us, {theirs} {other:.4g} us"
        return Target(what, limit, other / mine if faster else mine / other, figures, faster)

    def best(self, what: str, limit: float, case: str, ours: str) -> Target:
        """Our time as a share of the fastest peer's."""
        known = [peer for peer in PEERS_OF_LARGE if (case, peer) in self.of]
        if not known:
            return Target(what, limit, None)
        fastest = min(known, key=lambda peer: self.of[case, peer])
        return self.ratio(what, limit, case, ours, fastest)

    def beyond(self, what: str, limit: float, case: str, *without: str) -> Target:
        """What is left of a compiled function's time without that of these peers, in us."""
        mine, others = self.of.get((case, "dilim")), [self.of.get((case, x)) for x in without]
        if mine is None or None in others:
            return Target(f"{what}, us", limit, None)
        figures = " - ".join(f"{time:.4g}" for time in (mine, *others))
        return Target(f"{what}, us", limit, mine - sum(others), figures)

    def value(self, what: str, limit: float, case: str, peer: str) -> Target:
        """A time by itself."""
        return Target(what, limit, self.of.get((case, peer)))


def targets(rows: Rows) -> list[Target]:
    """All lines, in order."""
    native = _Times(rows.get("native_step", ()))
    return [
        *_steps(native),
        *_products(rows.get("products", ())),
        *_compiling(rows.get("compile_time", ())),
        *_scalar(_Times(rows.get("scalar_step", ()))),
        *_vectors(rows.get("vector_math", ())),
        *_calls(_Times(rows.get("call_cost", ()))),
        *_points(_Times(rows.get("channel_points", ()))),
        *_sliced(_Times(rows.get("slicing", ()))),
        *_first_calls(rows.get("first_call", ())),
    ]


def _steps(native: _Times) -> list[Target]:
    small = "DQN update 4-64-64-2, batch 32"
    jit = min(("jax_jit_1t", "jax_jit_2t"), key=lambda peer: native.of.get(("a", peer), inf))
    call, loop = native.of.get(("a", "dilim_1t")), native.of.get(("a", "dilim_loop_1t"))
    more = call - loop if call and loop else None
    lines = [
        native.ratio(f"{small}, in a loop / floor in C", 1.1, "a", "dilim_loop_1t", "floor_1t"),
        native.ratio("the same / JAX scan", 1.0, "a", "dilim_loop_1t", "jax_scan_1t"),
        Target("the same, what a call from Python adds, us", 2.0, more),
        native.ratio(
            "the same, called: times faster than JAX jit",
            *(2.5, "a", "dilim_1t", jit),
            faster=True,
        ),
        native.ratio(
            "the same: times faster than PyTorch, fused Adam, 1 thread",
            *(20.0, "a", "dilim_1t", "torch_fused_1t"),
            faster=True,
        ),
        native.ratio(
            "DQN update 11-256-128-3, batch 64, 2 cores / floor in C on one",
            *(0.75, "b", "dilim_loop_2t", "floor_1t"),
        ),
    ]
    for case, title, strict, fast in (
        ("c", "classifier 784-256-128-10, batch 128", 0.9, 0.8),
        ("d", "classifier 1024-1024-1024-10, batch 256", 1.1, 1.0),
    ):
        lines.append(native.best(f"{title} / best peer, strict", strict, case, "dilim_2t"))
        lines.append(native.best("the same, fast", fast, case, "dilim_fast_2t"))
    lines += [
        native.ratio(
            "logistic regression, 1,000 steps in a loop / floor in C",
            *(1.1, "e", "dilim_loop_1t", "floor_1t"),
        ),
        native.value("greedy action 4-64-64-2, us", 1.0, "act", "dilim_1t"),
    ]
    return lines + [
        native.ratio(f"{title} / JAX scan", SAME_RATIO, case, "dilim_loop_1t", "jax_scan_1t")
        for case, title in (
            ("p", "odd: DQN update 7-31-1-13-5, batch 37"),
            ("q", "odd: classifier 17-101-53-29-3, batch 23"),
            ("r", "odd: regression 13-211-1, batch 64"),
        )
    ]


def _products(rows: Iterable[Row]) -> list[Target]:
    """The worst ratio of all shapes."""
    times = _Times(rows)
    lines = []
    for kind, limit in (("strict", 0.9), ("fast", 1.0)):
        for threads in ("1", "2"):
            ratios = {
                case: times.of[case, f"numpy_{threads}"] / micro
                for (case, peer), micro in times.of.items()
                if peer == f"{kind}_{threads}" and (case, f"numpy_{threads}") in times.of
            }
            what = f"matrix products, {kind}, {threads} thread{'s' * (threads == '2')}"
            what += ": times NumPy's speed, worst shape"
            worst = min(ratios, key=ratios.__getitem__, default=None)
            below = sum(ratio < limit for ratio in ratios.values())
            figures = f"{worst}; {below} of {len(ratios)} shapes below" if worst else ""
            lines.append(Target(what, limit, ratios.get(worst), figures, at_least=True))
    return lines


def _compiling(rows: Sequence[Row]) -> list[Target]:
    whole, alone = _Times(rows, "total_ms").of, _Times(rows, "compile_ms").of

    def line(what: str, limit: float, case: str) -> Target:
        times = alone if case.endswith("loaded") else whole
        parts = alone.get((case, "dilim"))
        figures = f"{parts:.3g} ms without llvmlite's import" if parts and times is whole else ""
        return Target(f"{what}, ms", limit, times.get((case, "dilim")), figures)

    return [
        line("compile the small update, caches empty, new process", 250, "a cold"),
        line("the same, one output more, kernels cached, new process", 60, "a output"),
        line("the same, compiler in use already", 60, "a output loaded"),
        line("the same, another constant, compiler in use already", 60, "a constant loaded"),
        line("the same, program cached, new process", 5, "a hit"),
        line("the same, compiler in use already", 5, "a hit loaded"),
        line("compile 1024-1024-1024-10, caches empty, new process", 500, "d cold"),
    ]


def _scalar(scalar: _Times) -> list[Target]:
    return [
        scalar.value("scalar 3-[4, 4, 1], 4 samples, compiled, us", 3, "mlp", "dilim_compiled"),
        scalar.value(
            "scalar 2-[16, 16, 1], 100 points, compiled, us", 60, "moons", "dilim_compiled"
        ),
    ]


def _vectors(rows: Iterable[Row]) -> list[Target]:
    known = {row["case"]: row for row in rows if "numpy_ns" in row}
    lines = []
    for name, dtype, limit in (
        ("exp", "float32", 1.0),
        ("log", "float32", 1.0),
        ("tanh", "float32", 1.3),
        ("exp", "float64", 1.3),
        ("log", "float64", 1.3),
        ("tanh", "float64", 1.3),
    ):
        row = known.get(f"{name} {dtype}")
        seen = row["dilim_ns"] / row["numpy_ns"] if row else None
        figures = f"{row['dilim_ns']:.3g} ns, NumPy {row['numpy_ns']:.3g} ns" if row else ""
        lines.append(Target(f"{name}, {dtype} / NumPy", limit, seen, figures))
    return lines


def _calls(calls: _Times) -> list[Target]:
    seen = calls.of.get(("add", "builtin"))
    return [Target("bare call, ns", 100, None if seen is None else 1000 * seen)]


def _points(points: _Times) -> list[Target]:
    """Times with the program's own."""
    return [
        points.value(f"{what}, us", limit, case, "session")
        for case, what, limit in (
            ("send", "channel point: a number is sent and read in Python", 0.45),
            ("send32", "channel point: 32 numbers are sent and copied", 1.0),
            ("receive", "channel point: a number is received", 0.45),
            ("call", "run with 10 inputs and a new result, no point", 2.0),
        )
    ]


def _sliced(sliced: _Times) -> list[Target]:
    """Compiled functions, once they are compiled."""
    classifier = "linear classifier, 3,001 epochs in one call"
    jax = min(("jax", "jax_1t"), key=lambda peer: sliced.of.get(("classifier", peer), inf))
    lines = [
        sliced.beyond("compiled function of 10 tensors: Python around its code", 3, "call", "bare"),
        sliced.beyond("transfer in a loop: a number", 0.6, "number", "dilim_without", "append"),
        sliced.beyond("the same: 32 numbers", 1.5, "vector", "dilim_without", "append"),
        sliced.ratio(f"{classifier} / JAX fori_loop", 0.9, "classifier", "dilim", jax),
        sliced.ratio(
            "the same: times faster than PyTorch, eager",
            *(80, "classifier", "dilim", "torch"),
            faster=True,
        ),
    ]
    what = "the same, a print each hundredth epoch less the time in print / without"
    plain, printing, alone = (
        sliced.of.get(("classifier", peer)) for peer in ("dilim", "dilim_print", "print")
    )
    if plain and printing and alone:
        figures = f"({printing:.4g} - {alone:.4g}) / {plain:.4g} us"
        lines.append(Target(what, 1.1, (printing - alone) / plain, figures))
    else:
        lines.append(Target(what, 1.1, None))
    return lines + [
        sliced.ratio(f"{title} as a function / graph built by hand", 1.1, case, "dilim", "graph")
        for case, title in (
            ("a", "DQN update 4-64-64-2, batch 32"),
            ("b", "DQN update 11-256-128-3, batch 64"),
        )
    ]


def _first_calls(rows: Sequence[Row]) -> list[Target]:
    first, later = _Times(rows, "first_ms").of, _Times(rows, "later_ms").of
    compiling = _Times(rows, "compile_ms").of

    def share(state: str, limit: float) -> Target:
        what = f"linear classifier, first call, {state} caches / plain function"
        case = f"classifier {state}"
        mine, plain = (first.get((case, peer)) for peer in ("dilim", "dilim_eager"))
        if mine is None or plain is None:
            return Target(what, limit, None)
        figures = f"{mine:.4g} ms, plain {plain:.4g} ms (later {later[case, 'dilim_eager']:.4g} ms)"
        return Target(what, limit, mine / plain, figures)

    def milliseconds(state: str, limit: float) -> Target:
        what = f"slice and compile the small DQN update, {state} caches, new process, ms"
        return Target(what, limit, compiling.get((f"update {state}", "dilim_at_once")))

    return [
        share("cold", 1.2),
        share("warm", 0.25),
        milliseconds("cold", 500),
        milliseconds("warm", 50),
    ]
