"""Runs all benchmarks, one after the other, and writes RESULTS.md beside this file.

python benchmarks/run.py            everything, about 15 minutes; the machine should be idle
python benchmarks/run.py --quick    short samples, about 2 minutes; prints the report instead
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import writer
from machine import describe_run
from report import load, report

HERE = Path(__file__).resolve().parent
SCRIPTS = ("scalar_step", "eager_step", "footprint")
PACKAGES = ("dilim", "numpy", "torch", "jax", "jaxlib", "flax", "optax", "tinygrad", "micrograd")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short samples; print the report")
    parser.add_argument("--only", default=",".join(SCRIPTS), help="default: %(default)s")
    parser.add_argument("--lines", type=Path, help="keep the JSON lines in this (new) file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = options.lines or Path(folder) / "lines.jsonl"
        writer(lines)(describe_run(["python", "benchmarks/run.py", *sys.argv[1:]], PACKAGES))
        for name in options.only.split(","):
            command = [sys.executable, str(HERE / f"{name}.py"), "--out", str(lines)]
            subprocess.run(command + ["--quick"] * options.quick, check=True)
        text = report(load(lines))
    if options.quick:
        print(text)
    else:
        (HERE / "RESULTS.md").write_text(text)


if __name__ == "__main__":
    main()
