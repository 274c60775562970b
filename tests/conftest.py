"""Settings for all tests: of Hypothesis, and where compiled code is kept."""

import os
import tempfile

from hypothesis import settings

# A busy machine is no failure; and in continuous integration the same code draws the same examples.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
# The user's own cache stays as it is.
os.environ.setdefault("DILIM_CACHE", os.path.join(tempfile.gettempdir(), "dilim-tests-cache"))

# --- how much of the random programs runs native, over all of them -----------------------------

NATIVE = "native and all settled operations"
"""What tests of random programs tell: operations in calls in which nothing was sliced."""
LEAST = 0.95
_counts = {}


def pytest_runtest_logreport(report):
    """Collect from the processes that run tests."""
    for name, value in report.user_properties if report.when == "call" else ():
        if name == NATIVE:
            _counts[report.nodeid] = value


def native_share(counts):
    """The part that ran native, and whether it is enough; chunks by themselves differ too much."""
    share = sum(native for native, _ in counts) / max(1, sum(every for _, every in counts))
    return share, share >= LEAST


def pytest_terminal_summary(terminalreporter):
    if _counts:
        share, _ = native_share(_counts.values())
        line = f"random programs: {share:.2%} native where settled, {LEAST:.0%} asked of all"
        terminalreporter.write_line(line)


def pytest_sessionfinish(session, exitstatus):
    """A run of many chunks fails if less than that is native."""
    if len(_counts) >= 20 and exitstatus == 0 and not native_share(_counts.values())[1]:
        session.exitstatus = 1
