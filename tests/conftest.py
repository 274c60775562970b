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
