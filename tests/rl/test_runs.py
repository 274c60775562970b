import json
import os
from dataclasses import replace

import numpy as np
import pytest

from dilim import __version__
from dilim.errors import FileFormatError, StateError
from dilim.rl.agents.reinforce import REINFORCE
from dilim.rl.plots import curve_png
from dilim.rl.runs import METRICS, Run, RunConfig, find_runs, free_name

CONFIG = RunConfig(
    environment="cartpole",
    agent="reinforce",
    seed=3,
    episodes=100,
    until=475.0,
    evaluate_every=25,
    evaluation_episodes=20,
    options={"learning_rate": 0.01, "hidden_sizes": [16]},
)


@pytest.fixture
def run(tmp_path):
    return Run.create(tmp_path / "runs" / "first", CONFIG)


def line(episode, /, **changes):
    numbers = {"steps": 9 * episode, "length": 9, "return": 9.0, "average": 9.0, "loss": 0.5}
    return {"episode": episode, **numbers, "evaluation": None, "seconds": 0.1 * episode, **changes}


def agent_at(episode):
    agent = REINFORCE(4, [2], 2, seed=0)
    agent.tracker.total_episodes = episode
    return agent


def save(run, episode, **options):
    return run.save_checkpoint(agent_at(episode), **options)


def damage(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def test_a_run_opens_with_the_settings_it_was_made_with(run):
    opened = Run.open(run.folder)
    assert opened.config == CONFIG
    assert opened.name == "first"
    assert opened.metrics() == []
    assert opened.latest() == (None, [])
    assert opened.best() == (None, [])


def test_the_configuration_names_versions_and_machine(run):
    stored = json.loads((run.folder / "config.json").read_text())
    assert stored["seed"] == 3
    assert stored["versions"]["dilim"] == __version__
    assert stored["versions"]["numpy"] == np.__version__
    assert stored["platform"]
    assert stored["created"].endswith("+00:00")


def test_an_existing_run_is_not_touched(run):
    run.append(line(1))
    with pytest.raises(FileExistsError):
        Run.create(run.folder, replace(CONFIG, seed=4))
    assert Run.open(run.folder).config == CONFIG
    assert len(run.metrics()) == 1


def test_settings_can_be_changed_and_keep_the_date(run):
    created = json.loads((run.folder / "config.json").read_text())["created"]
    run.change(episodes=250)
    stored = json.loads((run.folder / "config.json").read_text())
    assert Run.open(run.folder).config.episodes == 250
    assert stored["created"] == created


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', "null"])
def test_a_damaged_configuration_is_named(run, text):
    (run.folder / "config.json").write_text(text)
    with pytest.raises(FileFormatError, match=r"config\.json is damaged"):
        Run.open(run.folder)


def test_a_newer_configuration_says_what_to_do(run):
    (run.folder / "config.json").write_text('{"format": 2}')
    with pytest.raises(FileFormatError, match=r"has format 2.*reads up to 1; upgrade dilim"):
        Run.open(run.folder)


def test_no_run_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        Run.open(tmp_path / "none")


def test_metrics_come_back_line_by_line_with_null_for_nan(run):
    run.append(line(1, average=float("nan"), evaluation=float("inf")))
    run.append(line(2))
    text = (run.folder / "metrics.jsonl").read_text()
    assert text.count("\n") == 2
    assert "NaN" not in text
    assert "Infinity" not in text
    assert run.metrics() == [line(1, average=None), line(2)]


def test_a_line_cut_by_a_kill_is_dropped(run):
    run.append(line(1))
    with (run.folder / "metrics.jsonl").open("a") as file:
        file.write('{"episode": 2, "ret')
    assert [m["episode"] for m in run.metrics()] == [1]
    run.keep_metrics(1)
    run.append(line(2))
    assert [m["episode"] for m in run.metrics()] == [1, 2]


@pytest.mark.parametrize("text", ["nonsense", "[1]", "{}", '{"episode": 2}'])
def test_a_damaged_line_is_named(run, text):
    run.append(line(1))
    with (run.folder / "metrics.jsonl").open("a") as file:
        file.write(f"{text}\n")
    with pytest.raises(FileFormatError, match=r"metrics\.jsonl, line 2 is damaged"):
        run.metrics()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"return": float("nan")}, "return: expected a finite number or null, got NaN"),
        ({"steps": "9"}, 'steps: expected an integer >= 0, got "9"'),
        ({"episode": 1}, "episode 1 comes after 1"),
    ],
)
def test_a_line_with_wrong_numbers_is_named(run, changes, message):
    run.append(line(1))
    with (run.folder / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line(2, **changes)) + "\n")
    with pytest.raises(FileFormatError, match=f"line 2 is damaged: {message}; mend or remove"):
        run.metrics()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("episodes", "a", "an integer >= 1"),
        ("seed", -1, "an integer >= 0"),
        ("until", [], "a finite number or null"),
        ("options", 3, "an object"),
    ],
)
def test_a_setting_of_a_wrong_kind_is_named(run, name, value, expected):
    path = run.folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    with pytest.raises(FileFormatError, match=f"is damaged: {name}: expected {expected}, got"):
        Run.open(run.folder)


