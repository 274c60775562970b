import json
import re

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

from dilim.rl.agents.base import Agent
from dilim.rl.envs.cart_pole import CartPole
from dilim.rl.envs.table import ENVIRONMENTS, Entry
from dilim.rl.runs import Run

SMALL = ("--episodes", "6", "--evaluate-every", "3", "--until", "none", "--hidden-sizes", "4")
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def trained(dilim):
    """The output of a short training, whose run is cartpole-1."""
    result = dilim("train", "cartpole", *SMALL)
    assert result.exit_code == 0, result.output
    return result.stdout


def metrics(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: line[key] for key in line if key != "seconds"} for line in lines]


def state(path):
    arrays, header = Agent.load(path).state()
    return {name: array.tolist() for name, array in arrays.items()}, header


# --- training -------------------------------------------------------------------------------


def test_training_says_what_it_does_where_and_what_comes_next(trained):
    lines = trained.splitlines()
    assert lines[0] == "Training reinforce on cartpole, seed 0, up to 6 episodes."
    assert lines[1] == "The run is runs/cartpole-1. Ctrl-C saves and stops."
    assert lines[2].startswith("episode 3 of 6  return ")
    assert lines[3].startswith("episode 6 of 6  return ")
    assert lines[4].startswith("Done: 6 of 6 episodes, best evaluation ")
    assert lines[5] == "The curve is runs/cartpole-1/curve.png"
    assert lines[6].split() == ["watch", "it:", "dilim", "play", "cartpole-1"]
    assert lines[7].endswith("dilim evaluate cartpole-1")
    assert lines[8].endswith("dilim resume cartpole-1 --episodes +500")


