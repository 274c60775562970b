"""`dilim train` with several environments at once, and with several seeds."""

import json

import pytest

from dilim.rl.agents.base import Agent
from dilim.rl.runs import Run

SMALL = ("--episodes", "4", "--evaluate-every", "2", "--until", "none", "--hidden-sizes", "4")


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def returns(folder):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["return"] for line in lines]


def test_seeds_are_trained_side_by_side_each_as_alone(dilim, tmp_path):
    result = dilim("train", "cartpole", *SMALL, "--seeds", "3", "--seed", "5", "--name", "a")
    assert result.exit_code == 0, result.output
    assert "Training 3 agents, reinforce on cartpole, seeds 5 to 7." in result.stdout
    assert "3 of 3: seed" in result.stdout
    assert "Last evaluations: median" in result.stdout
    folders = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert folders == ["a-seed5", "a-seed6", "a-seed7", "a.png"]
    alone = dilim("train", "cartpole", *SMALL, "--seed", "6", "--name", "b")
    assert alone.exit_code == 0, alone.output
    assert returns(tmp_path / "runs" / "a-seed6") == returns(tmp_path / "runs" / "b")
    assert returns(tmp_path / "runs" / "a-seed5") != returns(tmp_path / "runs" / "b")


def test_names_that_exist_are_not_overwritten(dilim, mistake, tmp_path):
    (tmp_path / "runs" / "a-seed1").mkdir(parents=True)
    text = mistake("train", "cartpole", *SMALL, "--seeds", "2", "--name", "a")
    assert "a-seed1 exists; choose another --name" in text
    assert not (tmp_path / "runs" / "a-seed0").exists()


def test_several_environments_at_once_are_resumed_as_they_were(dilim, tmp_path):
    ppo = ("--agent", "ppo", "--num-envs", "3", "--option", "rollout_length=32")
    once = dilim("train", "cartpole", *SMALL, *ppo, "--episodes", "8", "--name", "once")
    assert once.exit_code == 0, once.output
    assert Run.open(tmp_path / "runs" / "once").config.num_envs == 3
    assert dilim("train", "cartpole", *SMALL, *ppo, "--name", "twice").exit_code == 0
    assert dilim("resume", "twice", "--episodes", "8").exit_code == 0
    assert returns(tmp_path / "runs" / "once") == returns(tmp_path / "runs" / "twice")
    first, second = (
        Agent.load(Run.open(tmp_path / "runs" / name).checkpoints()[0]).network.state_dict()
        for name in ("once", "twice")
    )
    assert all((first[name] == second[name]).all() for name in first)


def test_an_agent_that_cannot_use_several_says_so(mistake):
    text = mistake("train", "cartpole", *SMALL, "--num-envs", "2")
    assert "REINFORCE: num_envs=2" in text


def test_a_run_of_before_has_one_environment(dilim, tmp_path):
    assert dilim("train", "cartpole", *SMALL).exit_code == 0
    path = tmp_path / "runs" / "cartpole-1" / "config.json"
    stored = json.loads(path.read_text())
    del stored["num_envs"]
    path.write_text(json.dumps(stored))
    assert Run.open(path.parent).config.num_envs == 1


def test_several_runs_are_drawn_in_one_picture(dilim, mistake, tmp_path):
    for seed in ("0", "1"):
        assert (
            dilim("train", "cartpole", *SMALL, "--seed", seed, "--name", f"a{seed}").exit_code == 0
        )
    other = dilim("train", "cartpole", *SMALL, "--name", "b", "--learning-rate", "0.1")
    assert other.exit_code == 0
    result = dilim("plot", "a0", "a1", "b", "--out", "three.png")
    assert result.exit_code == 0, result.output
    assert result.stdout == "The curves are three.png\n"
    assert (tmp_path / "three.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert "The curves are runs/curves.png" in dilim("plot", "a0", "a1").stdout
    assert "--out is for several runs" in mistake("plot", "a0", "--out", "x.png")
