"""Fleets beside the example scenarios: each is read, is whole, and leaves nothing to defaults."""

from pathlib import Path

import pytest

from gpuplan.inputs.fleet import read_fleet

FOLDER = Path(__file__).parents[3] / "examples" / "fleets"
FILES = sorted(FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_says_all_that_matters_itself(path: Path):
    fleet = read_fleet(path)
    assert fleet.assumptions == ()
    names = {pool.name for pool in fleet.pools}
    for service in fleet.services:
        assert {share.pool for share in (*service.pools, *service.decode_pools)} <= names


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_shows_how_it_is_run(path: Path):
    text = path.read_text(encoding="utf-8")
    assert "gpuplan simulate" in text
    assert f"--fleet examples/fleets/{path.name}" in text


def test_there_are_examples():
    assert len(FILES) >= 4
