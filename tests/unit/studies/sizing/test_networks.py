"""Networks that are no language models: latency follows the load, one model has one cost."""

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.plan.sizing import Sized, SizingOptions
from gpuplan.domain.requests.requests import NetworkRequest
from gpuplan.inputs.scenario.read import scenario_from_dict
from gpuplan.studies.networks.predict import predict_network
from gpuplan.studies.sizing.likely import probability_of
from gpuplan.studies.sizing.task import SizingContext, task_of
from gpuplan.studies.sizing.workload import size_workload

CATALOG = read_catalog()


def sizing(model, cards, *, slo=None, demand=None, batch=None, **request):
    work = {
        "name": "w",
        "kind": "batch_inference" if batch else "online_inference",
        "model": model,
        "request": {"input_tokens": 256, "output_tokens": 0, **request},
    }
    work |= {"batch": batch} if batch else {"demand": demand, "slo": slo or {"e2e_p95_s": 1.0}}
    tree = {"name": "s", "workloads": [work], "policy": {"accelerators": {"allowed": cards}}}
    scenario = scenario_from_dict(tree)
    return size_workload(scenario.workloads[0], scenario, SizingContext(catalog=CATALOG))


def sized(*arguments, **keys) -> Sized:
    [found] = sizing(*arguments, **keys).sized
    return found


def test_latency_rises_with_the_load_of_one_board_and_stays_within_the_limit():
    quiet = sized("bge-m3", ["l4"], demand={"requests_per_s": 5})
    busy = sized("bge-m3", ["l4"], demand={"requests_per_s": 60})
    assert quiet.need.n_peak == busy.need.n_peak == 1
    assert quiet.limits[0].reached_s.value < busy.limits[0].reached_s.value
    assert all(each.limits[0].is_kept for each in (quiet, busy))


def test_a_quiet_service_answers_in_little_more_than_the_time_of_one():
    one_s = predict_network("flux", "h100-sxm", NetworkRequest(n_steps=28)).batch_s.value
    rate = {"requests_per_s": 0.02 / one_s}
    found = sized("flux", ["h100-sxm"], demand=rate, slo={"e2e_p95_s": 20.0}, steps=28)
    assert found.limits[0].reached_s.value == pytest.approx(one_s, rel=0.1)


def test_more_load_never_takes_fewer_boards():
    counts = [
        sized("SDXL", ["h100-sxm"], demand={"requests_per_s": rate}, slo={"e2e_p95_s": 20.0})
        for rate in (0.5, 1, 2, 4, 8)
    ]
    numbers = [each.need.n_peak for each in counts]
    assert numbers == sorted(numbers)
    assert numbers[-1] >= 8 * counts[0].utilization.safe_frac * numbers[0] / 2


def test_a_tighter_slo_never_takes_fewer_boards():
    wide, tight = (
        sized("flux", ["h100-sxm"], demand={"requests_per_s": 2}, slo={"e2e_p95_s": limit})
        for limit in (60.0, 12.0)
    )
    assert wide.need.n_peak <= tight.need.n_peak


def test_two_flux_images_a_second_are_served_on_h100():
    found = sized("flux", ["h100-sxm"], demand={"requests_per_s": 2}, slo={"e2e_p95_s": 20.0})
    # 5.3 s an image: 10.6 boards busy, and room for chance.
    assert 11 <= found.need.n_peak <= 15


def test_what_takes_longer_than_the_limit_is_rejected_with_its_time():
    found = sizing("flux", ["h100-sxm"], demand={"requests_per_s": 1}, slo={"e2e_p95_s": 1.0})
    assert not found.sized
    reasons = [each.reason for each in found.rejected if each.candidate.accelerator == "h100-sxm"]
    assert "one sample takes" in reasons[0]


def test_weights_that_do_not_fit_are_rejected():
    found = sizing("flux", ["l4"], demand={"requests_per_s": 0.01}, slo={"e2e_p95_s": 900.0})
    [rejected] = [each for each in found.rejected if each.candidate.accelerator == "l4"]
    assert "23.8 GB" in rejected.reason


def test_ten_thousand_hours_a_day_take_five_a100():
    found = sized(
        "whisper large-v3",
        ["a100-sxm-80gb"],
        batch={"docs_per_day": 1_200_000, "deadline_h": 24},
        audio_s=30,
    )
    # 10,000 h in 24 h is 417 times real time; one board does 92 at best.
    assert found.need.n_peak == 5


