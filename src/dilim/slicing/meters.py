"""Measures the runs of a program, as long as there is something to learn from them."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing.findings import Findings, in_loops
from dilim.slicing.implicit import implicit_points

if TYPE_CHECKING:
    from dilim.slicing.advice import Adviser
    from dilim.slicing.region import Region

LONG: Final = 300
"""Turns of a loop, in one run, from which on a transfer in each of them is looked at."""
TRANSFER: Final = 1e-6
"""What a transfer takes, in seconds: about as much as a few small tensor operations."""
PER_BYTE: Final = 1e-10
"""What each byte adds to that."""
_MOST_RUNS: Final = 100
_RUNS, _FEWEST_RUNS = 16, 3
_ENOUGH: Final = 0.1  # seconds of runs after which the fewest will do
MARGIN: Final = 1.1
"""How much slower the two programs have to be before plain Python is kept."""


class TransferWatch:
    """Warns of a transfer in each turn of a long loop that costs more than the work.

    Args:
        region: whose runs are looked at.
        adviser: warns.
    """

    def __init__(self, region: Region, adviser: Adviser) -> None:
        self._region = region
        self._adviser = adviser
        self._bytes = in_loops(region)
        self._before: dict[str, int] = {}
        self._runs = 0
        if self._bytes:
            # It stands before `Region.run`, and is gone when it knows enough.
            vars(region)["run"] = self._run

    def _run(self, *given: Any) -> Any:
        run = type(self._region).run
        started = time.perf_counter()
        result = run(self._region, *given)
        if not self._goes_on(time.perf_counter() - started):
            vars(self._region).pop("run", None)
        return result

    def _goes_on(self, seconds: float) -> bool:
        """Take note of a run; whether to look at more."""
        served = self._region.served()
        counts = {x: served.get(x, 0) - self._before.get(x, 0) for x in self._bytes}
        self._before = served
        self._runs += 1
        cost = sum(n * (TRANSFER + PER_BYTE * self._bytes[x]) for x, n in counts.items())
        if max(counts.values()) < LONG or 2.0 * cost < seconds:
            return self._runs < _MOST_RUNS
        for point in implicit_points(Findings(self._region)):
            if counts[point.channel] >= LONG:
                self._adviser.transfer(point, counts[point.channel])
                break
        return False


class Trial:
    """Finds out whether the two programs are quicker than the function as it stands.

    Some calls run as two programs, then some as plain Python; both do the same. The least time of
    each decides, for good.

    Attributes:
        native: the least seconds of a call as two programs.
        plain: the least seconds of a call as plain Python.
        wants_plain: whether the next call is to run as plain Python.
        is_over: whether it is decided.
    """

    def __init__(self) -> None:
        self._times: list[float] = []
        self.native = self.plain = math.inf
        self.wants_plain = self.is_over = False

    @property
    def is_lost(self) -> bool:
        """Whether it is decided, for plain Python."""
        return self.is_over and self.wants_plain

    def learn(self, seconds: float) -> None:
        """Take note of a call of the kind that is wanted."""
        times = self._times
        times.append(seconds)
        is_enough = len(times) >= _RUNS or (len(times) >= _FEWEST_RUNS and sum(times) > _ENOUGH)
        if not self.wants_plain:
            self.native = min(times)
            if is_enough:
                self.wants_plain, self._times = True, []
            return
        self.plain = min(times)
        is_clear = len(times) >= _FEWEST_RUNS and self.plain > 2.0 * self.native
        if is_enough or is_clear:
            self.is_over = True
            self.wants_plain = self.native > MARGIN * self.plain
