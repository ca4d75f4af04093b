"""Model configs and gpuhunt's prices, from sources that are not trusted."""

import gzip
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from gpuplan.catalog.update.fetch import Limits, fetch_bytes
from gpuplan.catalog.update.models import config_file, stored_model_config, update_model
from gpuplan.catalog.update.prices import update_from_gpuhunt
from gpuplan.errors import CatalogError, InputError

TODAY = date(2026, 11, 15)
LIMITS = Limits(max_bytes=200_000, total_s=10.0, connect_s=1.0)
QUICK = partial(fetch_bytes, limits=LIMITS)
HASTY = partial(fetch_bytes, limits=replace(LIMITS, total_s=0.5))  # for servers that never end


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with running_server() as running:
        yield running


# --- model configs -----------------------------------------------------------------------------

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
CONFIG = '{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32}'
CONFIG_PATH = f"/{MODEL}/resolve/main/config.json"


def test_a_config_is_stored_and_read_back(server: FakeServer, tmp_path: Path) -> None:
    server.answers[CONFIG_PATH] = body(CONFIG)
    assert stored_model_config(tmp_path, MODEL) is None
    report = update_model(tmp_path, MODEL, today=TODAY, base_url=server.url, fetch=QUICK)
    assert report.names("updated") == (MODEL,)
    config = stored_model_config(tmp_path, MODEL)
    assert config is not None
    assert config["hidden_size"] == 4096
    assert (tmp_path / "models" / "meta-llama--Llama-3.1-8B-Instruct.json").exists()
    again = update_model(tmp_path, MODEL, today=TODAY, base_url=server.url, fetch=QUICK)
    assert again.names("unchanged") == (MODEL,)


@pytest.mark.parametrize(
    "answer",
    [
        status(404), status(401), status(500), body("<html>"), body("[1, 2]"), body("{}"),
        body('{"error": "gated"}'), body('{"model_type": "llama", "rope": NaN}'),
        body('{"model_type": ' + "[" * 60 + "]" * 60 + "}"), body("[" * 100_000),
        body('{"model_type": 1' + "0" * 5000 + "}"), body(b"\xff\xfe\x00"),
        body(CONFIG[:-5]), body(CONFIG, announce=4000), endless(),
        compressed(gzip.compress(b"0" * 10_000_000, mtime=0), "gzip"), redirect("https://example.org/c"),
        redirect(CONFIG_PATH),
    ],
)  # fmt: skip
def test_a_bad_config_leaves_the_stored_one(
    server: FakeServer, tmp_path: Path, answer: Answer
) -> None:
    server.answers[CONFIG_PATH] = body(CONFIG)
    update_model(tmp_path, MODEL, today=TODAY, base_url=server.url, fetch=QUICK)
    stored = config_file(tmp_path, MODEL).read_bytes()
    server.answers[CONFIG_PATH] = answer
    with pytest.raises(CatalogError) as caught:
        update_model(tmp_path, MODEL, today=TODAY, base_url=server.url, fetch=QUICK)
    assert "local config.json" in str(caught.value)
    assert config_file(tmp_path, MODEL).read_bytes() == stored


@pytest.mark.parametrize(
    "answer", [drip_headers(pause_s=0.05), drip(CONFIG.encode() * 9, pause_s=0.05)]
)
def test_a_slow_config_ends_in_time(server: FakeServer, tmp_path: Path, answer: Answer) -> None:
    server.answers[CONFIG_PATH] = answer
    with pytest.raises(CatalogError, match="within"):
        update_model(tmp_path, MODEL, today=TODAY, base_url=server.url, fetch=HASTY)
    assert stored_model_config(tmp_path, MODEL) is None


@pytest.mark.parametrize(
    "model_id",
    ["../../etc/passwd", "..", "a/..", "../a", "a/b/c", "/etc/passwd", "a", "", "a/b\n", "a\\b/c",
     "a/b?x=1", "a/b#c", "C:/x", "a/.b", "a--b/c", "a/b%2e%2e", "a/" + "b" * 200, "ä/b", "a/b\0"],
)  # fmt: skip
def test_model_names_cannot_leave_the_store(tmp_path: Path, model_id: str) -> None:
    with pytest.raises(InputError, match="owner/name"):
        config_file(tmp_path, model_id)


@given(st.text(alphabet=st.sampled_from("ab./\\-_:~ %\n"), max_size=30))
def test_every_accepted_model_name_stays_in_its_folder(model_id: str) -> None:
    store = Path("/store")
    try:
        path = config_file(store, model_id)
    except InputError:
        return
    assert path.parent == store / "models"
    assert os.path.normpath(path) == str(path)


# --- gpuhunt -----------------------------------------------------------------------------------


def item(**changed: object) -> SimpleNamespace:
    fields = {
        "instance_name": "Standard_ND96isr_H100_v5", "location": "eastus", "price": 98.32,
        "cpu": 96, "memory": 1900.0, "gpu_count": 8, "gpu_name": "H100", "gpu_memory": 80.0,
        "spot": False,
    }  # fmt: skip
    return SimpleNamespace(**{**fields, **changed})


def test_gpuhunt_brings_the_azure_prices_that_the_other_source_lacks(tmp_path: Path) -> None:
    items = [item(location=f"region{n}") for n in range(900)]
    items.append(item(location="region1", spot=True, price=40.0))

    def query(*, provider: str, min_gpu_count: int) -> list[SimpleNamespace]:
        assert (provider, min_gpu_count) == ("azure", 1)
        return items

    report = update_from_gpuhunt(tmp_path, today=TODAY, providers=["azure"], query=query)
    assert report.names("updated") == ("azure",)
    offers = offers_in(read_offers(tmp_path), cloud="azure", region="region1")
    assert [(o.accelerator, o.usd_per_h, o.spot_usd_per_h) for o in offers] == [
        ("h100-sxm", 98.32, 40.0)
    ]


def test_gpuhunt_is_asked_for_known_clouds_only(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="azure"):
        update_from_gpuhunt(tmp_path, today=TODAY, providers=["../../x"], query=lambda **_: [])


def test_gpuhunt_missing_names_the_install_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "gpuhunt", None)
    with pytest.raises(InputError, match=r'pip install "gpuplan\[gpuhunt\]"'):
        update_from_gpuhunt(tmp_path, today=TODAY)


def test_gpuhunt_offline_is_told_and_leaves_the_prices(tmp_path: Path) -> None:
    def query(**_: object) -> list[SimpleNamespace]:
        raise OSError("no network")

    with pytest.raises(CatalogError, match="no network"):
        update_from_gpuhunt(tmp_path, today=TODAY, providers=["azure"], query=query)
    assert read_offers(tmp_path) == read_offers()


def test_gpuhunt_items_of_another_shape_are_refused(tmp_path: Path) -> None:
    def query(**_: object) -> list[SimpleNamespace]:
        return [item(price="free"), item(cpu=None)]

    report = update_from_gpuhunt(tmp_path, today=TODAY, providers=["azure"], query=query)
    assert report.names("refused") == ("azure",)
