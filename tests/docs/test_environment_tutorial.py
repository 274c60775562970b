"""The tutorial on environments shows the example as it is, and what it says of it is true."""

import re
import runpy
from pathlib import Path

import pytest

import dilim

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "environment-tutorial.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "lander.py"
BLOCKS = re.findall(r"^```py\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_shows_the_example():
    source = EXAMPLE.read_text(encoding="utf-8")
    assert len(BLOCKS) == 9
    for block in BLOCKS:
        assert block in source


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(EXAMPLE))


def test_the_environment_is_sound(example):
    assert dilim.rl.check_env(example["Lander"]()) == []


def test_training_is_one_program_and_lands(example):
    env = example["Lander"]()
    fast = dilim.compile(example["train"], compile_after=0)
    generator = dilim.Generator(0)
    few = fast(env, generator, 2).tolist()
    assert few == example["train"](env, dilim.Generator(0), 2).tolist()
    told = fast.explain()
    assert [x for x in told.transfers if x.in_loop] == []
    assert told.fallbacks == []
    generator.state = dilim.Generator(0).state
    policy = fast(env, generator, 150)
    assert example["mean_return"](env, dilim.zeros((5, 4)), 1) < -9.5
    assert example["mean_return"](env, policy, 1) > 8.0