def test_the_run_folder_has_settings_metrics_curve_and_checkpoints(trained, tmp_path):
    folder = tmp_path / "runs" / "cartpole-1"
    config = json.loads((folder / "config.json").read_text())
    assert config["options"]["hidden_sizes"] == [4]
    assert (config["seed"], config["episodes"], config["until"]) == (0, 6, None)
    lines = metrics(folder)
    assert [line["episode"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert [line["evaluation"] is None for line in lines] == [True, True, False] * 2
    assert lines[-1]["steps"] == sum(line["length"] for line in lines)
    assert lines[-1]["average"] == pytest.approx(np.mean([line["return"] for line in lines]))
    assert (folder / "curve.png").read_bytes().startswith(PNG)
    names = sorted(path.name for path in (folder / "checkpoints").iterdir())
    assert names == ["best.safetensors", "episode-000003.safetensors", "episode-000006.safetensors"]


def test_the_best_checkpoint_is_that_with_the_highest_evaluation(dilim, tmp_path):
    dilim("train", "cartpole", *SMALL[:2], *SMALL[4:], "--evaluate-every", "1", "--seed", "2")
    run = Run.open(tmp_path / "runs" / "cartpole-1")
    evaluations = [line["evaluation"] for line in run.metrics()]
    assert len(set(evaluations)) > 2
    assert run.best()[0].episodes == run.summary().best[0]
    assert run.best()[0].last_evaluation == max(evaluations)


def test_the_same_seed_gives_the_same_run_and_another_does_not(dilim, trained, tmp_path):
    dilim("train", "cartpole", *SMALL, "--name", "twin")
    dilim("train", "cartpole", *SMALL, "--name", "other", "--seed", "1")
    runs = tmp_path / "runs"
    assert metrics(runs / "twin") == metrics(runs / "cartpole-1")
    assert metrics(runs / "other") != metrics(runs / "cartpole-1")
    last = "checkpoints/episode-000006.safetensors"
    assert state(runs / "twin" / last) == state(runs / "cartpole-1" / last)


def test_training_stops_at_the_goal_and_says_so(dilim):
    result = dilim("train", "cartpole", "--episodes", "9", "--evaluate-every", "3", "--until", "5")
    assert "up to 9 episodes or an evaluation of 5." in result.stdout
    assert "Reached the goal of 5: evaluation " in result.stdout
    assert " after 3 episodes, " in result.stdout
    assert "resume" not in result.stdout


def test_a_goal_that_was_missed_is_said_too(dilim):
    result = dilim("train", "cartpole", *SMALL[:4], "--until", "499")
    assert "Did not reach the goal of 499: 6 of 6 episodes, best evaluation " in result.stdout
    assert "dilim resume cartpole-1 --episodes +500" in result.stdout


def test_settings_of_the_agent(dilim, tmp_path):
    options = ("--learning-rate", "0.1", "--gamma", "0.5", "--hidden-sizes", "3,5")
    more = ("--option", "batch_episodes=2", "--option", "baseline=batch")
    assert dilim("train", "cartpole", "--episodes", "2", *options, *more).exit_code == 0
    stored = json.loads((tmp_path / "runs" / "cartpole-1" / "config.json").read_text())["options"]
    assert stored["learning_rate"] == 0.1
    assert stored["gamma"] == 0.5
    assert stored["hidden_sizes"] == [3, 5]
    assert stored["batch_episodes"] == 2
    assert stored["baseline"] == "batch"


def test_actions_that_are_numbers(dilim, tmp_path):
    small = ("--hidden-sizes", "8", "--option", "batch_size=16", "--until", "none")
    result = dilim("train", "pendulum", "--agent", "sac", "--episodes", "2", *small)
    assert result.stdout.startswith("Training sac on pendulum, seed 0, up to 2 episodes.")
    assert dilim("resume", "pendulum-1", "--episodes", "+1").exit_code == 0
    assert dilim("evaluate", "pendulum-1", "--episodes", "2").exit_code == 0
    assert "return -" in dilim("play", "pendulum-1", "--episodes", "1").stdout
    result = dilim("train", "Pendulum-v1", "--episodes", "1", *small)  # nothing was tuned for it
    assert result.stdout.startswith("Training sac on Pendulum-v1")


def test_names_of_environments_are_not_particular(dilim):
    assert dilim("train", "Cart-Pole", "--episodes", "1").exit_code == 0


def test_runs_are_numbered(dilim, trained):
    assert "runs/cartpole-2" in dilim("train", "cartpole", "--episodes", "1").stdout


def test_an_agent_of_another_run_can_be_the_beginning(dilim, trained, tmp_path):
    options = ("--episodes", "1", "--learning-rate", "0", "--name", "child", "--seed", "9")
    assert dilim("train", "cartpole", "--from", "cartpole-1", *options).exit_code == 0
    runs = tmp_path / "runs"
    parent, _ = state(runs / "cartpole-1" / "checkpoints" / "best.safetensors")
    last = runs / "child" / "checkpoints" / "episode-000001.safetensors"
    child, _ = state(last)
    weights = [name for name in parent if name.startswith("network.")]
    assert weights
    assert all(child[name] == parent[name] for name in weights)
    assert Agent.load(last).steps <= 500


def test_a_run_killed_early_remembers_whose_networks_it_began_with(dilim, trained, tmp_path):
    dilim("train", "cartpole", "--from", "cartpole-1", *SMALL, "--name", "child")
    folder = tmp_path / "runs" / "child"
    before = metrics(folder)
    for path in (folder / "checkpoints").iterdir():
        if path.name != "episode-000000.safetensors":
            path.unlink()
    assert (
        "after episode 0, step 0, from runs/child/checkpoints/" in dilim("resume", "child").stdout
    )
    assert metrics(folder) == before


def test_another_folder_shows_up_in_the_commands(dilim):
    result = dilim("train", "cartpole", "--episodes", "1", "--runs-dir", "my runs")
    assert "dilim play 'my runs/cartpole-1'" in result.stdout


def test_commands_are_shown_as_they_can_be_typed(dilim, tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "dilim").touch(0o755)
    monkeypatch.setattr("sys.argv", ["bin/dilim"])
    assert " bin/dilim play cartpole-1" in dilim("train", "cartpole", "--episodes", "1").stdout
    monkeypatch.setenv("PATH", str(folder))
    assert " dilim play cartpole-2" in dilim("train", "cartpole", "--episodes", "1").stdout


# --- resuming -------------------------------------------------------------------------------


def test_resuming_equals_never_having_stopped(dilim, trained, tmp_path):
    result = dilim("resume", "cartpole-1", "--episodes", "+4")
    assert result.exit_code == 0
    first = result.stdout.splitlines()[0]
    assert first.startswith("Run cartpole-1 goes on after episode 6, step ")
    assert first.endswith("from runs/cartpole-1/checkpoints/episode-000006.safetensors")
    dilim("train", "cartpole", *SMALL, "--episodes", "10", "--name", "whole")
    runs = tmp_path / "runs"
    assert metrics(runs / "cartpole-1") == metrics(runs / "whole")
    last = "checkpoints/episode-000010.safetensors"
    assert state(runs / "cartpole-1" / last) == state(runs / "whole" / last)


def test_resuming_from_an_older_checkpoint_replays_the_rest(dilim, trained, tmp_path):
    folder = tmp_path / "runs" / "cartpole-1"
    before = metrics(folder)
    damaged = folder / "checkpoints" / "episode-000006.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"episode": 7, "ret')
    result = dilim("resume")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("Passed over: ")
    assert "episode-000006.safetensors is cut short" in lines[0]
    assert lines[1].startswith("Run cartpole-1 goes on after episode 3, ")
    assert metrics(folder) == before


def test_a_run_killed_before_its_first_checkpoint_begins_again(dilim, trained, tmp_path):
    folder = tmp_path / "runs" / "cartpole-2"
    dilim("train", "cartpole", *SMALL, "--evaluate-every", "50")
    before = metrics(folder)
    for path in (folder / "checkpoints").iterdir():
        path.unlink()
    result = dilim("resume", "cartpole-2")
    assert "from its beginning: there is no checkpoint yet" in result.stdout
    assert metrics(folder) == before


def test_a_finished_run_says_so_and_how_to_go_on(mistake, trained):
    first, *ways = mistake("resume", "cartpole-1", lines=3)
    assert "the run 'cartpole-1' has reached its limit of 6 episodes (6 of 6 episodes" in first
    assert ways[0].endswith("dilim resume cartpole-1 --episodes +500")
    assert ways[1].endswith("dilim train cartpole --from cartpole-1")


def test_a_run_at_its_goal_says_so_and_how_to_go_on(dilim, mistake):
    dilim("train", "cartpole", "--episodes", "9", "--evaluate-every", "3", "--until", "5")
    first, *ways = mistake("resume", lines=3)
    assert "has reached its goal of 5 (evaluation" in first
    assert ways[0].endswith("dilim resume cartpole-1 --until none --episodes +500")
    assert dilim("resume", "--until", "none", "--episodes", "4").exit_code == 0


def test_a_name_that_exists_is_not_overwritten(mistake, trained, tmp_path):
    before = metrics(tmp_path / "runs" / "cartpole-1")
    lines = mistake("train", "cartpole", "--name", "cartpole-1", lines=3)
    assert "the run 'cartpole-1' exists (6 of 6 episodes" in lines[0]
    assert lines[1].endswith("dilim resume cartpole-1 --episodes +500")
    assert lines[2].endswith("dilim train cartpole --from cartpole-1")
    assert metrics(tmp_path / "runs" / "cartpole-1") == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--episodes", "many"], "--episodes: expected such as 2000 or +500, got 'many'"),
        (["--episodes", "6"], "the run has 6 episodes already; to add some write +6"),
        (["--episodes", "+0"], "--episodes: expected at least +1 more, got '+0'"),
        (["--until", "high"], "--until: expected a mean return, such as 475, or none; got 'high'"),
    ],
)
def test_resuming_with_bad_options(mistake, trained, options, message):
    assert message in mistake("resume", "cartpole-1", *options)


