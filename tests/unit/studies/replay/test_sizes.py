"""The smallest fleet that holds, and the size that balances waste against delay."""

import pickle
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from gpuplan import api
from gpuplan.domain.simulation.outcome import SloTargets
from gpuplan.domain.simulation.simulation import (
    CurveRequest,
    FleetSizeCurve,
    PreparedFleet,
    SimulateRequest,
)
from gpuplan.domain.traffic.stream import Requests, requests_of
from gpuplan.errors import InputError
from gpuplan.studies.replay.sizes import f_measure, smallest_holding
from gpuplan.units import HOUR


def load(rate: float = 60.0, n: int = 6000) -> Requests:
    draw = np.random.default_rng(0)
    arrive_s = np.cumsum(draw.exponential(1 / rate, n))
    return requests_of(arrive_s, np.full(n, 800), np.full(n, 200))


ASKED = SimulateRequest(slo=SloTargets(ttft_s=1.0))


@pytest.fixture(scope="module")
def ready() -> PreparedFleet:
    return api.prepare_fleet("Llama-3.1-8B", "H100", load(), ASKED)


def curve(ready: PreparedFleet, **changes: object) -> FleetSizeCurve:
    asked = CurveRequest(
        sizes=(1, 2, 3, 4, 6), waste_usd_per_accelerator_s=2.5 / HOUR, delay_usd_per_request=0.01
    )
    return api.simulate_curve(ready, load(), replace(asked, **changes), request=ASKED)  # type: ignore[arg-type]


def test_the_smallest_fleet_holds_and_the_next_smaller_does_not(ready: PreparedFleet):
    for slo in (None, SloTargets(ttft_s=0.5)):
        found = smallest_holding(ready, load(), router="least_outstanding", slo=slo)
        assert found.n_replicas is not None
        by_size = {point.n_replicas: point for point in found.tried}
        assert not by_size[found.n_replicas].is_overloaded
        below = by_size[found.n_replicas - 1]
        assert below.is_overloaded or (slo is not None and below.recall_frac < slo.kept_frac)


def test_an_objective_that_nobody_keeps_has_no_fleet(
    ready: PreparedFleet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("gpuplan.studies.replay.sizes.MOST_REPLICAS", 8)
    found = smallest_holding(
        ready, load(n=500), router="least_outstanding", slo=SloTargets(ttft_s=1e-6)
    )
    assert found.n_replicas is None
    assert max(point.n_replicas for point in found.tried) == 8


def test_more_replicas_keep_more_promises_and_waste_more(ready: PreparedFleet):
    found = curve(ready)
    recall = [point.recall_frac for point in found.points]
    assert recall == sorted(recall)
    assert recall[0] < 0.5 < recall[-1]
    after = [k for k, share in enumerate(recall) if share > 0.99]
    precision = [found.precision_frac[k] for k in after]
    assert precision == sorted(precision, reverse=True)


def test_beta_weighs_missed_work_against_wasted_time(ready: PreparedFleet):
    found = curve(ready)
    each_s = found.useful_accelerator_s_per_request
    assert found.beta_ratio == pytest.approx(sqrt(0.01 / (2.5 / HOUR * each_s)))
    # F is greatest where the cost of waste and delay over the useful time is least.
    useful = [
        share * point.paid_accelerator_s
        for share, point in zip(found.precision_frac, found.points, strict=True)
    ]
    ratio = [cost / u for cost, u in zip(found.cost_usd, useful, strict=True)]
    assert found.best == int(np.argmin(ratio))


def test_dear_delays_want_larger_fleets(ready: PreparedFleet):
    # An objective that larger fleets keep more and more often; an easy one is all or nothing.
    tight = replace(ASKED, slo=SloTargets(ttft_s=0.08))
    cheap, dear = (
        api.simulate_curve(
            ready, load(),
            CurveRequest(
                sizes=(1, 2, 3, 4, 6), waste_usd_per_accelerator_s=2.5 / HOUR,
                delay_usd_per_request=usd,
            ),
            request=tight,
        )
        for usd in (1e-5, 1.0)
    )  # fmt: skip
    assert cheap.points[cheap.best].n_replicas < dear.points[dear.best].n_replicas


def test_f_is_the_measure_of_the_textbook():
    assert f_measure(0.5, 0.5, 3.0) == pytest.approx(0.5)
    assert f_measure(0.2, 0.8, 1.0) == pytest.approx(2 * 0.2 * 0.8 / 1.0)
    assert f_measure(0.2, 0.8, 10.0) > f_measure(0.8, 0.2, 10.0)
    assert f_measure(0.0, 0.0, 1.0) == 0.0


def test_workers_change_nothing_but_the_time(ready: PreparedFleet):
    one, two = curve(ready), curve(ready, n_workers=2)
    assert pickle.dumps(one.points) == pickle.dumps(two.points)
    assert one.f_frac == two.f_frac


def test_wishes_without_sense_are_named(ready: PreparedFleet):
    with pytest.raises(InputError) as caught:
        curve(ready, sizes=(0, 5), waste_usd_per_accelerator_s=0.0, delay_usd_per_request=-1.0)
    assert len(caught.value.problems) == 3
    with pytest.raises(InputError, match="no request is within SLO"):
        api.simulate_curve(
            ready, load(n=200),
            CurveRequest(sizes=(1,), waste_usd_per_accelerator_s=1.0, delay_usd_per_request=1.0),
            request=SimulateRequest(slo=SloTargets(ttft_s=1e-6)),
        )  # fmt: skip


def test_the_sheet_shows_the_best_and_how_beta_came_about(ready: PreparedFleet):
    found = curve(ready)
    sheet = api.curve_sheet(found)
    assert sheet.document["best_replicas"] == found.points[found.best].n_replicas
    marked = [row[0] for row in sheet.tables[0].rows if row[0].startswith("→")]
    assert marked == [f"→ {found.points[found.best].n_replicas}"]
    assert any("beta²" in line for _, lines in sheet.remarks for line in lines)


def test_a_fleet_whose_queue_grows_is_not_recommended(ready: PreparedFleet):
    found = curve(ready, sizes=(1, 2, 3, 4), delay_usd_per_request=1e-9)
    assert found.points[0].is_overloaded, "one replica cannot carry the load"
    assert not found.points[found.best].is_overloaded
    alone = curve(ready, sizes=(1,))
    assert alone.points[alone.best].n_replicas == 1, "of nothing but overloaded sizes, the best"
