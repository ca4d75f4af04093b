"""What a chosen fleet costs at other loads, in: a choice; out: its bill over the load.

Every point is a bill of the selection itself: growth, owned nodes, commitments and sharers count as
they do in the plan.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpuplan.candidates.need import loads_of
from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.plan.cost_curve import engines_of
from gpuplan.domain.plan.packing import accelerators_for
from gpuplan.domain.plan.selection import FleetOption
from gpuplan.domain.plan.sizing import DemandProfile
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.priced import priced

# Of the planned load, or of the time of a step.
RATIOS = (*(k / 20 for k in range(6, 32)), *(k / 10 for k in range(16, 36, 2)))


class BilledLoads(NamedTuple):
    """USD a month over the load: what moves with rents, and what is owned or committed."""

    ratios: Floats
    fixed_usd: Floats
    moving_usd: Floats

    def usd(self, ratios: Floats | float, prices: Floats | float = 1.0) -> Floats:
        """At these ratios of the load, rents being at these ratios of today's."""
        at = np.asarray(ratios, dtype=np.float64)
        fixed, moving = (self._at(at, usd) for usd in (self.fixed_usd, self.moving_usd))
        return floats(fixed + moving * prices)

    def own(self, usd_per_month: float) -> "BilledLoads":
        """The part of a fleet that is billed at so much today, whatever else is in the bill."""
        now = int(np.flatnonzero(self.ratios == 1.0)[0])
        fixed, moving = self.fixed_usd[now], self.moving_usd[now]
        share = usd_per_month / max(fixed + moving, 1e-9)
        return self._replace(
            fixed_usd=floats(np.maximum(0.0, self.fixed_usd - fixed * (1.0 - share))),
            moving_usd=floats(np.maximum(0.0, self.moving_usd - moving * (1.0 - share))),
        )

    def _at(self, at: Floats, usd: Floats) -> Floats:
        """On the line between bills; beyond the last one in proportion."""
        beyond = np.maximum(1.0, at / self.ratios[-1])
        return floats(np.interp(at, self.ratios, usd) * beyond)


def billed_loads(choice: Choice, option: FleetOption, demand: DemandProfile) -> BilledLoads:
    """The bill of a chosen fleet, and of whatever is chosen beside it, over its load."""
    known: list[tuple[float, float, float]] = []
    # Neighbouring loads often take the same fleet, which is billed once.
    bills: dict[bytes, Choice | None] = {}
    for ratio in RATIOS:
        scaled = option if ratio == 1.0 else _at_load(choice, option, demand, ratio)
        key = b"" if scaled is option else scaled.need.tobytes()
        if key not in bills:
            bills[key] = priced(choice, scaled, has_limits=False) if key else choice
        found = bills[key]
        if found is not None:
            known.append((ratio, *_parts_usd(found)))
    return BilledLoads(*(floats(column) for column in np.array(known).T))


def _parts_usd(choice: Choice) -> tuple[float, float]:
    """USD a month that stays as it is when rents move, and that moves with them."""
    fixed = moving = 0.0
    for line in choice.bill:
        rate = choice.table.rates.get(line.terms)
        usd = line.nominal_cents / 100.0 / choice.n_months
        if rate is None or rate.is_committed:
            fixed += usd
        else:
            moving += usd
    return fixed, moving


def _at_load(
    choice: Choice, option: FleetOption, demand: DemandProfile, ratio: float
) -> FleetOption:
    """The same fleet with as many replicas as another load takes, in every hour of every period."""
    row = choice.table.row_of(option)
    each, rate = row.sized.candidate, row.sized.capacity_per_s
    size = 1 if option.slice_kind else accelerators_for(each, 1, row.n_per_node) or 1
    replicas = ints(np.ceil(option.need / size))
    loads = _loads(demand, row.place, replicas) if rate and not row.is_window else None
    if (
        rate is None
        or loads is None
        or not np.array_equal(_whole(floats(loads / rate.value)), replicas)
    ):
        more = _whole(floats(replicas * ratio))  # sized load by load: in proportion
    else:
        more = _whole(floats(loads * ratio / rate.value))
    if option.slice_kind:
        return replace(option, need=more)
    layout = each.layout
    if (
        layout.is_disaggregated
        and layout.network_bytes_per_s is not None
        and rate
        and loads is not None
    ):
        groups = engines_of(layout, floats(loads * ratio / rate.value))
        return replace(option, need=ints(groups * layout.engine.n_accelerators))
    table = [accelerators_for(each, k, row.n_per_node) or 0 for k in range(more.max() + 1)]
    return replace(option, need=ints(np.asarray(table)[more]))


def _loads(demand: DemandProfile, place: Ints, like: Ints) -> Floats | None:
    """Loads in the shape of a need; None where they are of other hours."""
    loads = loads_of(demand)[: like.shape[0]]
    if place.max(initial=0) >= loads.shape[2]:
        return None
    found = np.pad(loads[:, :, place], ((0, 0), (like.shape[1] - loads.shape[1], 0), (0, 0)))
    return floats(found) if found.shape == like.shape else None


def _whole(n: Floats) -> Ints:
    return ints(np.ceil(n - 1e-9).astype(np.int64))
