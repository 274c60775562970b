"""Who looks on while a function is walked, see `Walker`."""

from __future__ import annotations

from typing import Any, TypeAlias

from dilim.slicing.fragments import Left
from dilim.slicing.program import For, Step, While

Frame: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[int | str, ...]


class Returned(BaseException):
    """Raised by an observer: the function has returned.

    Attributes:
        value: what it returns.
    """

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


class Observer:
    """Looks on, and may take over a loop. This one wants to see nothing.

    Attributes:
        wants_steps: whether `after_step` is to be called.
    """

    wants_steps: bool = False

    def watches(self, loop: While | For) -> bool:
        """Whether `before_loop` is to be called for a loop; asked once."""
        return False

    def before_loop(self, loop: While | For, path: Path, frame: Frame) -> bool:
        """Called at the head of each turn of a watched loop.

        Args:
            loop: the statement.
            path: where it stands (see `Walker.resume`).
            frame: the variables; of a ``for`` its iterator, with the items that are left, as well.

        Returns:
            True if the observer has run the rest of the loop, its ``else`` included, and has
            brought the frame up to date.

        Raises:
            Returned: if that has returned from the function.
        """
        return False

    def before_rest(self, path: Path, frame: Frame) -> Left | None:
        """Called where the rest of the function begins, and where it comes out of a statement.

        Args:
            path: the statement that comes next; see `Walker.resume`.
            frame: the variables.

        Returns:
            How the function ended, if the observer has run all that is left of it.
        """
        return None

    def after_step(self, step: Step, value: Any) -> None:
        """Called with the value of each step that is a call."""
