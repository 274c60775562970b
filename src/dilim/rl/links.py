"""Which remembered step follows which: returns of several steps, and observations kept once."""

from __future__ import annotations

from typing import Any, Final

from dilim.dtypes import DType, int64
from dilim.dtypes import bool_ as boolean
from dilim.tensors.creation import arange, asarray, full, zeros
from dilim.tensors.elementwise import maximum, where
from dilim.tensors.statistics import cumulative_sum
from dilim.tensors.tensor import Tensor

NOTHING: Final = -1
_FIRST_CUT: Final = -2
_STATE: Final = ("newest", "seen", "is_waiting", "is_open", "cuts", "births")
_LEAST_ROOM: Final = 256


class Links:
    """For each step the place of the one after it in the same episode.

    A step is followed by the next one that is added for its environment, if that begins with what
    was seen after it, bit for bit, and the episode did not end. So an episode that is left in the
    middle, or an environment that is reset, links nothing.

    What was seen after a step is found where the next one begins. Only for steps that were cut it
    is kept on its own, in a table that grows when it has to (`make_room`).

    Args:
        capacity: C, steps that are remembered.
        observation_size: F.
        dtype: of observations.
        keeps_cuts: whether `following` will be asked for.

    Attributes:
        next: (C,), the place of the next step; -1: there is none; -2 - k: what was seen after it is
            number k of those that were kept on their own.
        is_full: whether `make_room` has to be called before the next step is added.
    """

    def __init__(
        self, capacity: int, observation_size: int, dtype: DType, keeps_cuts: bool
    ) -> None:
        self.capacity, self.keeps_cuts = capacity, keeps_cuts
        self.next = full((capacity,), NOTHING, dtype=int64)
        self.cut_count = 0
        self.is_full = False
        self.newest: Tensor
        self.seen = zeros((1, observation_size), dtype=dtype)
        room = min(_LEAST_ROOM, capacity) if keeps_cuts else 0
        self.cuts = zeros((room + 1, observation_size), dtype=dtype)  # the last takes the rest
        self.births = full((room + 1,), -capacity - 1, dtype=int64)
        self._begin(1)

    def _begin(self, count: int) -> None:
        """The next steps are the first of so many environments."""
        self.newest = arange(count)
        self.seen = zeros((count, self.seen.shape[1]), dtype=self.seen.dtype)
        self.is_waiting = zeros((count,), dtype=boolean)
        self.is_open = zeros((count,), dtype=boolean)

    def prepare_for(self, count: int, added: int) -> None:
        """From now on so many environments are stepped at once; ``added`` steps came before."""
        if count != self.newest.shape[0]:
            self.cut()
            self.settle(self.newest, self.seen, added)
            self._begin(count)
            self.make_room(added)

    def cut(self) -> None:
        """The running episodes do not go on."""
        self.is_open = zeros(self.is_open.shape, dtype=boolean)

    def settle(self, places: Tensor, observations: Tensor, added: int) -> None:
        """Link the newest steps to those that come now, at these places.

        Args:
            places: (N,).
            observations: what these begin with, (N, F), in the dtype of `seen`.
            added: how many steps came before.
        """
        goes_on = self.is_open & (observations == self.seen).all(axis=1)
        otherwise = full(places.shape, NOTHING, dtype=int64)
        if self.keeps_cuts:
            is_cut = self.is_waiting & ~goes_on
            counts = cumulative_sum(is_cut.astype(int64))
            numbers = counts + (self.cut_count - 1)
            room = self.cuts.shape[0] - 1
            rows = where(is_cut, numbers % room, room)
            self.cuts[rows] = self.seen
            self.births[rows] = arange(places.shape[0]) + (added - places.shape[0])
            self.cut_count += int(is_cut.astype(int64).sum())
            otherwise = where(is_cut, _FIRST_CUT - numbers, NOTHING)
        self.next[self.newest] = where(goes_on, places, otherwise)

    def add(
        self,
        places: Tensor,
        following: Tensor,
        terminated: Tensor,
        truncated: Tensor,
        added: int,
    ) -> None:
        """N steps now lie at these places; see `settle`, which comes before.

        Args:
            places: (N,).
            following: what was seen after them, in the dtype of `seen`.
            terminated: (N,), bool.
            truncated: (N,), bool.
            added: how many steps there were, these included.
        """
        self.next[places] = full(places.shape, NOTHING, dtype=int64)
        self.newest, self.seen = places, following
        self.is_waiting = ~terminated
        self.is_open = ~(terminated | truncated)
        if self.keeps_cuts:
            room = self.cuts.shape[0] - 1
            rows = (arange(places.shape[0]) + self.cut_count) % room
            self.is_full = bool((self.births[rows] + self.capacity >= added).any())

    def make_room(self, added: int) -> None:
        """Let the table of what was seen at cuts grow, if that is due; ``added`` as in `add`."""
        count = self.newest.shape[0]
        room = self.cuts.shape[0] - 1
        rows = (arange(count) + self.cut_count) % max(room, 1)
        is_due = count > room or bool((self.births[rows] + self.capacity >= added).any())
        if not self.keeps_cuts or not is_due:
            return
        wanted = 4 * room + count
        numbers = arange(max(self.cut_count - room, 0), self.cut_count)
        cuts = zeros((wanted + 1, self.cuts.shape[1]), dtype=self.cuts.dtype)
        births = full((wanted + 1,), -self.capacity - 1, dtype=int64)
        cuts[numbers % wanted] = self.cuts[numbers % room]
        births[numbers % wanted] = self.births[numbers % room]
        self.cuts, self.births, self.is_full = cuts, births, False

    def following(self, observations: Tensor, places: Tensor) -> Tensor:
        """What was seen after steps; anything finite after an end by the rules.

        Args:
            observations: what all steps begin with, (C, F).
            places: (B,).

        Returns:
            (B, F).
        """
        link = self.next[places]
        room = self.cuts.shape[0] - 1
        is_cut = (link <= _FIRST_CUT)[:, None]
        of_cuts = self.cuts[maximum(_FIRST_CUT - link, 0) % room]
        begun = observations[maximum(link, 0)]
        # the places of the newest are neighbours, also round the end
        lane = (places - self.newest[0]) % self.capacity
        count = self.newest.shape[0]
        of_newest = self.seen[where(lane < count, lane, 0)]
        return where((link >= 0)[:, None], begun, where(is_cut, of_cuts, of_newest))

    def state_dict(self, length: int) -> dict[str, Any]:
        """The links of the first so many places, and all that those of later steps depend on."""
        tensors = {name: getattr(self, name).clone() for name in _STATE}
        plain = {"cut_count": self.cut_count, "is_full": self.is_full}
        return {"next": self.next[:length].clone(), **tensors, **plain}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.next[: len(state["next"])] = asarray(state["next"])
        for name in _STATE:
            setattr(self, name, asarray(state[name], copy=True))
        self.cut_count, self.is_full = int(state["cut_count"]), bool(state["is_full"])


def returns_of_steps(
    rewards: Tensor, following: Tensor, places: Tensor, steps: int, gamma: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns of n steps, or of fewer where an episode ends, is cut or goes on later.

    ::

        r_0 + gamma r_1 + ... + gamma^(m - 1) r_(m - 1),   m <= n

    Args:
        rewards: of all steps, float32 (C,).
        following: the place of the step after each, negative where there is none, int64 (C,).
        places: of the first steps, (B,).
        steps: n, at least 1.
        gamma: discount per step.

    Returns:
        The returns (B,), the places of their last steps (B,), and gamma^m (B,), with which what
        follows these counts.

    Source: Sutton and Barto, Reinforcement Learning, 2018, equation (7.1).
    """
    total, last = rewards[places], places
    discounts = full(places.shape, gamma)
    for _ in range(steps - 1):
        link = following[last]
        goes_on = link >= 0
        last = where(goes_on, link, last)
        total = total + where(goes_on, discounts * rewards[last], 0.0)
        discounts = where(goes_on, discounts * gamma, discounts)
    return total, last, discounts
