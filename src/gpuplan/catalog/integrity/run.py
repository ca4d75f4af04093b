"""Is the catalog sound? In: a Catalog and today's date; out: every objection, worst first.

Offers and prices have their own rules beside their own loader.
"""

from collections.abc import Callable, Iterator
from datetime import date

from gpuplan.catalog.integrity import facts as rules_facts
from gpuplan.catalog.integrity import hardware as rules_hardware
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.system.findings import Finding

Rule = Callable[[Catalog], Iterator[Finding]]
DatedRule = Callable[[Catalog, date], Iterator[Finding]]

FACT_RULES: tuple[Rule, ...] = (
    rules_facts.unknown_quantity,
    rules_facts.unknown_unit,
    rules_facts.unknown_source,
    rules_facts.impossible_value,
    rules_facts.doubled_fact,
    rules_facts.not_one_preferred,
    rules_facts.reason_missing,
    rules_facts.incomplete_item,
    rules_facts.price_order,
)
HARDWARE_RULES: tuple[Rule, ...] = (
    rules_hardware.dense_ratio,
    rules_hardware.vector_rate,
    rules_hardware.ceiling_above_peak,
    rules_hardware.balance,
    rules_hardware.memory_order,
    rules_hardware.memory_technology,
    rules_hardware.form_factor,
    rules_hardware.form_factor_pair,
    rules_hardware.link_direction,
    rules_hardware.host_link,
    rules_hardware.idle_power,
    rules_hardware.mig_profile,
    rules_hardware.server_parts,
    rules_hardware.server_power,
    rules_hardware.switch_power,
    rules_hardware.shared_name,
)
DATED_RULES: tuple[DatedRule, ...] = (
    rules_facts.impossible_month,
    rules_facts.status_stated,
    rules_facts.unsound_source,
)
_ORDER = {"error": 0, "warning": 1, "note": 2}


def check_catalog(catalog: Catalog, *, today: date) -> tuple[Finding, ...]:
    """Every objection of every rule; empty where the catalog is sound."""
    found: list[Finding] = []
    for rule in (*FACT_RULES, *HARDWARE_RULES):
        found += rule(catalog)
    for dated in DATED_RULES:
        found += dated(catalog, today)
    return tuple(sorted(found, key=lambda finding: _ORDER[finding.severity]))


def looked_at(catalog: Catalog) -> dict[str, int]:
    """Rows that each rule looks at: facts, items of hardware, or sources."""
    n_facts = sum(len(facts) for facts in catalog.facts.values())
    n_items = sum(len(each) for each in (catalog.accelerators, catalog.servers, catalog.storage))
    names = {rule.__name__: n_facts for rule in FACT_RULES}
    names |= {rule.__name__: n_items for rule in HARDWARE_RULES}
    n_cards = len(catalog.accelerators)
    names |= {"impossible_month": n_cards, "status_stated": n_cards}
    names["unsound_source"] = len(catalog.sources)
    return {name.replace("_", "-"): n for name, n in names.items()}
