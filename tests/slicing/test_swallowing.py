"""Whether contexts may swallow errors."""

import contextlib
import io
import threading

import pytest

from dilim.slicing.swallowing import may_swallow


class Silent:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        if error[0] is None:
            return
        print(error)


class Choosing(Silent):
    def __init__(self, answer):
        self.answer = answer

    def __exit__(self, *error):
        return None if error[0] is None else self.answer


class Falling(Choosing):
    def __exit__(self, *error):
        return self.answer or None


class Catching(Silent):
    def __exit__(self, *error):
        return True


class Calling(Silent):
    __exit__ = staticmethod(print)


@contextlib.contextmanager
def plain():
    yield 1


@contextlib.contextmanager
def finishing():
    try:
        with_values = [x for x in "ab"]
        yield with_values
    finally:
        print("over")


@contextlib.contextmanager
def telling():
    try:
        yield
    except ValueError as error:
        print(error)
        raise
    except KeyError as error:
        raise TypeError from error


@contextlib.contextmanager
def catching():
    try:
        yield
    except ValueError:
        pass


@contextlib.contextmanager
def returning():
    try:
        yield
    finally:
        return  # noqa: B012


@contextlib.contextmanager
def nested():
    with catching():
        yield


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (contextlib.nullcontext(), False),
        (contextlib.redirect_stdout(io.StringIO()), False),
        (threading.Lock(), False),
        (Silent(), False),
        (plain(), False),
        (finishing(), False),
        (telling(), False),
        (contextlib.suppress(KeyError), True),
        (contextlib.ExitStack(), True),
        (Choosing(True), True),
        (Falling(True), True),
        (Catching(), True),
        (Calling(), True),
        (catching(), True),
        (returning(), True),
        (nested(), True),
    ],
)
def test_contexts(context, expected):
    assert may_swallow(context) is expected
