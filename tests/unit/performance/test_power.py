"""Power against published listings, the arithmetic of a rack, and its own limits."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.calibration.power import (
    CAP_CURVES,
    LEAST_BUSY_FRAC,
    busy_frac,
    cap_estimate,
    power_constants,
)
from gpuplan.calibration.power import power_estimate as estimate
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.hardware.power import PowerConstants, Utilization
from gpuplan.errors import CatalogError
from gpuplan.performance import power as p

H100 = find_accelerator("h100-sxm", read_catalog()).accelerator
CONSTANTS = power_constants(H100)
SHARE = st.floats(0.0, 1.0)
CARDS = [card for card in read_catalog().accelerators.values() if card.power.limit_w]


def draw(use: Utilization, card: Accelerator = H100) -> float:
    return p.accelerator_power_w(card, use, power_constants(card))


def test_idle_is_not_zero() -> None:
    assert draw(Utilization(compute_frac=0.0)) == H100.power.loaded_idle_w


def test_prefill_and_training_come_near_the_limit() -> None:
    assert 0.9 * 700 < draw(Utilization(compute_frac=0.5, other_memory_frac=0.3)) <= 700


def test_decode_draws_less_than_prefill() -> None:
    decode = draw(Utilization(compute_frac=0.01, weight_memory_frac=0.6))
    assert 350 < decode < 0.85 * draw(Utilization(compute_frac=0.5, other_memory_frac=0.3))


def test_waiting_for_the_host_saves_power() -> None:
    busy = Utilization(compute_frac=0.05, weight_memory_frac=0.1)
    waiting = replace(busy, busy_frac=busy_frac("host-bound"))
    assert draw(waiting) < 0.8 * draw(busy)


def test_boards_that_wait_for_the_host_wait_less_where_more_is_asked() -> None:
    shares = [busy_frac("image-chat", asked_frac=asked) for asked in (0.0, 0.075, 0.3, 2.0)]
    assert shares == sorted(shares)
    assert shares[1] == pytest.approx(0.5 * shares[2])
    assert (shares[0], shares[-1]) == (LEAST_BUSY_FRAC, 1.0)
    assert busy_frac("text", step_s=0.02) == busy_frac("text", step_s=0.02, asked_frac=0.01)


def test_narrow_weights_cost_more_per_byte() -> None:
    wide = Utilization(compute_frac=0.02, weight_memory_frac=0.2)
    assert draw(replace(wide, weight_bytes_per_param=0.53)) > draw(wide)


def test_unknown_limit_is_said_not_guessed() -> None:
    tpu = find_accelerator("tpu-v5e", read_catalog()).accelerator
    with pytest.raises(CatalogError, match="overlay"):
        draw(Utilization(compute_frac=0.1), tpu)


def test_unmeasured_family_has_a_wider_range() -> None:
    mi300x = find_accelerator("mi300x", read_catalog()).accelerator
    known, new = estimate(500.0, H100), estimate(500.0, mi300x)
    assert new.high - new.low > known.high - known.low
    assert (known.tier, new.tier) == ("fitted", "estimated")


def test_a_cap_above_the_demand_costs_nothing() -> None:
    for curve in CAP_CURVES.values():
        assert p.cap_slowdown(400.0, 500.0, limit=700.0, curve=curve) == 1.0


def test_cap_of_450_watts_costs_a_range() -> None:
    """A full H100 at 450 of 700 W: 10 to 30 % slower, never nothing, never double."""
    slow = {k: p.cap_slowdown(680.0, 450.0, limit=700.0, curve=c) for k, c in CAP_CURVES.items()}
    found = cap_estimate(slow["light"], slow["saturated"], is_saturated=True)
    assert 1.0 < found.low < found.value < found.high < 1.6
    assert 1.1 < found.value < 1.35


def test_published_caps_of_a_prefill_fall_between_the_curves() -> None:
    """RTX 3090: 300 W 1.06, 250 W 1.17 [llmgarage]; below, the cliff is announced."""
    for cap, measured in ((300.0, 1.06), (250.0, 1.17)):
        light, heavy = (
            p.cap_slowdown(350.0, cap, limit=350.0, curve=CAP_CURVES[kind])
            for kind in ("light", "saturated")
        )
        assert light - 0.02 <= measured <= heavy + 0.02
    assert p.is_cliff(150.0, 350.0)
    assert not p.is_cliff(200.0, 350.0)


def test_node_is_more_than_its_accelerators() -> None:
    """Eight B200: 10.5 kW at the wall on air, 11.8 at most [MLPerf]; idle 2.5 to 3.1 kW."""
    # Eight B200 at their limit: between the 95th percentile and the highest reading.
    assert 10_500 < p.node_power(8 * 1000.0, 8).wall_w < 11_850
    assert 9_650 < p.node_power(8 * 1000.0, 8, build="island, liquid").wall_w < 10_450
    assert p.node_power(8 * 141.0, 8).wall_w == pytest.approx(2_800, rel=0.12)
    assert p.node_power(8 * 70.0, 8).wall_w == pytest.approx(2_200, rel=0.15)
    desktop = p.node_power(430.0, 1, build="desktop")  # with an RTX 4090
    assert desktop.wall_w == pytest.approx(606, rel=0.08)


def test_a_machine_is_built_for_its_boards() -> None:
    cards = read_catalog().accelerators
    assert p.build_of(cards["h100-sxm"]) == "island"
    assert p.build_of(cards["a100-sxm-80gb"]) == "island, old"
    assert p.build_of(cards["b200-sxm"], is_liquid=True) == "island, liquid"
    assert p.build_of(cards["l4"]) == "cards"
    assert p.build_of(cards["cpu-epyc-9654"]) == "processors"
    assert p.build_of(cards["rtx-4090"]) == "desktop"
    one = p.node_power(300.0, 1, build="cards").host_w
    assert p.node_power(600.0, 2, build="cards").host_w > one + 90.0


@given(card=st.sampled_from(CARDS), compute=SHARE, memory=SHARE, other=SHARE, busy=SHARE)
def test_draw_stays_between_idle_and_limit(
    card: Accelerator, compute: float, memory: float, other: float, busy: float
) -> None:
    use = Utilization(
        compute_frac=compute, weight_memory_frac=memory, other_memory_frac=other, busy_frac=busy
    )
    limit = p.limit_w(card)
    assert p.loaded_idle_w(card.power, limit) <= draw(use, card) <= limit


@given(compute=SHARE, memory=SHARE, more=SHARE)
def test_more_work_never_draws_less(compute: float, memory: float, more: float) -> None:
    base = draw(Utilization(compute_frac=compute, weight_memory_frac=memory))
    assert draw(Utilization(compute_frac=compute + more, weight_memory_frac=memory)) >= base
    assert draw(Utilization(compute_frac=compute, weight_memory_frac=memory + more)) >= base


@given(
    draw_w=st.floats(50, 700), cap=st.floats(100, 700), looser=st.floats(1.0, 3.0),
    kind=st.sampled_from(sorted(CAP_CURVES)),
)  # fmt: skip
def test_a_looser_cap_is_never_slower(draw_w: float, cap: float, looser: float, kind: str) -> None:
    curve = CAP_CURVES[kind]
    tight = p.cap_slowdown(draw_w, cap, limit=700.0, curve=curve)
    loose = p.cap_slowdown(draw_w, cap * looser, limit=700.0, curve=curve)
    assert 1.0 <= loose <= tight * (1 + 1e-9)


@given(watt=st.floats(1e-3, 1e3), compute=SHARE, memory=SHARE)
def test_power_is_in_watts(watt: float, compute: float, memory: float) -> None:
    use = Utilization(compute_frac=compute, weight_memory_frac=memory)
    resized = replace(
        H100, power=replace(H100.power, limit_w=700.0 * watt, idle_w=None, loaded_idle_w=None)
    )
    plain = replace(H100, power=replace(H100.power, idle_w=None, loaded_idle_w=None))
    constants = PowerConstants(memory_ratio=0.6, compute_ratio=3.0, unpack_ratio=1.0)
    assert p.accelerator_power_w(resized, use, constants) == pytest.approx(
        watt * p.accelerator_power_w(plain, use, constants)
    )
