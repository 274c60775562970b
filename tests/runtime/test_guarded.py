"""Native code touches nothing beyond its buffers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")


def guarded(*arguments):
    paths = [str(HERE.parent), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, str(HERE / "guarded.py"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@LINUX
def test_random_programs_stay_inside_their_memory():
    done = guarded("60")
    assert done.returncode == 0, done.stderr[-3000:]


@LINUX
def test_reading_past_the_end_would_crash():
    assert guarded("40", "shift").returncode < 0