@pytest.mark.filterwarnings("default")
def test_an_environment_of_gymnasium_resumes_at_an_episode_exactly(dilim, tmp_path):
    options = ("--evaluate-every", "3", "--hidden-sizes", "4")
    dilim("train", "CartPole-v1", "--episodes", "3", *options, "--name", "parts")
    result = dilim("resume", "parts", "--episodes", "5")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    dilim("train", "CartPole-v1", "--episodes", "5", *options, "--name", "whole")
    assert metrics(tmp_path / "runs" / "parts") == metrics(tmp_path / "runs" / "whole")


class Broken(CartPole):
    """Gives a NaN at step 5 of the third episode."""

    episode = 0

    def reset(self, **options):
        self.episode += 1
        return super().reset(**options)

    def step(self, action):
        observation, *rest = super().step(action)
        if (self.episode, self.steps) == (3, 5):
            observation[2] = np.nan
        return observation, *rest


def test_a_nan_stops_the_run_and_the_last_checkpoint_stays(dilim, tmp_path, monkeypatch):
    monkeypatch.setitem(ENVIRONMENTS, "broken", Entry(Broken, "dilim/Broken-v0"))
    monkeypatch.setattr("dilim.rl.session._CHECKPOINT_S", 0.0)
    result = dilim("train", "broken", "--hidden-sizes", "4")
    assert result.exit_code == 2
    assert re.fullmatch(r"dilim: .*episode 3, step 5.*: observation\[2\] is nan.*\n", result.stderr)
    run = Run.open(tmp_path / "runs" / "broken-1")
    assert run.latest()[0].episodes == len(run.metrics()) == 2


