import re
import shutil

import pytest


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder in which cartpole-1 was trained, and nothing else."""
    from typer.testing import CliRunner

    from dilim.cli.app import application

    folder = tmp_path_factory.mktemp("made")
    options = ["--episodes", "6", "--evaluate-every", "3", "--until", "450"]
    result = CliRunner().invoke(
        application, ["train", "cartpole", *options, "--runs-dir", str(folder / "runs")]
    )
    assert result.exit_code == 0
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    shutil.copytree(made / "runs", tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def damage_checkpoints(folder):
    for path in (folder / "runs" / "cartpole-1" / "checkpoints").iterdir():
        path.write_bytes(b"nonsense")


# --- evaluate -------------------------------------------------------------------------------


def test_evaluate_gives_mean_and_spread_over_new_episodes(dilim, here):
    result = dilim("evaluate", "cartpole-1", "--episodes", "5")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert re.fullmatch(
        r"reinforce of run cartpole-1 after [36] episodes, [\d,]+ steps, "
        r"from runs/cartpole-1/checkpoints/best\.safetensors",
        lines[0],
    )
    assert re.fullmatch(r"mean return [\d.]+ over 5 new episodes", lines[1])
    low, median, high = (
        float(x) for x in re.findall(r"(?:lowest|median|highest) ([\d.]+)", lines[2])
    )
    assert low <= median <= high
    assert lines[2].endswith("seed 1000000")
    assert re.fullmatch(r"goal 450: (not )?reached", lines[3])


def test_evaluate_repeats_itself_and_depends_on_the_seed(dilim, here):
    texts = [
        dilim("evaluate", "--episodes", "5", "--seed", seed).stdout for seed in ("1", "1", "2")
    ]
    assert texts[0] == texts[1]
    assert texts[0].splitlines()[2] != texts[2].splitlines()[2]


def test_the_latest_checkpoint_can_be_asked_for(dilim, here):
    text = dilim("evaluate", "--episodes", "1", "--latest").stdout
    assert "from runs/cartpole-1/checkpoints/episode-000006.safetensors" in text


# --- play -----------------------------------------------------------------------------------


def test_play_without_a_terminal_shows_how_each_episode_ended(dilim, here):
    result = dilim("play", "cartpole-1", "--episodes", "2")
    assert result.exit_code == 0
    assert result.stdout.count("[o_o]") == 2
    assert re.search(
        r"^episode 1: return (\d+) in \1 steps; the rules ended it$", result.stdout, re.M
    )
    assert re.search(r"^episode 2: return ", result.stdout, re.M)


def test_play_in_a_terminal_draws_every_step(dilim, here, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = dilim("play", "cartpole-1", "--fps", "1000")
    steps = int(re.search(r"in (\d+) steps", result.stdout)[1])
    assert result.stdout.count("[o_o]") >= steps
    assert "Measure it on many episodes: dilim evaluate cartpole-1" in re.sub(
        r"\x1b\[[\d;?]*\w", "", result.stdout
    )


def test_play_refuses_what_cannot_be_drawn(dilim, mistake, here):
    dilim("train", "CartPole-v1", "--episodes", "1", "--name", "gym")
    lines = dilim("play", "gym")
    assert lines.exit_code == 2
    assert lines.stderr == "dilim: the environment 'CartPole-v1' cannot be drawn as text\n"


# --- runs and plot --------------------------------------------------------------------------


def test_runs_lists_what_there_is(dilim, here):
    (here / "runs" / "broken").mkdir()
    (here / "runs" / "broken" / "config.json").write_text("{")
    lines = dilim("runs").stdout.splitlines()
    assert lines[0].split() == [
        *("name", "environment", "agent", "seed", "episodes", "average", "best", "time", "is")
    ]
    run = next(line for line in lines if line.startswith("cartpole-1"))
    assert re.fullmatch(
        r"cartpole-1 +cartpole +reinforce +0 +6 +\d+\.\d +\d+\.\d +0:0\d +(limit|goal) reached", run
    )
    assert "broken: run: runs/broken/config.json is damaged" in " ".join(" ".join(lines).split())


def test_runs_of_an_empty_folder_says_how_to_begin(dilim, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert dilim("runs").stdout == "No run in runs/ yet. Begin with: dilim train cartpole\n"


def test_plot_draws_the_curve_again(dilim, here):
    picture = here / "runs" / "cartpole-1" / "curve.png"
    picture.unlink()
    result = dilim("plot")
    assert result.exit_code == 0
    assert "The curve is runs/cartpole-1/curve.png" in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_plot_without_matplotlib_says_how_to_install_it(mistake, here, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    assert mistake("plot") == "dilim: no picture without Matplotlib: pip install 'dilim[lab]'"


# --- mistakes -------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["play", "evaluate", "plot", "resume"])
def test_an_unknown_run_suggests_the_nearest(mistake, here, verb):
    assert (
        mistake(verb, "cartpole-2") == "dilim: unknown run 'cartpole-2'; did you mean 'cartpole-1'?"
    )


@pytest.mark.parametrize("verb", ["play", "evaluate", "plot", "resume"])
def test_no_run_at_all_says_how_to_begin(mistake, tmp_path, monkeypatch, verb):
    monkeypatch.chdir(tmp_path)
    assert mistake(verb) == "dilim: there is no run in runs/ yet; begin with: dilim train cartpole"


@pytest.mark.parametrize("verb", ["play", "evaluate", "resume"])
def test_broken_checkpoints_are_one_line(mistake, here, verb):
    damage_checkpoints(here)
    line = mistake(verb, "cartpole-1")
    assert "run cartpole-1: no checkpoint can be read: " in line
    assert "episode-000006.safetensors" in line


@pytest.mark.parametrize("verb", ["play", "evaluate", "plot", "resume"])
def test_a_damaged_configuration_is_one_line(mistake, here, verb):
    (here / "runs" / "cartpole-1" / "config.json").write_text("{")
    assert "runs/cartpole-1/config.json is damaged" in mistake(verb, "cartpole-1")


def test_a_run_is_also_found_by_its_path(dilim, here):
    assert dilim("plot", "runs/cartpole-1").exit_code == 0


def test_play_before_the_first_checkpoint_says_what_to_do(mistake, here):
    shutil.rmtree(here / "runs" / "cartpole-1" / "checkpoints")
    (here / "runs" / "cartpole-1" / "checkpoints").mkdir()
    line = mistake("play", "cartpole-1")
    assert line.endswith("has no checkpoint yet; go on with: dilim resume cartpole-1")


@pytest.mark.parametrize("verb", ["play", "evaluate"])
def test_a_seed_that_is_too_large_is_one_line(mistake, here, verb):
    assert "invalid value for '--seed'" in mistake(verb, "--seed", str(2**64))


def test_the_help_says_that_the_seed_of_an_evaluation_is_fixed(dilim):
    assert "1,000,000" in dilim("evaluate", "--help").stdout


def test_a_file_in_place_of_the_folder_of_runs(mistake, here):
    (here / "file").touch()
    assert "file is a file, not a folder" in mistake("runs", "--runs-dir", "file")


@pytest.mark.parametrize("verb", ["play", "resume"])
def test_a_checkpoint_of_another_agent_is_refused(mistake, here, verb):
    path = here / "runs" / "cartpole-1" / "config.json"
    path.write_text(path.read_text().replace('"reinforce"', '"another"'))
    line = mistake(verb, "cartpole-1")
    assert "config.json names the agent 'another', the checkpoint holds a REINFORCE" in line
