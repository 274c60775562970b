import io
import time
from types import SimpleNamespace

import pytest
from rich.console import Console

from dilim.cli import progress as module
from dilim.cli.progress import Progress, Speed, clock, progress_line

EPISODE = {"episode": 125, "return": 213.0, "average": 87.41, "evaluation": None, "steps": 5000}


def line(last=EPISODE, *, width=120, evaluation=None, speed=5210.4, steps=0):
    return progress_line(
        last,
        limit=1500,
        evaluation=evaluation,
        steps=steps,
        speed=speed,
        seconds=75.9,
        width=width,
    )


def test_the_line_has_episode_return_average_and_speed():
    assert line(evaluation=201.52) == (
        "episode 125 of 1,500  return 213.0  average 87.4  5,210 steps/s  evaluation 201.5  1:15"
    )


def test_before_the_first_episode_ends_the_line_says_so_instead_of_nan():
    text = line(None, steps=9, speed=0.95)
    assert text == "no finished episode yet  step 9  0.9 steps/s  1:15"


def test_an_average_that_is_no_number_is_shown_as_none():
    assert "average none" in line({**EPISODE, "average": None})


@pytest.mark.parametrize("width", [40, 64, 80, 84, 90])
def test_a_narrow_terminal_loses_the_least_important_parts(width):
    text = line(evaluation=201.52, width=width)
    assert "5,210 steps/s" in text
    assert len(text) <= max(width, 63)


def test_speed_looks_back_three_seconds():
    times = iter([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    speed = Speed(clock=lambda: next(times))
    assert [speed.update(steps) for steps in (0, 100, 200, 300, 400, 1400)] == [
        pytest.approx(value) for value in (0, 100, 100, 100, 100, 1300 / 4)
    ]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (75.9, "1:15"), (3599, "59:59"), (7205, "2:00:05")]
)
def test_the_clock_shows_hours_only_when_there_are_any(seconds, text):
    assert clock(seconds) == text


def shown(console, agent=None, **options):
    return Progress(console, agent or SimpleNamespace(steps=9), limit=1500, **options)


def test_without_a_terminal_there_is_one_line_per_evaluation():
    file = io.StringIO()
    with shown(Console(file=file, width=120)) as progress:
        for episode in range(1, 51):
            evaluation = 30.0 if episode % 25 == 0 else None
            progress.on_episode({**EPISODE, "episode": episode, "evaluation": evaluation})
    lines = file.getvalue().splitlines()
    assert [text.split()[1] for text in lines] == ["25", "50"]
    assert all("evaluation 30.0" in text for text in lines)


def test_without_a_terminal_a_slow_environment_still_shows_life(monkeypatch):
    monkeypatch.setattr(module, "_QUIET_S", 0.02)
    monkeypatch.setattr(module, "_TICK_S", 0.01)
    file = io.StringIO()
    with shown(Console(file=file, width=120)):
        deadline = time.monotonic() + 5
        while not file.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert file.getvalue().startswith("no finished episode yet  step 9  0.0 steps/s")


def test_the_clock_goes_on_from_earlier_sessions():
    file = io.StringIO()
    with shown(Console(file=file, width=120), seconds=600.0) as progress:
        progress.on_episode({**EPISODE, "evaluation": 1.0})
    assert file.getvalue().rstrip().endswith("10:00")


def test_in_a_terminal_the_line_stays_in_place():
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=True)
    with shown(console) as progress:
        progress.on_episode(EPISODE)
    text = file.getvalue()
    assert "no finished episode yet" in text
    assert "episode 125 of 1,500" in text
    assert text.endswith("\x1b[?25h")  # the cursor is shown again
