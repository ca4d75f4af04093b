"""Drawn examples are the same on every machine: a failure can be repeated.

HYPOTHESIS_PROFILE=wide pytest tests/property    draws anew each time
"""

import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("wide", derandomize=False, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

KNOWN = tomllib.loads(Path(__file__).with_name("known_failures.toml").read_text("utf-8"))


def pytest_collection_modifyitems(items):
    """Known defects are expected failures, each with its reason."""
    for item in items:
        if item.nodeid in KNOWN:
            item.add_marker(pytest.mark.xfail(reason=KNOWN[item.nodeid], strict=False))
