import pytest


def test_value_gradients_and_steps(dilim):
    result = dilim("grad", "s = x * y; s * s", "x=2", "y=3")
    assert result.exit_code == 0
    assert result.stdout == (
        "value = 36\n"
        "d value / d x = 36\n"
        "d value / d y = 24\n"
        "\n"
        "The backward pass, from the result to the names:\n"
        "step  value           gradient * local derivative  added to  now\n"
        "1     result = s * s  1 * 6 = 6                    s         6\n"
        "2     result = s * s  1 * 6 = 6                    s         12\n"
        "3     s = x * y       12 * 3 = 36                  x         36\n"
        "4     s = x * y       12 * 2 = 24                  y         24\n"
    )


def test_steps_can_be_left_out(dilim):
    assert dilim("grad", "x * x", "x=3", "--no-steps").stdout == "value = 9\nd value / d x = 6\n"


def test_an_expression_may_begin_with_a_minus(dilim):
    assert dilim("grad", "-x * x", "x=3", "--no-steps").stdout == "value = -9\nd value / d x = -6\n"


def test_a_result_that_is_a_given_name_has_no_steps(dilim):
    assert dilim("grad", "x", "x=3").stdout == "value = 3\nd value / d x = 1\n"


def test_a_bad_expression_gets_a_caret(mistake):
    first, second, third = mistake("grad", "x * z", "x=2", lines=3)
    assert first == "dilim: expression: unknown name 'z', known are x"
    assert second[third.index("^")] == "z"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x", "x"], "expected a name and its number, such as x=2, got 'x'"),
        (["x", "2=x"], "expected a name and its number, such as x=2, got '2=x'"),
        (["x", "x=two"], "'x' must be a number, such as x=2, got 'two'"),
        (["x", "x=1", "x=2"], "'x' is given twice"),
        (["x", "x=1", "--stpes"], "no such option: --stpes; see: dilim grad --help"),
        (["--stpes", "x"], "no such option: --stpes; see: dilim grad --help"),
    ],
)
def test_bad_values(mistake, arguments, message):
    assert mistake("grad", *arguments) == f"dilim: {message}"


def test_missing_expression(mistake):
    assert "missing argument" in mistake("grad")
