"""What a run was made with and on: the first line of every file of results."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import shlex
from collections.abc import Sequence
from pathlib import Path

from harness import Row


def describe_run(command: Sequence[str], packages: Sequence[str]) -> Row:
    """The row that says where, when and with what a run was made."""
    versions = {}
    for name in packages:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "benchmark": "run",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "command": shlex.join(command),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions,
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    facts = {key.strip(): value.strip() for key, value in facts.items()}
    name = facts.get("model name", platform.machine())
    return f"{name}, family {facts.get('cpu family', '?')}, model {facts.get('model', '?')}"
