"""What an import loads, and what the public face shows."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import dilim

ROOT = Path(__file__).parent.parent.parent
HEAVY = ("gymnasium", "llvmlite", "matplotlib", "typer", "rich", "safetensors", "torch", "jax")


def loaded_by(statement):
    code = (
        f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


def test_the_package_loads_no_heavy_library():
    modules = loaded_by("import dilim; dilim.tensor([1.0]).sum(); dilim.Generator(0)")
    assert "dilim.tensors.tensor" in modules
    assert not {name.split(".")[0] for name in modules} & set(HEAVY)


def test_the_bare_import_does_not_even_load_numpy():
    assert "numpy" not in loaded_by("import dilim")


def test_the_scalar_engine_loads_only_the_standard_library():
    modules = loaded_by("import dilim.scalar")
    assert "dilim.scalar.value" in modules
    tops = {name.split(".")[0] for name in modules} - {"dilim"}
    assert not tops - set(sys.stdlib_module_names)


def test_networks_need_no_environment_library():
    modules = loaded_by("import dilim; dilim.nn; dilim.optim")
    assert not {name.split(".")[0] for name in modules} & {"gymnasium", "matplotlib", "typer"}


def test_every_public_name_resolves():
    for name in dilim.__all__:
        assert getattr(dilim, name) is not None or name == "newaxis", name
    assert set(dilim.__all__) == set(dir(dilim))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'tensr'"):
        dilim.tensr  # noqa: B018


def test_the_stub_for_type_checkers_is_up_to_date():
    path = ROOT / "scripts" / "make_stub.py"
    spec = importlib.util.spec_from_file_location("make_stub", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (ROOT / "src" / "dilim" / "__init__.pyi").read_text(encoding="utf-8")
    assert written == module.stub_text(), "run: python scripts/make_stub.py"


def test_public_functions_have_docstrings():
    bare = [
        name
        for name in dilim.__all__
        if callable(getattr(dilim, name)) and not (getattr(dilim, name).__doc__ or "").strip()
    ]
    assert not bare
