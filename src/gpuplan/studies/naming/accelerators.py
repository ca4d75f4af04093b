"""Accelerators that a policy names, in: names, vendors and kinds; out: ids of the catalog."""

from collections.abc import Sequence

from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.scenario.terms import Policy

KINDS = ("tpu", "cpu", "gaudi", "trainium", "inferentia")  # as their ids begin


def allowed_ids(
    policy: Policy, catalog: Catalog
) -> tuple[tuple[frozenset[str], frozenset[str]], tuple[Assumption, ...]]:
    """Accelerators that the policy names, as the catalog calls them; none allowed: all are."""
    told: list[Assumption] = []

    def ids(names: Sequence[str]) -> frozenset[str]:
        groups = [group_ids(name, catalog) for name in names]
        single = [name for name, group in zip(names, groups, strict=True) if not group]
        choices = [find_accelerator(name, catalog) for name in single]
        told.extend(a for choice in choices for a in choice.assumptions)
        found = {str(choice.accelerator.id) for choice in choices}
        return frozenset(found.union(*groups))

    allowed, forbidden = ids(policy.accelerators.allowed), ids(policy.accelerators.forbidden)
    return (allowed, forbidden), tuple(told)


def group_ids(name: str, catalog: Catalog) -> frozenset[str]:
    """What a vendor or a kind (tpu, cpu, gaudi …) stands for; empty: the name is neither."""
    word = name.strip().casefold()
    return frozenset(
        str(card.id)
        for card in catalog.accelerators.values()
        if (word == card.vendor.casefold() and not str(card.id).startswith("cpu-"))
        or (word in KINDS and str(card.id).startswith(word))
    )
