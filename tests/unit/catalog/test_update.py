"""Prices and configs from a network that is not trusted; every server here is a real one."""

import gzip
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path

import pytest

from fakes.http_server import (
    Answer,
    FakeServer,
    body,
    compressed,
    drip,
    drip_headers,
    endless,
    redirect,
    running_server,
    status,
)
from gpuplan.catalog.offers import offers_in, read_offers
from gpuplan.catalog.update import fetch as fetching
from gpuplan.catalog.update.fetch import Limits, fetch_bytes
from gpuplan.catalog.update.prices import update_prices
from gpuplan.catalog.update.store import price_file, read_stored_offers, write_whole
from gpuplan.domain.money.market import CloudUpdate
from gpuplan.errors import CatalogError

TODAY = date(2026, 11, 15)
HEADER = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice"
)
GOOD = f"{HEADER}\n" + "".join(
    f"gpu_{n}x_h100_sxm5,H100,{n},{26 * n},{225 * n},{3.9 * n},us-east-{zone},,\n"
    for n in (1, 2, 4, 8)
    for zone in (1, 2, 3)
)
Fetch = Callable[[str], bytes]
VERDA = "/catalogs/v8/verda/vms.csv"
LIMITS = Limits(max_bytes=200_000, total_s=10.0, connect_s=1.0)
QUICK = partial(fetch_bytes, limits=LIMITS)
HASTY = partial(fetch_bytes, limits=replace(LIMITS, total_s=0.5))  # for servers that never end


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with running_server() as running:
        yield running


@pytest.fixture
def update(server: FakeServer, tmp_path: Path) -> Callable[..., CloudUpdate]:
    """Updates one cloud from an answer; verda is small, so twelve rows are no collapse."""

    def run(
        answer: Answer | str, *, cloud: str = "verda", force: bool = False, fetch: Fetch = QUICK
    ) -> CloudUpdate:
        path = f"/catalogs/v8/{cloud}/vms.csv"
        server.answers[path] = body(answer) if isinstance(answer, str) else answer

        # A second cloud that is always sound, so that a failure is told and not raised.
        def bring(url: str) -> bytes:
            return fetch(url) if path in url or cloud in url else GOOD.encode()

        report = update_prices(
            tmp_path, today=TODAY, clouds=("do", cloud), base_url=server.url, force=force,
            fetch=bring,
        )  # fmt: skip
        assert report.parts[0].state in ("updated", "unchanged")
        return report.parts[1]

    return run


def of_cloud(store: Path | None, cloud: str = "verda") -> dict[tuple[str, str], float]:
    return {(o.instance, o.region): o.usd_per_h for o in offers_in(read_offers(store), cloud=cloud)}


# --- good answers ------------------------------------------------------------------------------


def test_good_prices_replace_the_packaged_ones_with_date_and_source(
    update: Callable[..., CloudUpdate], tmp_path: Path
) -> None:
    before = of_cloud(None)
    part = update(GOOD)
    assert (part.state, part.n_rows) == ("updated", 12)
    after = offers_in(read_offers(tmp_path), cloud="verda")
    assert len(after) == 12
    assert {o.price_date for o in after} == {TODAY}
    assert {o.source for o in after} == {"skypilot-catalog fetched 2026-11-15"}
    assert {o.accelerator for o in after} == {"h100-sxm"}
    assert of_cloud(None) == before


def test_prices_that_did_not_move_keep_their_date(
    update: Callable[..., CloudUpdate], tmp_path: Path
) -> None:
    update(GOOD)
    stamp = price_file(tmp_path, "verda").stat().st_mtime_ns
    assert update(GOOD).state == "unchanged"
    assert price_file(tmp_path, "verda").stat().st_mtime_ns == stamp


def test_older_layout_is_asked_where_the_newer_lacks_the_cloud(
    server: FakeServer, tmp_path: Path
) -> None:
    server.answers["/catalogs/v7/verda/vms.csv"] = body(GOOD)
    report = update_prices(
        tmp_path, today=TODAY, clouds=["verda"], base_url=server.url, fetch=QUICK
    )
    assert report.names("updated") == ("verda",)
    assert server.requested == [VERDA, "/catalogs/v7/verda/vms.csv"]


def test_one_failing_cloud_leaves_its_old_prices_and_the_others_new_ones(
    server: FakeServer, tmp_path: Path
) -> None:
    server.answers[VERDA] = body(GOOD)
    server.answers["/catalogs/v8/do/vms.csv"] = status(500)
    report = update_prices(
        tmp_path, today=TODAY, clouds=["do", "verda"], base_url=server.url, fetch=QUICK
    )
    assert (report.names("failed"), report.names("updated")) == (("do",), ("verda",))
    assert of_cloud(tmp_path, "do") == of_cloud(None, "do")
    assert "stay as they are" in report.parts[0].detail


def test_azure_is_not_taken_from_a_source_whose_azure_prices_are_years_old(
    update: Callable[..., CloudUpdate], tmp_path: Path
) -> None:
    part = update(GOOD, cloud="azure")
    assert part.state == "refused"
    assert "2024" in part.detail
    assert of_cloud(tmp_path, "azure") == of_cloud(None, "azure")


