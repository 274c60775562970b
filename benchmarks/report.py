"""Turns the JSON lines of a run into RESULTS.md.

    python benchmarks/report.py LINES.jsonl [--output RESULTS.md]

A later line of the same benchmark, case and peer replaces an earlier one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from channel_points import TITLES as POINT_TITLES
from eager_cases import CASES
from harness import Row
from products import flops
from slicing_cases import TITLES as SLICING_TITLES
from targets import targets

SCALAR_TITLES = {
    "mlp": "MLP 3-[4, 4, 1], tanh, 4 samples",
    "moons": "MLP 2-[16, 16, 1], relu, 100 points of two moons",
}


def load(path: Path) -> dict[str, list[Row]]:
    """The rows of each benchmark, in order of first appearance."""
    latest: dict[tuple[str, ...], Row] = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        latest[row["benchmark"], row.get("case", ""), row.get("peer", "")] = row
    rows: dict[str, list[Row]] = {}
    for row in latest.values():
        rows.setdefault(row["benchmark"], []).append(row)
    return rows


def number(value: float | None) -> str:
    """Three figures, thousands separated; a dash for what was not measured."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table and the empty line after it."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines] + [""]


# ------------------------------------------------------------------ goals
def goals(rows: dict[str, list[Row]]) -> list[str]:
    """What was promised, and what this run measured."""
    scalar, eager = (
        {(row["case"], row["peer"]): row.get("median_us") for row in rows.get(name, [])}
        for name in ("scalar_step", "eager_step")
    )
    footprint = {row["peer"]: row for row in rows.get("footprint", [])}

    def share(times: dict[tuple[str, str], float | None], case: str, ours: str, peer: str) -> str:
        mine, other = times.get((case, ours)), times.get((case, peer))
        return f"{mine / other:.2f}" if mine and other else "–"

    def milliseconds(what: str) -> str:
        return number(footprint.get("dilim", {}).get(f"{what}_beyond_numpy_ms"))

    lines = [
        (
            "scalar step, MLP 3-[4, 4, 1], share of micrograd's time",
            "at most 0.40",
            share(scalar, "mlp", "dilim", "micrograd"),
        ),
        (
            "scalar step, MLP 2-[16, 16, 1], share of micrograd's time",
            "at most 0.40",
            share(scalar, "moons", "dilim", "micrograd"),
        ),
        (
            "small DQN update, eager, share of PyTorch's time (fused Adam, 1 thread)",
            "at most 2.00",
            share(eager, "a", "dilim_1t", "torch_fused_1t"),
        ),
        ("small taped operation, us", "at most 5", number(eager.get(("small", "dilim_1t")))),
        ("import beyond NumPy's, ms", "under 100", milliseconds("import")),
        ("import and first use beyond NumPy's import, ms", "–", milliseconds("first_use")),
    ]
    return ["## Goals of the eager parts", "", *table(["what", "goal", "measured"], lines)]


def asked(rows: dict[str, list[Row]]) -> list[str]:
    """What was asked of compiled programs; strict numbers unless it says fast."""
    head = ["what", "asked", "seen", "met", "figures of this run"]
    lines = ["## Asked and seen: compiled programs", ""]
    lines += ["Ratios of medians of this one run. Numbers are strict unless a line says fast.", ""]
    return lines + table(head, [target.cells() for target in targets(rows)])


# ------------------------------------------------------------------ sections
def timings(title: str, rows: list[Row], titles: Callable[[str], str]) -> list[str]:
    """One table per case, fastest peer first, then what could not be measured."""
    lines = [f"## {title}", ""]
    for case in dict.fromkeys(row["case"] for row in rows):
        here = [row for row in rows if row["case"] == case]
        timed = sorted((r for r in here if "median_us" in r), key=lambda row: row["median_us"])
        lines += [f"**{case}: {titles(case)}**, microseconds per step", ""]
        lines += table(
            ["peer", "median", "min", "max", "first call s", "max rel err", "cores", "quiet"],
            [
                [
                    row["peer"] + remark(row),
                    *(number(row[key]) for key in ("median_us", "min_us", "max_us")),
                    number(row["first_call_s"]),
                    f"{row['max_rel_err']:.1e}",
                    f"{row['cores']:.2f}",
                    f"{row['quiet']}/{row['samples']}",
                ]
                for row in timed
            ],
        )
        lines += missing(here)
    return lines


def remark(row: Row) -> str:
    """What a peer found out about its program."""
    if "nodes" in row:
        return f" ({row['nodes']:,} nodes)"
    if "bits_of_eager" in row:
        return " (bits of eager steps)" if row["bits_of_eager"] else " (**not the bits of eager**)"
    return ""


def missing(rows: Iterable[Row]) -> list[str]:
    """A line for each row without a measurement."""
    notes = [
        f"- {row['peer']}: {row.get('error') or row.get('absent')}"
        for row in rows
        if "error" in row or "absent" in row
    ]
    return [*notes, ""] if notes else []


def footprint(rows: list[Row]) -> list[str]:
    """Size and import time."""
    head = ["install", "MB", "of it NumPy", "files", "packages", "install s", "import s"]
    head += ["beyond NumPy ms", "with first use s", "beyond NumPy ms"]
    keys = ["megabytes", "numpy_megabytes", "files", "packages", "install_s", "import_s"]
    keys += ["import_beyond_numpy_ms", "first_use_s", "first_use_beyond_numpy_ms"]
    lines = ["## Size and import, each in a fresh environment", ""]
    lines += ["First use: make a tensor, add it to itself, read the result.", ""]
    lines += table(
        head,
        [[f"{r['peer']} {r.get('version', '')}", *(number(r.get(k)) for k in keys)] for r in rows],
    )
    return lines + missing(rows)


