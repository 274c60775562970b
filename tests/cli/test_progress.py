import io
import signal

import pytest
from rich.console import Console

from dilim.cli.interrupt import Interrupts
from dilim.cli.progress import Progress, Speed, progress_line

EPISODE = {"episode": 125, "return": 213.0, "average": 87.41, "evaluation": None, "steps": 5000}


def line(last=EPISODE, *, width=120, evaluation=None, speed=5210.4, unfinished=(0, 0.0)):
    return progress_line(
        last,
        limit=1500,
        evaluation=evaluation,
        unfinished=unfinished,
        speed=speed,
        seconds=75.9,
        width=width,
    )


def test_the_line_has_episode_return_average_and_speed():
    assert line(evaluation=201.52) == (
        "episode 125 of 1,500  return 213.0  average 87.4  5,210 steps/s  evaluation 201.5  1:15"
    )


def test_before_the_first_episode_ends_the_line_says_so_instead_of_nan():
    text = line(None, unfinished=(9, 9.0), speed=0.95)
    assert text == "no finished episode yet  step 9  reward so far 9  0.9 steps/s  1:15"


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


def test_without_a_terminal_there_is_one_line_per_evaluation():
    file = io.StringIO()
    with Progress(Console(file=file, width=120), limit=1500) as progress:
        for episode in range(1, 51):
            evaluation = 30.0 if episode % 25 == 0 else None
            progress.on_episode({**EPISODE, "episode": episode, "evaluation": evaluation})
    lines = file.getvalue().splitlines()
    assert [text.split()[1] for text in lines] == ["25", "50"]
    assert all("evaluation 30.0" in text for text in lines)


def test_without_a_terminal_a_slow_environment_still_shows_life(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("dilim.cli.progress.time.monotonic", lambda: now[0])
    file = io.StringIO()
    with Progress(Console(file=file, width=120), limit=1500) as progress:
        for step in range(1, 31):
            now[0] = float(step)
            progress.on_step(step, float(step), step)
    lines = file.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("no finished episode yet  step 11  reward so far 11")


def test_in_a_terminal_the_line_stays_in_place():
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=True)
    with Progress(console, limit=1500) as progress:
        progress.on_episode(EPISODE)
        progress.stop_requested("stopping")
    text = file.getvalue()
    assert "no finished episode yet" in text
    assert "episode 125 of 1,500" in text
    assert "stopping" in text
    assert text.endswith("\x1b[?25h")  # the cursor is shown again


def test_the_first_interrupt_asks_and_the_second_raises():
    told = []
    before = signal.getsignal(signal.SIGINT)
    with Interrupts(lambda: told.append(1)) as interrupts:
        assert not interrupts.requested
        signal.raise_signal(signal.SIGINT)
        assert interrupts.requested
        assert told == [1]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