# --- bad answers -------------------------------------------------------------------------------

ROW = "gpu_1x_h100_sxm5,H100,1,26,225,{price},us-east-1,,{spot}\n"


def with_row(row: str) -> str:
    return GOOD + row


@pytest.mark.parametrize(
    ("answer", "state", "why"),
    [
        (status(404), "failed", "status 404"),
        (status(500), "failed", "status 500"),
        (status(403), "failed", "restricted"),
        (body(""), "refused", "header"),
        (body("<!DOCTYPE html><html><body>Sign in</body></html>"), "refused", "header"),
        (body("InstanceType,Price\nx,1\n"), "refused", "header"),
        (body(GOOD.replace("Region", "Price", 1)), "refused", "header"),
        (body(GOOD, announce=len(GOOD) + 500), "failed", "Protocol"),
        (body(GOOD[:-30]), "refused", "cells"),
        (body(GOOD + '"open quote'), "refused", "CSV"),
        (body(b"\x89PNG\r\n\x1a\n" + bytes(range(256))), "refused", "UTF-8"),
        (body(GOOD + "\0,,,,,,,,\n"), "refused", "binary"),
        (body(GOOD.encode("utf-16")), "refused", "UTF-8"),
        (body(with_row(ROW.format(price="nan", spot=""))), "refused", "finite"),
        (body(with_row(ROW.format(price="inf", spot=""))), "refused", "finite"),
        (body(with_row(ROW.format(price="1e999", spot=""))), "refused", "finite"),
        (body(with_row(ROW.format(price="-1", spot=""))), "refused", "negative"),
        (body(with_row(ROW.format(price="3", spot="nan"))), "refused", "finite"),
        (body(with_row(ROW.format(price="cheap", spot=""))), "refused", "number"),
        (body(with_row(ROW.format(price="3", spot="").replace("gpu_1x", "=HYPERLINK(1)"))),
         "refused", "unsafe"),
        (body(with_row(ROW.format(price="3", spot="").replace("gpu_1x", "@SUM"))),
         "refused", "unsafe"),
        (body(with_row(ROW.format(price="3", spot="").replace("gpu_1x", "\x1b[31m"))),
         "refused", "unsafe"),
        (body(with_row(ROW.format(price="3", spot="").replace("gpu_1x", "../../etc/passwd"))),
         "refused", "unsafe"),
        (body(with_row(ROW.format(price="3", spot="").replace("us-east-1", "=1+1"))),
         "refused", "unsafe"),
        (body(f"{HEADER}\n"), "refused", "no usable price"),
        (body(f"{HEADER}\n{ROW.format(price='3.9', spot='')}"), "refused", "only 1 prices"),
        (body("".join([f"{HEADER}\n", *(f"m{n},H100,1,1,1,0,r{n},,\n" for n in range(20))])),
         "refused", "no usable price"),
        (body(with_row("".join(f"m{n},H100,1,1,1,9999,r{n},,\n" for n in range(8)))),
         "refused", "implausible"),
        (body(f"{HEADER}\n" + "x" * 150_000), "refused", "field"),
        (body("x" * 300_000), "failed", "300000 bytes announced"),
        (endless(), "failed", "more than 200000 bytes"),
        (compressed(gzip.compress(b"0" * 50_000_000, mtime=0), "gzip"), "failed", "compressed"),
        (compressed(GOOD.encode(), "br"), "failed", "compressed"),
        (redirect("https://example.org/vms.csv"), "failed", "another host"),
        (redirect("file:///etc/passwd"), "failed", "another host"),
        (redirect("//127.0.0.1:1/vms.csv"), "failed", "another host"),
        (redirect("http://[bad/vms.csv"), "failed", "another host"),
        (redirect(""), "failed", "another host"),
        (redirect(VERDA), "failed", "redirects"),
        (drip(GOOD.encode(), pause_s=0.05), "failed", "within 0.5 s"),
        (drip_headers(pause_s=0.05), "failed", "within 0.5 s"),
    ],
)  # fmt: skip
def test_what_is_not_sound_replaces_nothing(
    update: Callable[..., CloudUpdate], tmp_path: Path, answer: Answer, state: str, why: str
) -> None:
    packaged = of_cloud(None)
    part = update(answer, fetch=HASTY if "within" in why else QUICK)
    assert (part.state, why in part.detail) == (state, True), part.detail
    assert of_cloud(tmp_path) == packaged
    assert not list(tmp_path.rglob("*.tmp"))


def test_stored_prices_survive_a_later_bad_answer(
    update: Callable[..., CloudUpdate], tmp_path: Path
) -> None:
    update(GOOD)
    stored = price_file(tmp_path, "verda").read_bytes()
    for answer in (status(500), body("<html>"), body(GOOD[:-20])):
        update(answer)
        assert price_file(tmp_path, "verda").read_bytes() == stored


