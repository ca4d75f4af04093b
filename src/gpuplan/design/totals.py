"""Objections that only the whole shows: all work, all servers and all networks together."""

from collections.abc import Sequence

from gpuplan.design.power import site_findings
from gpuplan.domain.scenario.site import Site
from gpuplan.domain.system.facility import FacilityPlan
from gpuplan.domain.system.findings import Finding, error, note, warning
from gpuplan.domain.system.parts import FabricPlan
from gpuplan.units import KW, TB


def count_findings(n_wanted: float, n_there: int) -> tuple[Finding, ...]:
    """An error where all work together takes more accelerators than there are."""
    if n_wanted <= n_there:
        return ()
    what = f"all work together takes {n_wanted:g} accelerators, {n_there} are there"
    fix = f"{n_wanted - n_there:g} accelerators more, or less work at a time"
    return (error("too-few", "owned", what, fix),)


def shared_site_findings(
    plans: Sequence[FacilityPlan], fabrics: Sequence[FabricPlan], site: Site
) -> tuple[Finding, ...]:
    """Objections to groups of servers on one site, whose power, racks and switches add up."""
    draws = [plan.level("machines").max_w for plan in plans]
    switch_w = [plan.max_w for plan in fabrics if plan.max_w is not None]
    pue = max((plan.pue_ratio for plan in plans), default=1.0)
    found: tuple[Finding, ...] = ()
    if not any(site_findings(draw, pue, site) for draw in draws):
        found = site_findings(sum(draws) + sum(switch_w), pue, site)
    n_racks = sum(plan.n_racks for plan in plans)
    if len(plans) > 1 and site.n_racks is not None and n_racks > site.n_racks:
        what = f"all servers need {n_racks} racks, there are {site.n_racks}"
        found += (error("racks-sum", "racks", what, f"add {n_racks - site.n_racks} racks"),)
    if switch_w and plans:
        what = f"switches draw up to {sum(switch_w) / KW:.1f} kW beside the servers"
        found += (note("switch-power", "network", what, "count them in circuits and cooling"),)
    return found


def cache_findings(
    hit_frac: float, dataset_bytes: float, memory_bytes: float, *, where: str
) -> tuple[Finding, ...]:
    """A warning where memory cannot hold what the stated cache hit rate requires."""
    if hit_frac * dataset_bytes <= memory_bytes:
        return ()
    what = (
        f"{hit_frac:.0%} of {dataset_bytes / TB:g} TB shall come from memory, "
        f"all hosts hold {memory_bytes / TB:.1f} TB"
    )
    fix = f"count on {memory_bytes / dataset_bytes:.0%} at most, or cache on local NVMe"
    return (warning("cache-size", where, what, fix),)
