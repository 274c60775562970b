"""What the tutorial on slicing prints is what the programs print."""

import re
import runpy
from pathlib import Path

import dilim

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "slicing-tutorial.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def known(text):
    """A text without times, and without what the cache had."""
    return re.sub(r"compiled in [^\n]*", "compiled", text).strip()


def test_the_programs_and_the_report_of_the_classifier(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    module = runpy.run_path("examples/linear_classifier.py")
    inputs, labels = module["read_survey"](module["SURVEY"])
    fast = dilim.compile(module["train"], compile_after=0)
    fast(inputs, labels, dilim.zeros((3, 1)), 3_001)
    assert len(capsys.readouterr().out.splitlines()) == 31
    assert known(str(fast.slices())) == known(SHOWN[0])
    assert known(str(fast.explain())) == known(SHOWN[1])


def test_the_transfers_of_the_recommender(monkeypatch):
    monkeypatch.chdir(ROOT)
    made = []
    compile_it = dilim.compile
    monkeypatch.setattr(dilim, "compile", lambda f: made.append(compile_it(f)) or made[0])
    runpy.run_path("examples/recommender.py")["main"]()
    parts = str(made[0].explain()).split("\n\n")
    assert next(x for x in parts if x.startswith("Handed over")) == SHOWN[2].strip()