def unmet(**options):
    raise gymnasium.error.DependencyNotInstalled("Box2D is not installed,\nrun pip")


def test_a_network_that_diverges_says_so_and_what_to_try(dilim, tmp_path):
    options = ("--learning-rate", "1e300", "--evaluate-every", "50", "--hidden-sizes", "4")
    result = dilim("train", "cartpole", *options)
    assert result.exit_code == 2
    assert "training diverged in episode 2: the network holds NaN or infinity" in result.stderr
    assert "resume" not in result.output
    assert result.stderr.rstrip().endswith("with a smaller learning rate than 1e+300")


def test_numbers_of_options_may_be_short(dilim, tmp_path):
    assert dilim("train", "cartpole", *SMALL, "--option", "gamma=.9").exit_code == 0
    assert Run.open(tmp_path / "runs" / "cartpole-1").config.options["gamma"] == 0.9


def test_a_name_with_a_slash_makes_no_folders(dilim, tmp_path):
    assert dilim("train", "dilim/CartPole-v1", *SMALL).exit_code == 0
    assert (tmp_path / "runs" / "dilim-CartPole-v1-1" / "config.json").is_file()


# --- mistakes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cartpol"], "unknown environment 'cartpol'; did you mean 'cartpole'?"),
        (["Blackjack-v9"], "unknown environment 'Blackjack-v9'; did you mean 'Blackjack-v1'?"),
        (["chess"], "unknown environment 'chess'; known are: acrobot, bandit, "),
        (["Pendulum-v1", "--agent", "dqn"], "DQN: expected a Discrete set of actions, received a"),
        (["cartpole", "--agent", "sac"], "SAC: expected a Box of actions, that is action_low and"),
        (["cartpole", "--agent", "reinforse"], "did you mean 'reinforce'?"),
        (["cartpole", "--option", "batch=3"], "did you mean 'batch_episodes'?"),
        (["cartpole", "--option", "gamma"], "expected such as batch_episodes=4, got 'gamma'"),
        (["cartpole", "--option", "hidden_sizes=3"], "--option hidden_sizes: expected a list of"),
        (["cartpole", "--option", "gamma=x"], "--option gamma: expected a number, got 'x'"),
        (["cartpole", "--option", "batch_episodes=.5"], "batch_episodes: expected an integer"),
        (["cartpole", "--option", "gamma=.9", "--gamma", ".8"], "gamma is given twice: 0.8 and .9"),
        (["cartpole", "--hidden-sizes", "99999999999"], "hidden_sizes [99999999999]"),
        (["cartpole", "--hidden-sizes", "999999999999999999"], "hidden_sizes"),
        (["cartpole", "--seed", str(2**64)], "invalid value for '--seed'"),
        (["cartpole", "--name", ""], "expected one name, got ''"),
        (["cartpole", "--runs-dir", ""], "expected a folder, got ''"),
        (["Unmet-v0"], "the environment 'Unmet-v0' cannot be made: Box2D is not installed"),
        (["cartpole", "--gamma", "3"], "gamma"),
        (["cartpole", "--learning-rate", "-1"], "expected learning_rate >= 0, received -1.0"),
        (["cartpole", "--hidden-sizes", "3,x"], "expected such as 32 or 64,64, got '3,x'"),
        (["cartpole", "--until", "nan"], "expected a mean return, such as 475, or none"),
        (["cartpole", "--episodes", "0"], "invalid value for '--episodes'"),
        (["cartpole", "--seed", "x"], "invalid value for '--seed'"),
        (["cartpole", "--name", "a/b"], "expected one name, got 'a/b'"),
        (["cartpole", "--name", ".."], "expected one name, got '..'"),
        (["cartpole", "--from", "none"], "there is no run 'none' in runs/; none was made yet"),
        ([], "missing argument"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_folder(
    mistake, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.setitem(gymnasium.registry, "Unmet-v0", EnvSpec("Unmet-v0", entry_point=unmet))
    assert message in mistake("train", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(mistake, tmp_path):
    (tmp_path / "file").touch()
    line = mistake("train", "cartpole", "--runs-dir", "file/below")
    assert "cannot make the folder file/below/cartpole-1: Not a directory" in line
    assert line.endswith("choose another with --runs-dir")


def test_something_else_under_the_name_is_left_alone(mistake, tmp_path):
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    line = mistake("train", "cartpole", "--name", "mine")
    assert "runs/mine exists and is no run; choose another --name" in line
