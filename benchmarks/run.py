"""Runs all benchmarks, one after the other, and writes RESULTS.md beside this file.

python benchmarks/run.py            everything, about 14 minutes; the machine should be idle
python benchmarks/run.py --quick    short samples, about 6 minutes; prints the report instead
python benchmarks/run.py --only native_step,compile_time --lines LINES    some, added to LINES
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import SOURCE, writer
from machine import describe_run

HERE = Path(__file__).resolve().parent
PRODUCTS = (
    "64x64x64", "128x128x128", "256x256x256", "512x512x512", "1024x1024x1024", "2048x2048x2048",
    "256x1024x1024", "1024x256x1024", "128x784x256", "784x128x256", "64x256x128", "32x64x64",
    "1x64x64",
)  # fmt: skip
SCRIPTS = {
    "native_step": ["--rounds", "15"],
    "scalar_step": ["--rounds", "11"],
    "compile_time": [],
    "products": ["--rounds", "9"],
    "vector_math": [],
    "call_cost": ["--rounds", "9"],
    "channel_points": ["--rounds", "9"],
    "slicing": ["--rounds", "9"],
    "first_call": [],
    "training": [],
    "eager_step": ["--rounds", "9"],
    "footprint": [],
}
"""Every script with what keeps the whole run short."""
CASES_OF = {"products": ["--cases", ",".join(PRODUCTS)]}
PACKAGES = ("dilim", "numpy", "llvmlite", "torch", "jax", "jaxlib", "flax", "optax", "tinygrad")
PACKAGES += ("micrograd",)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short samples; print the report")
    parser.add_argument("--only", default=",".join(SCRIPTS), help="default: %(default)s")
    parser.add_argument("--lines", type=Path, help="add the JSON lines to this file and keep it")
    options = parser.parse_args()
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with tempfile.TemporaryDirectory() as folder:
        lines = options.lines or Path(folder) / "lines.jsonl"
        writer(lines)(describe_run(["python", "benchmarks/run.py", *sys.argv[1:]], PACKAGES))
        for name in options.only.split(","):
            command = [sys.executable, str(HERE / f"{name}.py"), "--out", str(lines)]
            command += CASES_OF.get(name, [])
            command += ["--quick"] if options.quick else SCRIPTS[name]
            started = time.perf_counter()
            subprocess.run(command, check=True, env=environment)
            print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
        # Apart, since the report knows the library too.
        output = Path(folder) / "report.md" if options.quick else HERE / "RESULTS.md"
        command = [sys.executable, str(HERE / "report.py"), str(lines), "--output", str(output)]
        subprocess.run(command, check=True, env=environment)
        if options.quick:
            print(output.read_text())


if __name__ == "__main__":
    main()
