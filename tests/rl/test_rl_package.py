"""The public face of `dilim.rl`."""

import subprocess
import sys

import pytest

import dilim.rl
from dilim.errors import EnvironmentContractError
from dilim.rl import AGENTS, ENVIRONMENTS, PRESETS, default_agent, make_environment, preset


def test_every_public_name_is_there_and_described():
    assert dilim.rl.__all__ == sorted(dilim.rl.__all__, key=lambda n: (not n.isupper(), n))
    for name in dilim.rl.__all__:
        assert getattr(dilim.rl, name).__doc__, name


def test_environments_are_registered_when_the_package_is_imported():
    code = (
        "import sys, dilim; assert 'gymnasium' not in sys.modules; import dilim.rl, gymnasium; "
        "print('dilim/CartPole-v1' in gymnasium.registry, 'pygame' in sys.modules, "
        "'matplotlib' in sys.modules, 'typer' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["True", "False", "False", "False"]


@pytest.mark.parametrize(("environment", "agent"), PRESETS)
def test_presets_name_what_exists_and_can_be_used(environment, agent):
    settings = preset(environment, agent)
    env = make_environment(environment)
    assert environment in ENVIRONMENTS
    made = AGENTS[agent].for_env(env, seed=0, **settings.options)
    for name, value in settings.options.items():
        assert made.options[name] == value
    assert settings.episodes > 0


def test_the_first_preset_of_an_environment_is_its_default():
    for name, _ in PRESETS:
        assert (name, default_agent(name)) in PRESETS
    with pytest.raises(EnvironmentContractError, match="no settings for the environment 'chess'"):
        default_agent("chess")
    assert preset("chess", "reinforce").options == {}
