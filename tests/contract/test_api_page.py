"""docs/api.md: every example runs, and the table of names is complete."""

import importlib.util
import re

import pytest

from shared_data import ROOT

PAGE = ROOT / "docs" / "api.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_every_example_of_the_page_runs():
    scope: dict = {}
    for block in BLOCKS:
        exec(compile(block, str(PAGE), "exec"), scope)
    assert len(BLOCKS) >= 6


def test_the_table_of_names_is_up_to_date():
    spec = importlib.util.spec_from_file_location("names", ROOT / "tools" / "write_api_names.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = PAGE.read_text(encoding="utf-8")
    assert tool.page_with_names(text) == text, "run: python tools/write_api_names.py"


def test_an_example_that_fails_would_be_seen():
    with pytest.raises(AssertionError):
        exec(compile("assert 1 == 2", str(PAGE), "exec"), {})
