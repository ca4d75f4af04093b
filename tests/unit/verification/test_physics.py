"""Bounds of physics by hand: an H100 reads 3.35 TB/s and does 989 TFLOP/s in 16 bits."""

from dataclasses import replace

import pytest

from gpuplan.domain.scenario.workload import ModelRef, Training
from gpuplan.units import DAY
from gpuplan.verification.physics import physics_checks


def named(checks):
    return {check.name: check for check in checks}


def test_a_token_waits_for_its_weights(document, facts):
    check = named(physics_checks(document, facts))["assistant tpot p95: reading the weights once"]
    assert check.ok
    # Layers without the two tables: 6.98e9 parameters of 2 bytes over 3.35 TB/s.
    assert check.found == pytest.approx(6.98e9 * 2 / 3.35e12, rel=0.01)


def test_a_mig_slice_has_its_part_of_the_bandwidth(document, pool, facts):
    name = "assistant tpot p95: reading the weights once"
    whole = named(physics_checks(document, facts))[name].found
    pool["share"] = "1g.20gb"
    assert named(physics_checks(document, facts))[name].found == pytest.approx(4 * whole, rel=0.05)
    pool["share"] = "1/4"  # in its turn a time slice has all of it
    assert named(physics_checks(document, facts))[name].found == whole


def test_a_prompt_waits_for_its_arithmetic(document, facts):
    check = named(physics_checks(document, facts))["assistant ttft p95: arithmetic of a prompt"]
    assert check.found == pytest.approx(2 * 6.98e9 * 800 / 989e12, rel=0.01)


@pytest.mark.parametrize(("place", "what"), [(0, "arithmetic"), (1, "weights")])
def test_faster_than_light_is_found(document, facts, failed, place, what):
    document["plan"]["slo"]["promises"][place]["reached_s"]["value"] = 1e-4
    [name] = failed(physics_checks(document, facts))
    assert what in name


def test_a_load_beyond_the_peak_is_found(document, facts, failed):
    document["load"][0]["peak_requests_per_s"] = 1e5
    assert any("within the peak" in name for name in failed(physics_checks(document, facts)))


@pytest.mark.parametrize("factor", [0.001, 100.0])
def test_power_lies_between_idle_and_the_limit(document, facts, failed, factor):
    document["plan"]["power_w"]["value"] *= factor
    assert any(name.startswith("power") for name in failed(physics_checks(document, facts)))


def test_energy_is_no_more_than_the_highest_draw(document, facts, failed):
    document["plan"]["energy_j_per_month"] *= 10
    assert "energy: the highest draw, all month" in failed(physics_checks(document, facts))


def trained(facts, method="pretraining"):
    work = Training(
        method=method, n_tokens=1e12, n_samples=None, n_epochs=1.0, sequence_tokens=4096
    )
    workload = replace(
        facts.scenario.workloads[0], work=work, kind="pretraining", capacities=(),
        model=ModelRef(name=None, n_params=7e9),
    )  # fmt: skip
    return replace(facts, models={}, scenario=replace(facts.scenario, workloads=(workload,)))


@pytest.mark.parametrize(("days", "ok"), [(30, False), (42, False), (90, True)])
def test_a_run_takes_six_operations_per_parameter_and_token(
    document, pool, facts, failed, days, ok
):
    # 6 x 7e9 x 1e12 FLOP on 16 H100 at 0.75 of 989 TFLOP/s are 41 days; at 0.35, 88.
    pool["n_accelerators"], pool["precision"] = 16, "bf16"
    document["plan"]["span_s"] = days * DAY
    reached = {"value": days * DAY, "low": days * DAY, "high": days * DAY}
    document["plan"]["slo"]["promises"] = [
        {"workload": "assistant", "what": "deadline", "limit_s": 99 * DAY, "reached_s": reached}
    ]
    runs = [c for c in physics_checks(document, trained(facts)) if "run" in c.name]
    by_hand = 6 * 7e9 * 1e12 / (16 * 0.75 * 989.4e12)
    assert runs[0].found == pytest.approx(by_hand, rel=0.01)
    assert all(check.ok for check in runs) is (days * DAY >= by_hand)
    assert ok is (days * DAY >= by_hand) or days == 42
