"""The linear classifier beside NumPy in float64, and beside itself compiled."""

import inspect
import re
import runpy
import sys

import numpy as np
import pytest

import dilim

EPOCHS = 3_001
PRINTED = re.compile(r"epoch: (\d+), log loss: (\d+\.\d{6})")


@pytest.fixture(scope="module")
def survey(linear):
    return linear.read_survey(linear.SURVEY)


def start(seed=0):
    return dilim.Generator(seed).normal((3, 1))


def reference(inputs, labels, weights, epochs):
    """The weights, and the log loss after each hundredth pass, by the textbook in float64."""
    x, y, w = (tensor.numpy().astype(np.float64) for tensor in (inputs, labels, weights))
    losses = []
    for epoch in range(epochs):
        w = w + 0.0005 * x.T @ (y - 1.0 / (1.0 + np.exp(-x @ w)))
        if epoch % 100 == 0:
            h = 1.0 / (1.0 + np.exp(-x @ w))
            losses.append(-(y * np.log(h) + (1.0 - y) * np.log(1.0 - h)).mean())
    return w, losses


def test_training_follows_numpy(linear, survey, capsys):
    weights = linear.train(*survey, start(), EPOCHS)
    expected, losses = reference(*survey, start(), EPOCHS)
    np.testing.assert_allclose(weights.numpy(), expected, rtol=1e-5)
    printed = PRINTED.findall(capsys.readouterr().out)
    assert [int(epoch) for epoch, _ in printed] == list(range(0, EPOCHS, 100))
    np.testing.assert_allclose([float(loss) for _, loss in printed], losses, atol=2e-6)


@pytest.mark.parametrize("seed", range(5))
def test_it_ends_where_such_surveys_end(linear, survey, seed):
    weights = linear.train(*survey, start(seed), EPOCHS)
    w0, w1, w2 = weights.flatten().tolist()
    assert w0 == pytest.approx(6.25, rel=0.03)
    assert w1 == pytest.approx(0.647, rel=0.03)
    assert w2 == pytest.approx(-0.886, rel=0.07)
    assert linear.log_loss(*survey, weights).item() == pytest.approx(0.1353, abs=0.003)
    inputs, labels = survey
    right = (inputs @ weights > 0.0) == (labels > 0.5)
    assert int(right.astype(dilim.int64).sum()) in (96, 97)


def test_the_loss_stays_finite_where_the_sigmoid_saturates(linear, survey):
    weights = dilim.tensor([[1000.0], [300.0], [-200.0]])
    inputs, labels = (tensor.numpy().astype(np.float64) for tensor in survey)
    scores = inputs @ weights.numpy()
    expected = (np.logaddexp(0.0, scores) - labels * scores).mean()
    assert linear.log_loss(*survey, weights).item() == pytest.approx(expected, rel=1e-5)


def test_predict_gives_class_and_probability(linear):
    classifier = linear.Classifier(dilim.tensor([[6.0], [0.5], [-1.0]]))
    label, probability = classifier.predict(2.0, 6.5)
    assert label is linear.Label.RED
    assert probability == pytest.approx(1.0 / (1.0 + np.exp(-0.5)), rel=1e-6)
    label, probability = classifier.predict(2, 8)
    assert label is linear.Label.GREEN
    assert probability == pytest.approx(1.0 / (1.0 + np.exp(1.0)), rel=1e-6)
    assert classifier.predict(0.0, -1e30) == (linear.Label.RED, 1.0)
    assert classifier.predict(0.0, 1e30) == (linear.Label.GREEN, 0.0)


def test_the_picture_shows_both_classes_and_the_line(linear, survey, tmp_path, capsys):
    image = pytest.importorskip("matplotlib.image")
    path = tmp_path / "line.png"
    linear.plot(path, *survey, dilim.tensor([[6.3], [0.65], [-0.9]]))
    assert capsys.readouterr().out == f"picture: {path}\n"
    red, green, blue, _ = np.moveaxis(image.imread(path), -1, 0)
    # 53 squares, and smaller circles that overlap less than they cover.
    assert np.sum((red == 1.0) & (green == 0.0) & (blue == 0.0)) > 53 * 200
    assert np.sum((red == 0.0) & (green > 0.49) & (green < 0.51) & (blue == 0.0)) > 47 * 80
    middle = image.imread(path)[:, image.imread(path).shape[1] // 2]
    assert np.any(np.all(middle[100:-100, :3] == 0.0, axis=-1)), "the line crosses the middle"


def test_without_matplotlib_it_says_what_is_missing(linear, survey, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    linear.plot(tmp_path / "line.png", *survey, start())
    assert "pip install 'dilim[lab]'" in capsys.readouterr().out
    assert not (tmp_path / "line.png").exists()


def test_the_command_line(linear, tmp_path, monkeypatch, capsys):
    picture = tmp_path / "line.png"
    monkeypatch.setattr(sys, "argv", ["linear_classifier.py", "--eager", "--plot", str(picture)])
    runpy.run_path(linear.__file__, run_name="__main__")
    printed = capsys.readouterr().out
    assert "100 places, 53 of them polluted" in printed
    assert "97% on the right side" in printed
    assert "is red: probability of red 0.978" in printed
    assert "is green: probability of red 0.010" in printed
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_tutorial_shows_the_code_that_runs(linear):
    root = linear.SURVEY.parent.parent.parent
    page = (root / "docs" / "slicing-tutorial.md").read_text(encoding="utf-8")
    for function in (linear.log_loss, linear.train):
        assert inspect.getsource(function) in page


@pytest.mark.parametrize("epochs", [0, 1, 250, EPOCHS])
def test_compiled_equals_eager(linear, survey, capsys, epochs):
    eager = linear.train(*survey, start(), epochs)
    printed = capsys.readouterr().out
    compiled = dilim.compile(linear.train)
    for _ in range(2):
        weights = compiled(*survey, start(), epochs)
        assert weights.numpy().tobytes() == eager.numpy().tobytes()
        assert capsys.readouterr().out == printed