def test_a_closed_loop_of_clients_is_sized_by_what_they_ask():
    found = sized("bge-m3", ["l4"], demand={"concurrent_requests": 100})
    assert found.need.n_peak >= 1
    assert found.limits[0].is_kept


def likely_flux(limit_s):
    work = {
        "name": "w",
        "kind": "online_inference",
        "model": "black-forest-labs/FLUX.1-dev",
        "request": {"input_tokens": 77, "output_tokens": 0, "steps": 28},
        "demand": {"requests_per_s": 0.3},
        "slo": {"e2e_p95_s": limit_s},
    }
    tree = {"name": "s", "workloads": [work], "policy": {"accelerators": {"allowed": ["h100-sxm"]}}}
    scenario = scenario_from_dict(tree)
    options = SizingOptions(min_probability_frac=0.8)
    context = SizingContext(catalog=CATALOG, options=options)
    [found] = size_workload(scenario.workloads[0], scenario, context).sized
    return found, probability_of(task_of(scenario.workloads[0], scenario, context), found)


def test_no_number_of_boards_makes_one_batch_shorter():
    one_s = predict_network("flux", "h100-sxm", NetworkRequest(n_steps=28)).batch_s
    tight, odds = likely_flux(1.05 * one_s.value)
    # Half of all that may be true is slower than predicted, and then no batch is in time.
    assert odds < 0.6
    assert tight.limits[0].reached_s.high > tight.limits[0].limit_s
    wide, sure = likely_flux(4 * one_s.high)
    assert sure >= 0.8
    assert wide.limits[0].reached_s.value < wide.limits[0].limit_s


def test_latency_and_utilization_are_those_of_the_fleet_that_is_planned():
    found, _ = likely_flux(60.0)
    one_s = predict_network("flux", "h100-sxm", NetworkRequest(n_steps=28)).batch_s.value
    n = found.need.n_peak
    assert any("more than the predicted speed needs" in remark for remark in found.remarks)
    assert found.utilization.peak_frac == pytest.approx(0.3 * one_s / n, rel=0.05)


def test_a_query_to_a_reranker_is_answered_when_all_its_passages_are_scored():
    one = sized("BAAI/bge-reranker-v2-m3", ["l4"], demand={"requests_per_s": 2})
    fifty = sized("BAAI/bge-reranker-v2-m3", ["l4"], demand={"requests_per_s": 2}, texts=50)
    batch = NetworkRequest(batch=50, n_tokens=256)
    batch_s = predict_network("BAAI/bge-reranker-v2-m3", "l4", batch).batch_s.value
    assert fifty.limits[0].reached_s.value >= batch_s > 10 * one.limits[0].reached_s.value
    assert fifty.capacity_per_s.value < one.capacity_per_s.value / 20


def test_many_servers_are_pools_and_take_about_in_proportion():
    few, many = (
        sized("bge-m3", ["l4"], demand={"requests_per_s": rate}).need.n_peak
        for rate in (16_000, 160_000)
    )
    assert few > 32
    assert many == pytest.approx(10 * few, rel=0.02)


@pytest.mark.parametrize("texts", [1, 8, 32])
def test_texts_of_a_request_are_work_of_it(texts):
    """As many texts a second take as many boards, however they are bundled into requests."""
    rate = {"requests_per_s": 4000 / texts}
    bundled = sized("bge-m3", ["l4"], demand=rate, texts=texts, slo={"e2e_p95_s": 5.0})
    single = sized("bge-m3", ["l4"], demand={"requests_per_s": 4000}, slo={"e2e_p95_s": 5.0})
    assert bundled.need.n_peak == pytest.approx(single.need.n_peak, rel=0.15)
    assert bundled.limits[0].reached_s.value >= 0.9 * single.limits[0].reached_s.value


def test_a_larger_bundle_within_the_same_limit_never_takes_fewer_boards():
    counts = [
        sized("bge-m3", ["l4"], demand={"requests_per_s": 20}, texts=n).need.n_peak
        for n in (1, 10, 60)
    ]
    assert counts == sorted(counts)


def test_a_legacy_board_is_told():
    load = {"requests_per_s": 20}
    assert any("legacy board" in each for each in sized("bge-m3", ["t4"], demand=load).remarks)
    assert not any("legacy" in each for each in sized("bge-m3", ["l4"], demand=load).remarks)
