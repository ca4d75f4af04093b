"""Before and around the network: addresses, extras, being offline, and reading a source's rows."""

import asyncio
import contextlib
import textwrap
from collections.abc import Iterator
from datetime import date
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.http_server import FakeServer, body, endless, running_server
from gpuplan.catalog.update import fetch as fetching
from gpuplan.catalog.update.clean import clean
from gpuplan.catalog.update.fetch import FetchError, Limits, check_base_url, fetch_bytes
from gpuplan.catalog.update.prices import update_prices
from gpuplan.catalog.update.rows import RawRow
from gpuplan.catalog.update.skypilot import parse
from gpuplan.errors import CatalogError, InputError, PlannerError

TODAY = date(2026, 11, 15)
QUICK = partial(fetch_bytes, limits=Limits(max_bytes=200_000, total_s=10.0, connect_s=1.0))
HEADER = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice"
)
GCP_HEADER = (
    "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,"
    "AvailabilityZone,Price,SpotPrice\n"
)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with running_server() as running:
        yield running


# --- offline and set-up ------------------------------------------------------------------------


def test_offline_says_what_was_tried_and_that_the_catalog_stays(tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as caught:
        update_prices(tmp_path, today=TODAY, base_url="http://127.0.0.1:9/", fetch=QUICK)
    assert caught.value.exit_code == 5
    assert "127.0.0.1:9" in str(caught.value)
    assert "stay as they are" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_source_out_of_reach_is_not_asked_for_every_cloud(tmp_path: Path) -> None:
    asked: list[str] = []

    def unreachable(url: str) -> bytes:
        asked.append(url)
        raise FetchError(url, "no route")

    with pytest.raises(CatalogError):
        update_prices(tmp_path, today=TODAY, fetch=unreachable)
    assert len(asked) == 3


@pytest.mark.parametrize(
    "base_url",
    ["http://example.org/", "ftp://127.0.0.1/", "file:///tmp/", "", "https://user@example.org/",
     "http://127.0.0.1.example.org/", "https://[bad"],
)  # fmt: skip
def test_plain_http_is_for_this_machine_only(base_url: str) -> None:
    with pytest.raises(InputError, match="https"):
        check_base_url(base_url)


@pytest.mark.parametrize(
    "base_url", ["https://example.org/x", "http://[::1]:8/", "http://localhost"]
)
def test_https_and_this_machine_are_allowed(base_url: str) -> None:
    check_base_url(base_url)


def test_missing_extra_names_the_install_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(fetching, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r'pip install "gpuplan\[online\]"'):
        update_prices(tmp_path, today=TODAY)


def test_unknown_clouds_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="verda"):
        update_prices(tmp_path, today=TODAY, clouds=["../etc", "amazon"])


def test_works_inside_a_running_event_loop(server: FakeServer) -> None:
    server.answers["/x"] = body("hello")

    async def inside() -> bytes:
        return QUICK(f"{server.url}/x")

    assert asyncio.run(inside()) == b"hello"


# --- reading rows ------------------------------------------------------------------------------