def compiling(rows: list[Row]) -> list[str]:
    """Compile times and memory."""
    lines = ["## Compiling, each in a fresh process", "", "Milliseconds, medians.", ""]
    timed = [row for row in rows if "compile_ms" in row]
    lines += table(
        ["case", "graph to first result", "import of llvmlite", "together"],
        [
            [r["case"], *(number(r[k]) for k in ("compile_ms", "import_ms", "total_ms"))]
            for r in timed
        ],
    )
    keys = ["compilations", "each_ms", "settled_megabytes", "end_megabytes", "growth_megabytes"]
    head = ["memory", "compilations", "ms each", "MB after 100", "MB at the end", "growth"]
    held = [row for row in rows if "growth_megabytes" in row]
    lines += table(head, [[r["case"], *(number(r[key]) for key in keys)] for r in held])
    return lines + missing(rows)


def products(rows: list[Row]) -> list[str]:
    """GFLOP/s; in brackets how many times NumPy's on as many threads."""
    peers = list(dict.fromkeys(row["peer"] for row in rows))
    micro = {(r["case"], r["peer"]): r["median_us"] / r["times"] for r in rows if "median_us" in r}

    def cell(case: str, peer: str) -> str:
        time, numpy = micro.get((case, peer)), micro.get((case, f"numpy_{peer[-1]}"))
        if time is None:
            return "–"
        ratio = f" ({numpy / time:.2f})" if numpy and not peer.startswith("numpy") else ""
        return f"{flops(case) / time / 1e3:.0f}{ratio}"

    lines = ["## Matrix products, float32, GFLOP/s", ""]
    lines += ["In brackets: times NumPy's speed on as many threads (the number in the name).", ""]
    cases = dict.fromkeys(row["case"] for row in rows)
    return lines + table(["M x K x N", *peers], [[c, *(cell(c, p) for p in peers)] for c in cases])


def vectors(rows: list[Row]) -> list[str]:
    """Elementwise functions beside NumPy."""
    lines = ["## Elementwise functions, nanoseconds per element, one thread", ""]
    body = []
    for row in rows:
        ours, theirs = row["dilim_ns"], row.get("numpy_ns")
        ratio = f"{ours / theirs:.2f}" if theirs else "–"
        body.append([row["case"], str(row["operations"]), number(ours), number(theirs), ratio])
    return lines + table(["function", "operations", "dilim", "NumPy", "share"], body)


def first_calls(rows: list[Row]) -> list[str]:
    """First calls of compiled functions."""
    lines = ["## First call of a compiled function, each in a fresh process", ""]
    lines += ["Milliseconds, medians; imports that the call makes are counted.", ""]
    keys = ["first_ms", "compile_ms", "later_ms"]
    timed = [row for row in rows if "first_ms" in row]
    lines += table(
        ["case", "peer", "first call", "of it slicing and compiling", "later calls"],
        [[row["case"], row["peer"], *(number(row.get(key)) for key in keys)] for row in timed],
    )
    return lines + missing(rows)


def training(rows: list[Row]) -> list[str]:
    """Training of agents."""
    lines = ["## Training in CartPole", ""]
    timed = [row for row in rows if "median" in row]
    cells = [
        [row["case"], row["peer"], number(row["median"]), row.get("solved", ""), number(steps)]
        for row in timed
        for steps in [row.get("steps")]
    ]
    lines += table(["case", "peer", "median", "seeds that reach 475", "steps until then"], cells)
    return lines + missing(rows)


SECTIONS = {
    "training": training,
    "compile_time": compiling,
    "first_call": first_calls,
    "products": products,
    "vector_math": vectors,
}


def report(rows: dict[str, list[Row]]) -> str:
    """The whole text of RESULTS.md."""
    run = rows["run"][-1]
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    lines = [
        "# Benchmark results",
        "",
        f"- Command: `{run['command']}`",
        f"- Date: {run['date']}",
        f"- Machine: {run['cpu']}, {run['cores']} cores, {run['system']}, Python {run['python']}",
        f"- Versions: {versions}",
        "",
        "How it is measured: [README.md](README.md). Medians are over the quiet samples, during",
        "which other processes used less than a quarter of one core, or over all where fewer than",
        "five were quiet. `max rel err` is against a float64 run in NumPy. `first call s` of a",
        "peer's first case includes its import.",
        "",
        *asked(rows),
        *goals(rows),
    ]
    if "native_step" in rows:
        title = "Compiled training steps"
        lines += timings(title, rows["native_step"], lambda case: CASES[case].title)
    if "scalar_step" in rows:
        title = "Scalar autograd: one training step"
        lines += timings(title, rows["scalar_step"], SCALAR_TITLES.__getitem__)
    if "eager_step" in rows:
        title = "Eager tensors: one training step"
        lines += timings(title, rows["eager_step"], lambda case: CASES[case].title)
    for name, section in SECTIONS.items():
        if name in rows:
            lines += section(rows[name])
    if "call_cost" in rows:
        lines += timings("Cost of a call", rows["call_cost"], lambda _: "four numbers plus four")
    if "channel_points" in rows:
        title = "Points at which a program calls Python"
        lines += timings(title, rows["channel_points"], POINT_TITLES.__getitem__)
    if "slicing" in rows:
        title = "Functions compiled by slicing"
        lines += timings(title, rows["slicing"], SLICING_TITLES.__getitem__)
    if "footprint" in rows:
        lines += footprint(rows["footprint"])
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lines", type=Path, help="file with the JSON lines of a run")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "RESULTS.md")
    options = parser.parse_args()
    options.output.write_text(report(load(options.lines)))


if __name__ == "__main__":
    main()
