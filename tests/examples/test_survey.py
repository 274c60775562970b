"""The survey of pollution: the file, how it is made, and how it is read."""

import codecs

import pytest

ROWS = "0.5\t3.25\t1\n-1.0\t11.0\t0\n"
INPUTS, LABELS = [[1.0, 0.5, 3.25], [1.0, -1.0, 11.0]], [[1.0], [0.0]]


@pytest.fixture
def survey(tmp_path):
    def write(text, encoding="utf-8"):
        path = tmp_path / "survey.tsv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        return path

    return write


def test_the_file_holds_a_hundred_places(linear):
    content = linear.SURVEY.read_bytes()
    assert content.count(b"\r\n") == content.count(b"\n") == 100
    assert content.count(b"\t") == 200
    inputs, labels = linear.read_survey(linear.SURVEY)
    assert inputs.shape == (100, 3)
    assert labels.shape == (100, 1)
    assert inputs[:, 0].tolist() == [1.0] * 100
    assert labels.sum().item() == 53


def test_the_script_writes_the_file(linear, make_pollution):
    assert make_pollution.survey() == linear.SURVEY.read_bytes()


@pytest.mark.parametrize(
    "content",
    [
        ROWS.encode(),
        ROWS.replace("\n", "\r\n").encode(),
        codecs.BOM_UTF8 + ROWS.replace("\n", "\r\n").encode(),
        ROWS.rstrip().encode(),
        ROWS.encode() + b"\n",
        ROWS.encode() + b"\r\n \t\r\n\r\n",
        ROWS.replace("1\n", "1.0\n").encode(),
    ],
    ids=["lf", "crlf", "mark", "no end", "blank line", "blank lines", "labels with a point"],
)
def test_every_kind_of_line_end_reads_the_same(linear, survey, content):
    inputs, labels = linear.read_survey(survey(content))
    assert inputs.tolist() == INPUTS
    assert labels.tolist() == LABELS


@pytest.mark.parametrize(
    "row",
    [
        "1.0\t2.0",
        "1.0\t2.0\t1\t0",
        "1.0 2.0 1",
        "1.0\ttwo\t1",
        "1.0\t\t1",
        "1.0\t2.0\t2",
        "1.0\t2.0\tnan",
        "inf\t2.0\t1",
        "1.0\tnan\t1",
        "",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_bad_row_is_named_by_its_line(linear, survey, row, end):
    path = survey((ROWS + row + "\n" + ROWS).replace("\n", end))
    with pytest.raises(ValueError, match="expected x1, x2 and a label 0 or 1") as caught:
        linear.read_survey(path)
    assert str(caught.value).startswith(f"{path}, line 3: ")
    assert str(caught.value).endswith(f"got {row!r}")


def test_bytes_that_are_no_text_are_a_bad_row(linear, survey):
    with pytest.raises(ValueError, match="line 3: expected x1"):
        linear.read_survey(survey(ROWS.encode() + b"\xff\xfe\t1\t1\n"))


@pytest.mark.parametrize("content", [b"", b"\r\n\r\n", codecs.BOM_UTF8])
def test_an_empty_file_is_an_error(linear, survey, content):
    with pytest.raises(ValueError, match="expected rows of x1, x2 and label, got an empty file"):
        linear.read_survey(survey(content))
