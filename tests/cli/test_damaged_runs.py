"""Runs that another process uses, or whose files are gone."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from dilim.rl.agents.base import Agent
from dilim.rl.runs import Run

SMALL = ("--episodes", "6", "--evaluate-every", "3", "--until", "none", "--hidden-sizes", "4")
COMMAND = [sys.executable, "-c", "from dilim.cli import main; main()"]
WAIT_S = 30.0


@pytest.fixture(autouse=True)
def folder(dilim, tmp_path, monkeypatch):
    """The folder of a run of six episodes."""
    monkeypatch.chdir(tmp_path)
    assert dilim("train", "cartpole", *SMALL).exit_code == 0
    return tmp_path / "runs" / "cartpole-1"


def episodes(folder):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["episode"] for line in lines]


def test_a_second_process_is_refused_until_the_first_is_killed(dilim, mistake, tmp_path):
    options = ["--episodes", "100000", "--until", "none", "--name", "long"]
    first = subprocess.Popen([*COMMAND, "train", "cartpole", *options], stdout=subprocess.DEVNULL)
    try:
        long = tmp_path / "runs" / "long"
        deadline = time.monotonic() + WAIT_S
        while not list(long.glob("checkpoints/episode-*")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        line = mistake("resume", "long", "--episodes", "100001")
        assert f"run runs/long is in use by process {first.pid}; wait for it" in line
    finally:
        first.kill()
        assert first.wait(WAIT_S) == -signal.SIGKILL
    count = len(episodes(long)) + 2
    assert dilim("resume", "long", "--episodes", str(count)).exit_code == 0
    assert episodes(long) == list(range(1, count + 1))


def test_metrics_without_the_folder_of_checkpoints_are_left_alone(mistake, folder):
    os.rename(folder / "checkpoints", folder / "elsewhere")
    before = (folder / "metrics.jsonl").read_bytes()
    line = mistake("resume", "cartpole-1", "--episodes", "+3")
    assert "has metrics of 6 episodes but no checkpoint; it cannot be resumed; start anew" in line
    assert line.endswith("or restore runs/cartpole-1/checkpoints")
    assert (folder / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize(("kept", "gap"), [(0, "1..6"), (4, "5..6")])
def test_missing_metrics_are_said_and_the_best_stays(dilim, folder, kept, gap):
    path = folder / "metrics.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:kept]))
    best = folder / "checkpoints" / "best.safetensors"
    agent = Agent.load(best)
    agent.last_evaluation = 1e6  # that nothing can reach
    agent.save(best)
    before = best.read_bytes()
    result = dilim("resume", "cartpole-1", "--episodes", "9")
    assert result.exit_code == 0
    assert f"Note: the metrics have no episodes {gap}; " in result.stdout
    assert episodes(folder) == [*range(1, kept + 1), 7, 8, 9]
    assert best.read_bytes() == before
    assert Run.open(folder).best()[0].last_evaluation == 1e6


@pytest.mark.skipif(os.name == "nt", reason="signals are sent in another way")
@pytest.mark.parametrize("delay_s", [0.1, 0.2, 0.4])
def test_ctrl_c_while_starting_leaves_neither_traceback_nor_empty_folder(tmp_path, delay_s):
    code = "from dilim.cli import main; print('begin', flush=True); main()"
    started = subprocess.Popen(
        [sys.executable, "-c", code, "train", "cartpole", "--runs-dir", "new"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout.readline() == "begin\n"
    time.sleep(delay_s)
    started.send_signal(signal.SIGINT)
    _, complaint = started.communicate(timeout=WAIT_S)
    assert started.returncode == 130
    assert complaint == ""
    for run in (tmp_path / "new").glob("*"):
        assert list((run / "checkpoints").iterdir())
