"""Every requirement is tried by running; what is missing is expected to fail, strictly."""

import pytest

from requirements import checks  # noqa: F401  (registers them)
from requirements.asking import Ask, Workplace
from requirements.page import page
from requirements.registry import CHECKS, checks_of
from requirements.says import SAYS
from shared_data import ROOT


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    return Workplace(tmp_path_factory.mktemp("requirements"))


def cases():
    for one in CHECKS:
        if one.elsewhere:
            continue
        marks = [pytest.mark.xfail(strict=True, reason=one.missing)] if one.missing else []
        yield pytest.param(one, id=one.name, marks=marks)


@pytest.mark.parametrize("one", list(cases()))
def test_requirement(one, place):
    one.body(Ask(place, one.command))


def test_every_requirement_has_a_check():
    assert list(SAYS) == [f"R{n}" for n in range(1, 115)]
    assert not [requirement for requirement in SAYS if not checks_of(requirement)]
    assert len({one.name for one in CHECKS}) == len(CHECKS)


def test_the_page_tells_what_the_checks_say():
    written = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
    assert written == page(), "run python3 dev.py requirements --write"
