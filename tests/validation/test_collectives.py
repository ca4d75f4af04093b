"""Collectives against published measurements, every row predicted from outside its fit."""

import csv

import numpy as np
import pytest
from fits import held_out as v
from fits import links as links_fit

from gpuplan.calibration.links import link_of
from gpuplan.calibration.tables import read_constants
from gpuplan.catalog.load import read_catalog
from gpuplan.performance import collectives as c
from gpuplan.units import GB, GIB
from shared_data import shared_file


@pytest.fixture(scope="module")
def by_system() -> v.Folds:
    return v.LINKS.folds(lambda group: group.system)


def test_a_new_system_of_known_links(by_system: v.Folds) -> None:
    found = v.score_folds(by_system)
    assert found.n > 3000
    assert found.median_ape < 0.09
    assert found.range_coverage is not None
    assert 0.72 < found.range_coverage < 0.86


def test_stored_constants_predict_what_a_fresh_fit_predicts() -> None:
    fitted = v.LINKS.fit(v.link_groups())
    cards = {"nvlink4": "h100-sxm", "nvlink3": "a100-sxm-80gb", "nvlink5": "b200-sxm"}
    for group in v.link_groups():
        engine = links_fit.labels_of(group)["engine"]
        if group.link not in cards or engine not in ("vllm", "sglang") or group.n_nodes > 1:
            continue
        card = read_catalog().accelerators[cards[group.link]]  # type: ignore[index]
        stored = link_of(card, n_ranks=group.n_per_node, engine=engine)
        values = fitted.values(links_fit.labels_of(group))
        fresh = v.collective_times_s(
            group, links_fit.inner_link(group, values), links_fit.outer_link(group, values)
        )
        times = [c.all_reduce_time_s(m, group.n_per_node, stored) for m in group.message_bytes]
        # Engines share the deviation of the second shot in the stored file.
        assert np.median(np.abs(np.array(times) / fresh - 1)) < 0.05


@pytest.mark.parametrize(
    ("card", "n", "published_gb_per_s"),
    [("h200-sxm", 8, 480.0), ("h200-sxm", 4, 363.3), ("b200-sxm", 8, 838.0), ("b200-sxm", 4, 673.2),
     ("a100-sxm-80gb", 8, 234.6), ("mi300x", 8, 312.9), ("mi300x", 2, 47.7)],
)  # fmt: skip
def test_bus_bandwidth_of_eight_gigabytes(card: str, n: int, published_gb_per_s: float) -> None:
    link = link_of(read_catalog().accelerators[card], n_ranks=n)  # type: ignore[index]
    seconds = c.all_reduce_time_s(8 * GIB, n, link)
    busbw = 2 * (n - 1) / n * 8 * GIB / seconds
    assert busbw == pytest.approx(published_gb_per_s * GB, rel=0.12)


def test_summary_of_operator_tables_is_inside_the_range() -> None:
    """The other summary of such measurements: large messages, every system but L40S."""
    ids = {"a100_sxm": "a100-sxm-80gb", "h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm",
           "b200_sxm": "b200-sxm", "b300_sxm": "b300-sxm", "gb200": "gb200", "gb300": "gb300",
           "rtx_pro_6000_server": "rtx-pro-6000-bw"}  # fmt: skip
    times = {"all_reduce": c.all_reduce_time_s, "all_gather": c.all_gather_time_s,
             "reduce_scatter": c.all_gather_time_s, "alltoall": c.all_to_all_time_s,
            }  # fmt: skip
    errors, inside, stored = [], 0, read_constants("links.json")
    with shared_file("measured/efficiency_nccl.csv").open() as lines:
        for row in csv.DictReader(lines):
            if row["system"] not in ids:
                continue
            n = int(row["gpus"])
            link = link_of(read_catalog().accelerators[ids[row["system"]]], n_ranks=n)  # type: ignore[index]
            predicted = times[row["op"]](2 * float(row["msg_max"]), n, link)
            measured = float(row["lat_max_ms"]) / 1e3
            is_measured = "inherits" not in stored["classes"][link.name]
            low, high = stored["range_known" if is_measured else "range_new"]
            inside += low <= measured / predicted <= high
            errors.append(abs(predicted / measured - 1))
    assert len(errors) > 150
    assert np.median(errors) < 0.08
    assert inside / len(errors) > 0.8


def test_groups_keep_every_row() -> None:
    n = sum(len(group.time_s) for group in links_fit.read_groups())
    assert n == 3211
