"""Every exception that dilim raises on purpose.

::

    DilimError
    ├── ShapeError      (ValueError)    shapes do not fit the operation
    │   └── AxisError   (IndexError)    the tensor has no such axis
    ├── DtypeError      (TypeError)     dtypes do not fit the operation
    ├── GradientError   (RuntimeError)  a derivative was asked for that cannot be right
    ├── NonFiniteError  (ValueError)    a NaN or infinity where none may be
    ├── DeviceError     (RuntimeError)  operands on different or unknown devices
    ├── GraphError      (ValueError)    a graph is not well formed, or asked for what it lacks
    ├── UnsupportedError (NotImplementedError)  a back end cannot run an operation
    ├── CheckError      (AssertionError)  a compiled function did not do what the plain one does
    ├── StateError      (ValueError)    saved state does not fit what it is loaded into
    ├── FileFormatError (ValueError)    a saved file is short, damaged, foreign or newer
    ├── EnvironmentContractError (ValueError)  an environment breaks its contract
    └── ExpressionError (ValueError)    text that cannot be evaluated (`dilim.scalar`)

    PerformanceWarning  (UserWarning)   compiled code that is slower than it needs to be
    TrainingWarning     (UserWarning)   training that will not teach what it could

Each class is also the built-in exception that a NumPy or PyTorch user would expect. A message
names the operation, what was expected, what was received and, where known, the cure.
"""


class DilimError(Exception):
    """Base of all exceptions raised by dilim."""


class ShapeError(DilimError, ValueError):
    """Shapes, axes or sizes do not fit the operation."""


class AxisError(ShapeError, IndexError):
    """The tensor has no such axis."""


class DtypeError(DilimError, TypeError):
    """Dtypes do not fit the operation."""


class GradientError(DilimError, RuntimeError):
    """A derivative was asked for that cannot be computed rightly."""


class NonFiniteError(DilimError, ValueError):
    """A NaN or an infinity stands where none may be."""


class DeviceError(DilimError, RuntimeError):
    """A device is unknown, or operands live on different ones."""


class StateError(DilimError, ValueError):
    """Saved state does not fit the model or optimiser that it is loaded into."""


class GraphError(DilimError, ValueError):
    """A graph is not well formed, or a value of it was used where only numbers will do."""


class UnsupportedError(DilimError, NotImplementedError):
    """A back end has no way to run an operation."""


class CheckError(DilimError, AssertionError):
    """A function compiled with ``check=True`` did not do what it does as plain Python."""


class FileFormatError(DilimError, ValueError):
    """A saved file is short, damaged, foreign or written by a newer version."""


class EnvironmentContractError(DilimError, ValueError):
    """An environment does not do what the Gymnasium API asks of it."""


class ExpressionError(DilimError, ValueError):
    """A text expression cannot be evaluated."""


class PerformanceWarning(UserWarning):
    """Something that `dilim.compile` was given is right, but slower than it needs to be."""


class TrainingWarning(UserWarning):
    """Settings of an agent are allowed, but training with them will teach it little or nothing."""
