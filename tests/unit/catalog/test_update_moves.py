"""What an update moves: prices, saved plans, and the history that it keeps."""

from datetime import date
from pathlib import Path

import pytest

from gpuplan.catalog.offers import offers_in, read_offers
from gpuplan.catalog.update.fetch import FetchError, Limits
from gpuplan.catalog.update.models import HISTORY, folder_fetch, moved_plan
from gpuplan.catalog.update.prices import update_prices
from gpuplan.catalog.update.skypilot import BASE_URL

TODAY = date(2026, 11, 17)
LIMITS = Limits(max_bytes=10_000)
HEADER = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n"
)
TABLE = "catalogs/v8/verda/vms.csv"


def table_at(factor: float) -> str:
    """The packaged prices of one cloud, as its source would write them."""
    names = {"h100-sxm": "H100", "b200-sxm": "B200", "h200-sxm": "H200", "b300-sxm": "B300"}
    rows = [
        f"{o.instance},{names[o.accelerator]},{o.n_accelerators:g},{o.shape.n_vcpu},"
        f"{o.shape.ram_bytes / 2**30:g},{o.usd_per_h * factor},{o.region},,\n"
        for o in offers_in(read_offers(), cloud="verda")
        if o.accelerator in names
    ]
    return HEADER + "".join(rows)


def update(folder: Path, factor: float):
    path = folder / "tables" / TABLE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(table_at(factor), encoding="utf-8")
    fetch = folder_fetch(folder / "tables", BASE_URL, LIMITS)
    return update_prices(folder / "store", today=TODAY, clouds=["verda"], fetch=fetch, force=True)


def test_tables_on_disk_are_taken_and_what_moved_is_said(tmp_path):
    report = update(tmp_path, 1.2)
    assert report.names("updated") == ("verda",)
    assert len(report.moves) == len(table_at(1.0).splitlines()) - 1
    assert all(move.change_frac == pytest.approx(0.2, abs=1e-6) for move in report.moves)
    assert not (tmp_path / "store" / HISTORY).exists()  # what the package holds is not lost


def test_prices_that_are_replaced_stay_in_the_history(tmp_path):
    update(tmp_path, 1.2)
    stored = (tmp_path / "store/prices/verda.csv").read_bytes()
    report = update(tmp_path, 1.5)
    assert report.moves[0].change_frac == pytest.approx(1.5 / 1.2 - 1, abs=1e-6)
    [kept] = (tmp_path / "store" / HISTORY / "prices").iterdir()
    assert kept.read_bytes() == stored
    assert kept.name == "verda 2026-11-17.csv"


def test_a_saved_plan_moves_by_its_own_machines_alone(tmp_path):
    move = update(tmp_path, 1.2).moves[0]
    mine = {"cloud": move.cloud, "offer": move.instance, "region": move.region}
    other = {"cloud": "aws", "offer": "p5.48xlarge", "region": "us-east-1"}
    pools = [{"purchases": [{**mine, "usd_per_month": 1000.0}, {**other, "usd_per_month": 500.0}]}]
    found = moved_plan("chat", {"plan": {"pools": pools}}, [move])
    assert (found.old_usd_per_month, found.new_usd_per_month) == (1500.0, pytest.approx(1700.0))
    assert moved_plan("none", {"plan": None}, [move]).new_usd_per_month == 0.0


def test_a_table_that_is_missing_or_too_large_is_refused(tmp_path):
    fetch = folder_fetch(tmp_path, BASE_URL, Limits(max_bytes=3))
    with pytest.raises(FetchError) as missing:
        fetch(BASE_URL + TABLE)
    assert missing.value.is_missing
    (tmp_path / "large.csv").write_text("four", encoding="utf-8")
    with pytest.raises(FetchError, match="more than 3 bytes"):
        fetch(BASE_URL + "large.csv")
