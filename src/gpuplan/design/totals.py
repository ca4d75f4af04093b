"""What only the whole shows, in: all work, machines and networks; out: objections."""

from collections.abc import Sequence

from gpuplan.design.power import site_findings
from gpuplan.domain.scenario.site import Site
from gpuplan.domain.system.facility import FacilityPlan
from gpuplan.domain.system.findings import Finding
from gpuplan.domain.system.parts import FabricPlan
from gpuplan.units import KW, TB


def crowd_findings(n_wanted: float, n_there: int) -> tuple[Finding, ...]:
    """More accelerators asked for by all work together than stand there."""
    if n_wanted <= n_there:
        return ()
    what = f"all work together takes {n_wanted:g} accelerators, {n_there} are there"
    fix = f"{n_wanted - n_there:g} accelerators more, or less work at a time"
    return (Finding(severity="error", rule="too-few", where="owned", what=what, fix=fix),)


def place_findings(
    plans: Sequence[FacilityPlan], fabrics: Sequence[FabricPlan], site: Site
) -> tuple[Finding, ...]:
    """Groups of machines share one place: power and racks are added up, switches too."""
    machines_w = sum(plan.level("machines").max_w for plan in plans)
    known = [plan.max_w for plan in fabrics if plan.max_w is not None]
    pue = max((plan.pue_ratio for plan in plans), default=1.0)
    found: tuple[Finding, ...] = ()
    alone = any(site_findings(plan.level("machines").max_w, pue, site) for plan in plans)
    if not alone:
        found = site_findings(machines_w + sum(known), pue, site)
    n_racks = sum(plan.n_racks for plan in plans)
    if len(plans) > 1 and site.n_racks is not None and n_racks > site.n_racks:
        what = f"all machines need {n_racks} racks, there are {site.n_racks}"
        fix = f"add {n_racks - site.n_racks} racks"
        found += (Finding(severity="error", rule="racks-sum", where="racks", what=what, fix=fix),)
    if known and plans:
        what = f"switches draw up to {sum(known) / KW:.1f} kW beside the machines"
        fix = "count them in circuits and cooling"
        found += (
            Finding(severity="note", rule="switch-power", where="network", what=what, fix=fix),
        )
    return found


def cache_findings(
    hit_frac: float, dataset_bytes: float, memory_bytes: float, *, where: str
) -> tuple[Finding, ...]:
    """A share of hits that memory cannot hold: a shuffled epoch hits what is kept, no more."""
    if hit_frac * dataset_bytes <= memory_bytes:
        return ()
    most = memory_bytes / dataset_bytes
    what = (
        f"{hit_frac:.0%} of {dataset_bytes / TB:g} TB shall come from memory, "
        f"all hosts hold {memory_bytes / TB:.1f} TB"
    )
    fix = f"count on {most:.0%} at most, or cache on local NVMe"
    return (Finding(severity="warning", rule="cache-size", where=where, what=what, fix=fix),)
