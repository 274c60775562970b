"""The examples as modules, and where they stand."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def linear():
    return load(ROOT / "examples" / "linear_classifier.py")


@pytest.fixture(scope="session")
def recommender():
    return load(ROOT / "examples" / "recommender.py")


@pytest.fixture(scope="session")
def make_pollution():
    return load(ROOT / "examples" / "data" / "make_pollution.py")
