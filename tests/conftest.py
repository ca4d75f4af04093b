"""Drawn examples are the same on every machine: a failure can be repeated.

HYPOTHESIS_PROFILE=wide pytest tests/property    draws anew each time
"""

import os

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("wide", derandomize=False, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
