"""Installed size and import time of dilim, PyTorch, JAX and tinygrad, each in a fresh environment.

dilim is installed from the repository, the others in the versions of the environment this runs in.
Sizes leave out pip, setuptools and byte code. Times are of whole processes, started in turns; what
an import costs beyond NumPy's is the difference to ``import numpy`` in the same environment. Some
libraries load most of themselves, NumPy included, only when used, so a first use (make a tensor,
add it to itself, read the result) is timed as well.

    python benchmarks/footprint.py [--peers dilim,torch] [--quick] [--out FILE]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import statistics
import subprocess
import tempfile
import time
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import Row, writer

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Library:
    """What to install, what to import, and a first use: make a tensor, add it, read the result."""

    requirements: tuple[str, ...]
    imports: str
    first_use: str

    def programs(self) -> dict[str, str]:
        """The programs whose whole run is timed, by the name of their result."""
        return {
            "numpy_s": "import numpy",
            "import_s": f"import {self.imports}",
            "first_use_s": f"import {self.imports}; {self.first_use}",
        }


LIBRARIES = {
    "dilim": Library((str(REPOSITORY),), "dilim", "x = dilim.tensor([1.0, 2.0]); (x + x).tolist()"),
    "torch": Library(("torch", "numpy"), "torch", "x = torch.tensor([1.0, 2.0]); (x + x).tolist()"),
    "jax+flax+optax": Library(
        ("jax", "jaxlib", "flax", "optax", "numpy"),  # What a training step needs.
        "jax, flax, optax",
        "x = jax.numpy.array([1.0, 2.0]); (x + x).tolist()",
    ),
    "tinygrad": Library(
        ("tinygrad", "numpy"), "tinygrad", "x = tinygrad.Tensor([1.0, 2.0]); (x + x).tolist()"
    ),
}


def pinned(requirement: str) -> str:
    """The requirement at the version installed here, without its local part (``+cpu``)."""
    if requirement.startswith("/"):
        return requirement
    try:
        return f"{requirement}=={importlib.metadata.version(requirement).split('+')[0]}"
    except importlib.metadata.PackageNotFoundError:
        return requirement


@dataclass
class Environment:
    """A fresh virtual environment with one library in it."""

    python: Path
    facts: Row


def install(requirements: Sequence[str], folder: Path) -> Environment:
    """Make the environment and install into it.

    Raises:
        subprocess.CalledProcessError: pip could not install the library.
    """
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    packages = next(folder.glob("lib/python*/site-packages"))
    before = _size(packages)
    started = time.perf_counter()
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += map(pinned, requirements)
    subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)
    seconds = time.perf_counter() - started
    size, files = (now - then for now, then in zip(_size(packages), before, strict=True))
    names = {path.name.split("-")[0].lower() for path in packages.glob("*.dist-info")}
    facts = {
        "version": _version(packages, folder.name.split("+")[0]),
        "megabytes": round(size / 1e6, 1),
        "numpy_megabytes": round(_numpy_size(packages) / 1e6, 1),
        "files": files,
        "packages": len(names - {"pip", "setuptools"}),
        "install_s": round(seconds, 1),
    }
    return Environment(python, facts)


def _size(folder: Path) -> tuple[int, int]:
    """Bytes and number of the files below a folder, links and byte code left out."""
    files = [
        path
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and path.suffix != ".pyc"
    ]
    return sum(path.stat().st_size for path in files), len(files)


def _version(packages: Path, distribution: str) -> str:
    found = next(packages.glob(f"{distribution}-*.dist-info"))
    return found.name.removesuffix(".dist-info").split("-", 1)[1]


def _numpy_size(packages: Path) -> int:
    return sum(_size(folder)[0] for folder in packages.glob("numpy*"))


def _seconds(python: Path, code: str) -> float:
    # -I: only what is installed there counts, not PYTHONPATH nor the folder we are in.
    command = [str(python), "-I", "-c", code]
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, text=True)
    return time.perf_counter() - started


def measure(names: Sequence[str], rounds: int, folder: Path) -> list[Row]:
    """Install each library and time its import; what fails is told in the row's ``error``."""
    rows: dict[str, Row] = {}
    environments: dict[str, Environment] = {}
    for name in names:
        rows[name] = {"benchmark": "footprint", "case": "footprint", "peer": name}
        try:
            environments[name] = install(LIBRARIES[name].requirements, folder / name)
        except subprocess.CalledProcessError as error:
            rows[name]["error"] = f"pip ended with code {error.returncode}"
    programs = {
        (name, what): code
        for name, environment in environments.items()
        for what, code in LIBRARIES[name].programs().items()
    }
    times: dict[tuple[str, str], list[float]] = {key: [] for key in programs}
    for round_ in range(rounds + 1):
        for (name, what), code in list(programs.items()):
            try:
                seconds = _seconds(environments[name].python, code)
            except subprocess.CalledProcessError as error:
                del programs[name, what]
                reason = error.stderr.strip().splitlines()[-1][:200]
                rows[name]["error"] = f"{what}: {reason}"
                continue
            if round_ > 0:  # The first round only compiles byte code and fills the file cache.
                times[name, what].append(seconds)
    for name, environment in environments.items():
        rows[name] |= environment.facts
        for _, what in filter(lambda key: key[0] == name, programs):
            rows[name][what] = round(statistics.median(times[name, what]), 4)
        for what in ("import", "first_use"):
            if f"{what}_s" in rows[name]:
                beyond = rows[name][f"{what}_s"] - rows[name]["numpy_s"]
                rows[name][f"{what}_beyond_numpy_ms"] = round(beyond * 1e3, 1)
    return list(rows.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", help="default: all; with --quick only dilim")
    parser.add_argument("--quick", action="store_true", help="fewer starts")
    parser.add_argument("--out", type=Path, help="append the JSON lines to this file")
    options = parser.parse_args()
    names = (options.peers or ("dilim" if options.quick else ",".join(LIBRARIES))).split(",")
    if unknown := set(names) - set(LIBRARIES):
        parser.error(f"unknown peers: {sorted(unknown)}; there are {', '.join(LIBRARIES)}")
    emit = writer(options.out)
    with tempfile.TemporaryDirectory(prefix="dilim-footprint-") as folder:
        for row in measure(names, 5 if options.quick else 15, Path(folder)):
            emit(row)


if __name__ == "__main__":
    main()
