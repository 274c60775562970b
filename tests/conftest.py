"""Settings of Hypothesis for all tests."""

import os

from hypothesis import settings

# A busy machine is no failure; and in continuous integration the same code draws the same examples.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
