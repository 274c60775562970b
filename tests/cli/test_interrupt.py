"""Real processes in a real terminal, interrupted and killed."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from dilim.rl.agents.base import Agent

pty = pytest.importorskip("pty")

COMMAND = "from dilim.cli import main; main()"
SLOW_ENVIRONMENT = """
import pathlib, time
import gymnasium
from dilim.rl.envs.cart_pole import CartPole

class Slow(CartPole):
    def step(self, action):
        if pathlib.Path("hang").exists():
            print("waiting", flush=True)
            time.sleep(60)
        return super().step(action)

gymnasium.register("Slow-v0", entry_point=Slow)
from dilim.cli import main
main()
"""
WAIT_S = 30.0


def _begin(slave):
    """A shell that runs the tests behind its back may have Ctrl-C ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.login_tty(slave)


class Terminal:
    """A process in a terminal of its own."""

    def __init__(self, *arguments, code=COMMAND):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            env={**os.environ, "COLUMNS": "100", "TERM": "xterm"},
            preexec_fn=lambda: _begin(slave),
            pass_fds=[slave],
        )
        os.close(slave)
        self.text = ""

    def wait_for(self, pattern):
        deadline = time.monotonic() + WAIT_S
        while not re.search(pattern, self.text):
            assert time.monotonic() < deadline, self.text
            assert self._read(), self.text

    def ctrl_c(self):
        os.write(self.master, b"\x03")

    def end(self):
        while self._read():
            pass
        os.close(self.master)
        return self.process.wait(WAIT_S)

    def _read(self):
        try:
            data = os.read(self.master, 4096)
        except OSError:  # how Linux says that the other side was closed
            return False
        self.text += data.decode(errors="replace")
        return bool(data)


@pytest.fixture
def terminal():
    """Starts a process in a terminal; ends it whatever happens."""
    started = []

    def start(*arguments, **options):
        started.append(Terminal(*arguments, **options))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def metrics(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: line[key] for key in line if key != "seconds"} for line in lines]


def latest_state(folder):
    path = max((folder / "checkpoints").glob("episode-*"))
    arrays, header = Agent.load(path).state()
    return {name: array.tobytes() for name, array in arrays.items()}, header


def assert_equals_an_undisturbed_run(dilim, folder, options):
    """After resuming to some episodes more than there are."""
    count = len(metrics(folder)) + 3
    assert dilim("resume", folder.name, "--episodes", str(count)).exit_code == 0
    dilim("train", "cartpole", *options, "--episodes", str(count), "--name", "whole")
    whole = folder.parent / "whole"
    assert len(metrics(whole)) == count
    assert metrics(folder) == metrics(whole)
    assert latest_state(folder) == latest_state(whole)


OPTIONS = ("--until", "none", "--evaluate-every", "4", "--hidden-sizes", "4")


def test_ctrl_c_saves_says_how_to_go_on_and_going_on_is_exact(dilim, terminal, tmp_path):
    shell = terminal("train", "cartpole", *OPTIONS, "--episodes", "100000")
    shell.wait_for(r"episode \d+ of 100,000")
    shell.ctrl_c()
    assert shell.end() == 130
    assert "Stopped by Ctrl-C and saved: " in shell.text
    assert "dilim resume cartpole-1" in shell.text
    assert "Traceback" not in shell.text
    assert shell.text.rindex("\x1b[?25h") > shell.text.rindex("\x1b[?25l")  # cursor is back
    folder = tmp_path / "runs" / "cartpole-1"
    assert (folder / "curve.png").exists()
    assert Agent.load(max((folder / "checkpoints").glob("episode-*"))).episodes == len(
        metrics(folder)
    )
    assert_equals_an_undisturbed_run(dilim, folder, OPTIONS)


def test_a_second_ctrl_c_quits_at_once_and_the_last_checkpoint_is_whole(terminal, tmp_path):
    shell = terminal("train", "Slow-v0", *OPTIONS, "--name", "slow", code=SLOW_ENVIRONMENT)
    shell.wait_for("evaluation")
    (tmp_path / "hang").touch()
    shell.wait_for("waiting")
    folder = tmp_path / "runs" / "slow" / "checkpoints"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    shell.ctrl_c()
    time.sleep(0.3)  # two that come together would be one
    assert shell.process.poll() is None
    for _ in range(2):  # one that comes while the first is being dealt with is lost
        started = time.monotonic()
        shell.ctrl_c()
        while shell.process.poll() is None and time.monotonic() - started < 4:
            time.sleep(0.02)
        if shell.process.poll() is not None:
            break
    assert shell.end() == 130
    assert time.monotonic() - started < 5
    assert "Stopped at once" in shell.text
    assert "dilim resume slow" in shell.text
    assert "Traceback" not in shell.text
    # nothing was saved in the middle of a step
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert Agent.load(max(folder.glob("episode-*"))).episodes > 0


def test_a_killed_run_goes_on_from_its_last_checkpoint_exactly(dilim, tmp_path):
    command = [sys.executable, "-c", COMMAND, "train", "cartpole", *OPTIONS]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    folder = tmp_path / "runs" / "cartpole-1"
    deadline = time.monotonic() + WAIT_S
    while not (folder / "checkpoints" / "episode-000008.safetensors").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    assert process.wait(WAIT_S) == -signal.SIGKILL
    assert_equals_an_undisturbed_run(dilim, folder, OPTIONS)


def test_ctrl_c_while_playing_ends_without_a_traceback(dilim, terminal):
    dilim("train", "cartpole", "--episodes", "1")
    shell = terminal("play", "--fps", "2")
    shell.wait_for("step 2")
    shell.ctrl_c()
    assert shell.end() == 130
    assert "Traceback" not in shell.text
