"""What the project is made of: every locked package is read, and a soak tells growth from noise."""

import supply
from soak import grows

from gpuplan.cli.app import RARELY
from gpuplan.cli.watch import LONG_LIVED


def rows(memory_mb, threads=8):
    return [{"serve_rss_mb": mb, "serve_threads": float(threads)} for mb in memory_mb]


def test_every_locked_package_has_a_name_and_a_version():
    found = dict(supply.locked())
    assert {"numpy", "pydantic", "polars"} <= set(found)
    assert all(version[0].isdigit() for version in found.values())


def test_a_licence_is_read_from_what_is_installed():
    assert "BSD" in (supply.licence_of("numpy") or "")
    assert supply.licence_of("no-such-package-anywhere") is None


def test_licences_that_would_change_ours_are_not_accepted():
    assert supply.ACCEPTED.search("BSD-3-Clause")
    assert not supply.ACCEPTED.search("GPL-3.0-only")
    assert not supply.ACCEPTED.search("Proprietary")


def test_the_page_of_licences_names_the_locked_packages():
    page = supply.PAGE.read_text(encoding="utf-8")
    missing = [name for name, _ in supply.locked() if f"{name}" not in page]
    assert missing == []


def test_a_soak_sees_a_leak_and_not_the_warm_up():
    assert not grows(rows([100, 300, 500, 505, 500, 503, 501, 506, 504]), "serve")
    assert grows(rows([100, 100, 100, 200, 210, 220, 400, 450, 500]), "serve")


def test_a_soak_sees_threads_that_stay():
    steady = rows([100] * 6)
    more = rows([100] * 3, threads=20)
    assert grows(steady + more, "serve")
    assert not grows(steady + rows([100] * 3), "serve")


def test_what_runs_for_days_looks_for_garbage_as_often_as_python_does():
    assert LONG_LIVED[0] * LONG_LIVED[1] * LONG_LIVED[2] < RARELY[0]