def test_a_redirect_on_the_same_host_is_followed(
    server: FakeServer, update: Callable[..., CloudUpdate]
) -> None:
    server.answers["/moved.csv"] = body(GOOD)
    assert update(redirect("/moved.csv")).state == "updated"


def test_a_collapse_is_taken_only_by_force(update: Callable[..., CloudUpdate]) -> None:
    small = f"{HEADER}\n{ROW.format(price='3.9', spot='')}"
    assert update(small).state == "refused"
    part = update(small, force=True)
    assert part.state == "updated"
    assert "forced although only 1 prices" in part.detail


def test_force_does_not_take_what_is_unsafe(update: Callable[..., CloudUpdate]) -> None:
    assert update(with_row(ROW.format(price="nan", spot="")), force=True).state == "refused"
    assert update(f"{HEADER}\n", force=True).state == "refused"


def test_prices_missing_or_zero_are_left_out_and_counted(
    update: Callable[..., CloudUpdate], tmp_path: Path
) -> None:
    part = update(with_row("m,H100,1,1,1,0,r,,\nn,H100,1,1,1,,r,,0.5\n"))
    assert (part.state, part.n_rows, part.n_dropped) == ("updated", 12, 2)
    assert all(price > 0 for price in of_cloud(tmp_path).values())


# --- the store ---------------------------------------------------------------------------------


def test_a_damaged_store_is_told_and_mended_by_an_update(
    update: Callable[..., CloudUpdate], tmp_path: Path
) -> None:
    update(GOOD)
    price_file(tmp_path, "verda").write_text("half a li")
    with pytest.raises(CatalogError, match="catalog update"):
        read_offers(tmp_path)
    assert update(GOOD).state == "updated"
    assert len(of_cloud(tmp_path)) == 12


@pytest.mark.parametrize("price", ["nan", "0", "-3", "inf", "x"])
def test_a_price_that_is_none_never_comes_out_of_the_store(
    update: Callable[..., CloudUpdate], tmp_path: Path, price: str
) -> None:
    update(GOOD)
    path = price_file(tmp_path, "verda")
    path.write_text(path.read_text().replace(",3.9,", f",{price},"))
    with pytest.raises(CatalogError):
        read_offers(tmp_path)


def test_a_store_older_than_the_package_is_not_preferred(
    update: Callable[..., CloudUpdate], tmp_path: Path
) -> None:
    update(GOOD)
    path = price_file(tmp_path, "verda")
    path.write_text(path.read_text().replace("2026-11-15", "2025-01-01"))
    assert of_cloud(tmp_path) == of_cloud(None)


def test_a_kill_between_writing_and_renaming_leaves_the_old_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "prices" / "verda.csv"
    write_whole(path, b"old")
    script = textwrap.dedent("""
        import os, pathlib, sys
        from gpuplan.catalog.update.store import write_whole
        pathlib.Path.replace = lambda *_: os._exit(9)
        write_whole(pathlib.Path(sys.argv[1]), b"new" * 100000)
    """)
    source = str(Path(fetching.__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], check=False,
        env={**os.environ, "PYTHONPATH": source},
    )  # fmt: skip
    assert done.returncode == 9
    assert path.read_bytes() == b"old"
    assert len(list(path.parent.glob(".*.tmp"))) == 1  # left behind, and never read
    assert read_stored_offers(tmp_path / "none") == {}


def test_leftovers_of_a_kill_are_not_read_as_prices(
    update: Callable[..., CloudUpdate], tmp_path: Path
) -> None:
    update(GOOD)
    old, young = (tmp_path / "prices" / f".verda.csv.{name}.tmp" for name in ("old", "young"))
    for leftover in (old, young):
        leftover.write_text("half")
    os.utime(old, (0, 0))
    assert len(of_cloud(tmp_path)) == 12
    update(GOOD.replace(",3.9,", ",3.8,"))
    assert (old.exists(), young.exists()) == (False, True)  # another run may still be writing


def test_runs_at_the_same_time_leave_a_whole_file(server: FakeServer, tmp_path: Path) -> None:
    server.answers[VERDA] = body(GOOD)

    def run(n_run: int) -> str:
        dearer = GOOD.replace(",3.9,", f",{3 + n_run / 10},")

        def give(_: str) -> bytes:
            return dearer.encode()

        report = update_prices(
            tmp_path, today=TODAY, clouds=["verda"], base_url=server.url, fetch=give
        )
        return report.parts[0].state

    with ThreadPoolExecutor(max_workers=4) as pool:
        assert set(pool.map(run, range(12))) <= {"updated", "unchanged"}
    assert len(of_cloud(tmp_path)) == 12
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_store_that_cannot_be_written_is_told(server: FakeServer, tmp_path: Path) -> None:
    server.answers[VERDA] = body(GOOD)
    (tmp_path / "prices").write_text("a file where the folder should be")
    report = update_prices(
        tmp_path, today=TODAY, clouds=["verda"], base_url=server.url, fetch=QUICK
    )
    assert report.parts[0].state == "refused"
    assert "cannot be written" in report.parts[0].detail