def test_gcp_host_and_accelerator_are_summed_and_slices_counted() -> None:
    text = GCP_HEADER + textwrap.dedent("""\
        a3-highgpu-8g,208,1872,,,,us-central1,us-central1-a,9.46,5.68
        ,,,H100,8,,us-central1,us-central1-a,78.37,47.02
        a3-highgpu-8g,208,1872,,,,us-east4,us-east4-a,9.46,5.68
        a4-highgpu-8g,224,3968,,,,us-central1,us-central1-b,0,0
        ,,,B200,8,,us-central1,us-central1-b,90.2,39.6
        ,,,T4,1,,us-central1,us-central1-a,0.35,0.11
        ,,,tpu-v5p-8,1,,us-east5,us-east5-a,16.8,8.4
        ,,,tpu-v6e-8,1,,us-east5,us-east5-a,21.6,9.2
        n2-standard-8,8,32,,,,us-central1,us-central1-a,0.39,0.1
    """)
    rows = {row.shape.name: row for row in clean("gcp", parse("gcp", text)).rows}
    assert rows["a3-highgpu-8g"].usd_per_h == pytest.approx(87.83)
    assert rows["a3-highgpu-8g"].spot_usd_per_h == pytest.approx(52.70)
    assert rows["a3-highgpu-8g"].region == "us-central1"  # no accelerator price in the other zone
    assert rows["a4-highgpu-8g"].usd_per_h == pytest.approx(90.2)
    assert rows["(attach)T4x1"].shape.basis == "accelerator-only"
    assert rows["tpu-v5p-8"].shape.n_accelerators == 4  # the name counts cores
    assert rows["tpu-v6e-8"].shape.n_accelerators == 8  # the name counts chips
    assert "n2-standard-8" not in rows


def test_one_price_for_every_size_is_a_placeholder() -> None:
    rows = [
        RawRow("tpu-v6e-8", "tpu-v6e-8", 1, None, None, "asia-east1", 700.0, 700.0),
        RawRow("tpu-v6e-256", "tpu-v6e-256", 1, None, None, "asia-east1", 700.0, 700.0),
        RawRow("tpu-v6e-8", "tpu-v6e-8", 1, None, None, "us-east5", 21.6, 9.2),
    ]
    assert [row.region for row in clean("gcp", rows).rows] == ["us-east5"]


@given(st.binary(max_size=400) | st.text(max_size=400).map(lambda text: (HEADER + text).encode()))
def test_no_bytes_can_raise_anything_but_our_errors(content: bytes) -> None:
    with contextlib.suppress(PlannerError):
        clean("verda", parse("verda", content.decode("utf-8", errors="replace")))


@pytest.mark.parametrize(
    ("cloud", "usd_per_h", "spot_usd_per_h", "kept"),
    [
        ("verda", 2.0, 1.0, 1.0),
        ("verda", 2.0, None, None),
        ("vast", 2.0, 0.0, None),  # its way to write none
        ("runpod", 2.0, 2.0, None),  # repeats the on-demand price
        ("mithril", 2.0, 2.0, None),
        ("aws", 11.39836, 11.3984, 11.39836),  # the same price, rounded
        ("aws", 2.0, 2.5, None),  # no one pays more to be interrupted
    ],
)
def test_spot_is_kept_only_where_it_is_one(
    cloud: str, usd_per_h: float, spot_usd_per_h: float | None, kept: float | None
) -> None:
    row = RawRow("m", "L4", 1, 8, 32, "r", usd_per_h, spot_usd_per_h)
    (price,) = clean(cloud, [row]).rows
    assert price.spot_usd_per_h == kept


def test_zones_give_their_median_and_a_spot_row_joins_its_machine() -> None:
    zones = [RawRow("m", "L4", 1, 8, 32, "r", 2.0, spot) for spot in (0.1, 0.8, 0.9)]
    (price,) = clean("aws", zones).rows
    assert (price.usd_per_h, price.spot_usd_per_h) == (2.0, 0.8)
    twins = [
        RawRow("x__SPOT", "L4", 1, 8, 32, "FI", None, 0.5),
        RawRow("x", "L4", 1, 8, 32, "FI", 2.0, None),
    ]
    (price,) = clean("primeintellect", twins).rows
    assert (price.shape.name, price.usd_per_h, price.spot_usd_per_h) == ("x", 2.0, 0.5)


def test_an_endless_answer_is_cut_off_near_the_limit(server: FakeServer) -> None:
    sent: list[int] = []
    server.answers["/endless"] = endless(sent)
    with pytest.raises(FetchError, match="more than 200000 bytes"):
        QUICK(f"{server.url}/endless")
    assert sum(sent) < 20_000_000  # what the buffers on the way may hold