@pytest.mark.parametrize("name", METRICS)
def test_a_line_without_one_of_the_metrics_is_named(run, name):
    numbers = line(1)
    del numbers[name]
    run.append(numbers)
    with pytest.raises(FileFormatError, match=f"line 1 is damaged: it has no {name}; mend"):
        run.metrics()


def test_missing_lines_are_found(run):
    for episode in (1, 2, 5):
        run.append(line(episode))
    assert run.missing_metrics(5) == [(3, 4)]
    assert run.missing_metrics(7) == [(3, 4), (6, 7)]


def test_an_empty_run_is_removed_and_another_is_not(run):
    run.append(line(1))
    assert not run.remove_if_empty()
    run.keep_metrics(0)
    assert run.remove_if_empty()
    assert not run.folder.exists()


def test_one_run_is_locked_once_and_may_be_entered_twice(run):
    other = Run.open(run.folder)
    with run.lock, run.lock:
        with pytest.raises(StateError, match=f"first is in use by process {os.getpid()}; wait"):
            other.lock.__enter__()
    with other.lock:
        pass


def test_metrics_after_a_checkpoint_can_be_dropped(run):
    for episode in range(1, 6):
        run.append(line(episode))
    run.keep_metrics(3)
    assert [m["episode"] for m in run.metrics()] == [1, 2, 3]


def test_a_summary_of_nothing_has_no_numbers(run):
    summary = run.summary()
    assert (summary.episodes, summary.steps, summary.seconds) == (0, 0, 0.0)
    assert (summary.average, summary.best, summary.last) == (None, None, None)
    assert not summary.reached


def test_a_summary_knows_the_best_and_the_last_evaluation(run):
    for episode, evaluation in ((1, 480.0), (2, None), (3, 480.0), (4, 474.0), (5, None)):
        run.append(line(episode, evaluation=evaluation))
    summary = run.summary()
    assert (summary.episodes, summary.steps, summary.seconds) == (5, 45, 0.5)
    assert summary.best == (3, 480.0)
    assert summary.last == (4, 474.0)
    assert not summary.reached
    run.append(line(6, evaluation=475.0))
    assert run.summary().reached
    run.change(until=None)
    assert not run.summary().reached


def test_the_last_three_checkpoints_and_the_best_are_kept(run):
    for episode in (25, 50, 75, 100, 125):
        save(run, episode, best=episode == 50)
    assert [path.name for path in run.checkpoints()] == [
        "episode-000125.safetensors",
        "episode-000100.safetensors",
        "episode-000075.safetensors",
    ]
    latest, best = run.latest()[0], run.best()[0]
    assert (latest.episodes, latest.source) == (125, str(run.checkpoints()[0]))
    assert (best.episodes, best.source) == (50, str(run.folder / "checkpoints/best.safetensors"))


def test_checkpoints_are_ordered_by_number_beyond_six_digits(run):
    save(run, 999_999)
    save(run, 1_000_000)
    assert run.latest()[0].episodes == 1_000_000


def test_without_a_best_the_latest_is_the_best(run):
    save(run, 25)
    assert run.best()[0].episodes == 25


def test_broken_checkpoints_are_passed_over_and_named(run):
    for episode in (25, 50, 75):
        save(run, episode)
    newest, second, _ = run.checkpoints()
    damage(newest)
    second.write_bytes(second.read_bytes()[:50])
    agent, broken = run.latest()
    assert agent.episodes == 25
    assert len(broken) == 2
    assert "episode-000075.safetensors is damaged" in broken[0]
    assert "episode-000050.safetensors is cut short" in broken[1]


def test_a_broken_best_falls_back_to_the_latest(run):
    save(run, 25, best=True)
    save(run, 50)
    damage(run.folder / "checkpoints" / "best.safetensors")
    agent, broken = run.best()
    assert agent.episodes == 50
    assert "best.safetensors is damaged" in broken[0]


def test_only_broken_checkpoints_are_an_error(run):
    damage(save(run, 25))
    with pytest.raises(FileFormatError, match=r"no checkpoint can be read: .*000025"):
        run.latest()


def test_the_runs_of_a_folder_are_found_the_last_changed_first(tmp_path, run):
    other = Run.create(run.folder.parent / "second", CONFIG)
    (run.folder.parent / "no-run").mkdir()
    for age, made in ((100, other), (50, run)):
        for name in ("config.json", "metrics.jsonl"):
            stamp = os.stat(made.folder / name).st_mtime - age
            os.utime(made.folder / name, (stamp, stamp))
    assert [path.name for path in find_runs(run.folder.parent)] == ["first", "second"]
    assert find_runs(tmp_path / "nowhere") == []


def test_free_names_count_up(tmp_path):
    assert free_name(tmp_path, "cartpole") == "cartpole-1"
    (tmp_path / "cartpole-1").mkdir()
    assert free_name(tmp_path, "cartpole") == "cartpole-2"


@pytest.mark.parametrize("count", [0, 1, 60])
def test_the_curve_is_a_picture_of_any_number_of_episodes(run, count):
    returns = [float(n) for n in range(count)]
    png = curve_png(
        returns, returns, title="a run", evaluations=[(25, 20.0)][: count // 25], threshold=475.0
    )
    path = run.write_picture(png)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")) == (1280, 800)
