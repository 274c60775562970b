"""Runs texts of programs and writes down all that can be seen of a run."""

import contextlib
import io
import itertools
import linecache
import traceback

PRELUDE = '''
def log(x):
    print("log", x)
    return x

class Loud:
    """Prints which of its special methods are called."""
    def __init__(self, name, truth=True, value=0):
        self.name, self.truth, self.value = name, truth, value
    def __repr__(self):
        return f"Loud({self.name})"
    def __bool__(self):
        print("bool", self.name)
        return bool(self.truth)
    def __lt__(self, other):
        print("lt", self.name, other)
        return Loud(f"({self.name}<{other})", self.value < getattr(other, "value", other))
    def __add__(self, other):
        print("add", self.name, other)
        return Loud(f"({self.name}+{other})", True, self.value + getattr(other, "value", other))
    def __iadd__(self, other):
        print("iadd", self.name, other)
        self.value += 1
        return self
    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        print("get", self.name, name)
        return Loud(f"{self.name}.{name}", True, self.value)
    def __getitem__(self, key):
        print("item", self.name, key)
        return Loud(f"{self.name}[{key}]", True, self.value)
    def __setitem__(self, key, value):
        print("set", self.name, key, value)
    def __delitem__(self, key):
        print("del", self.name, key)
    def __call__(self, *args, **keywords):
        print("call", self.name, args, keywords)
        return Loud(f"{self.name}()", True, self.value)
    def __iter__(self):
        print("iter", self.name)
        for k in range(3):
            print("next", self.name)
            yield Loud(f"{self.name}:{k}", k != 1, k)
    def __format__(self, spec):
        print("format", self.name, spec)
        return f"<{self.name}{spec}>"
    def __enter__(self):
        print("enter", self.name)
        return self.name + "!"
    def __exit__(self, kind, error, traceback):
        print("exit", self.name, kind and kind.__name__, str(error), traceback is None)
        return self.truth and kind is not KeyError

def fails(x=0):
    print("fails")
    raise ValueError(f"no {x}")
'''

_numbers = itertools.count()


def load(text):
    """A module of a text, with the prelude, whose source is at hand."""
    filename = f"<program {next(_numbers)}>"
    source = PRELUDE + text
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace = {"__name__": "program"}
    exec(compile(source, filename, "exec", dont_inherit=True), namespace)
    return namespace


def seen(run, args, namespace, show=repr):
    """What a run gives: the result or error and where it arose, what it prints, what it changes."""
    out = io.StringIO()
    filename = namespace["log"].__code__.co_filename
    with contextlib.redirect_stdout(out):
        try:
            end = ("result", show(run(*args)))
        except Exception as error:
            end = ("error", *described(error, filename, namespace))
    kept = {
        name: repr(value)
        for name, value in namespace.items()
        if isinstance(value, int | str | list | dict)
        and not name.startswith("__")
        and name not in ("CALLS", "FRAMES_DIFFER")
    }
    text = out.getvalue().replace(filename, "<program>")
    return tuple(str(part).replace(filename, "<program>") for part in (end, repr(args), kept)), text


def described(error, filename, namespace):
    """An error's type, message, and where it went through the program, causes included."""
    parts = []
    while error is not None:
        places = [
            (frame.name, frame.lineno, frame.end_lineno, frame.colno, frame.end_colno)
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == filename
        ]
        if "<listcomp>" in namespace.get("FRAMES_DIFFER", ""):
            # Before Python 3.12 a list comprehension has a frame of its own.
            places = [place[1] for place in places[-1:]]
        parts.append((type(error).__name__, str(error), places))
        error = error.__cause__ or error.__context__
    return parts
