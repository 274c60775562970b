"""Writes src/dilim/__init__.pyi, so that type checkers see the lazily loaded public names.

Run it after adding a public name: ``python scripts/make_stub.py``. A test compares the result.
"""

from pathlib import Path

import dilim

TARGET = Path(__file__).parent.parent / "src" / "dilim" / "__init__.pyi"


def stub_text() -> str:
    """The text of the stub, made from the table of homes."""
    lines = ["# Written by scripts/make_stub.py from the table in __init__.py."]
    lines += [f"from dilim import {name} as {name}" for name in dilim._MODULES]
    for home, names in sorted(dilim._HOMES.items()):
        lines += [f"from {home} import {name} as {name}" for name in sorted(names.split())]
    for name, (home, attribute) in sorted(dilim._RENAMED.items()):
        lines.append(f"from {home} import {attribute} as {name}")
    lines += ["", "__version__: str", "__array_api_version__: str"]
    lines += [f"{name}: float" for name in ("e", "inf", "nan", "pi")] + ["newaxis: None", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    TARGET.write_text(stub_text(), encoding="utf-8")
