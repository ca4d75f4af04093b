"""What a node draws and takes of a rack, in: catalog and a user's figures; out: a NodeDraw."""

from dataclasses import replace
from typing import NamedTuple

from gpuplan.calibration.power import CAP_CURVES, cap_estimate
from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.regions import INDUSTRY_PUE_RATIO
from gpuplan.design.facility import facility_plan
from gpuplan.design.power import capped, psu_set, swing_findings
from gpuplan.design.racks import Slowdown, fit_rack
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator, AcceleratorId, Server
from gpuplan.domain.money.rates import NodeKind
from gpuplan.domain.plan.selection import WallDraw
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.build import USUAL, BuildRules, RoomRules
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import OwnedNodes, Rack, Site
from gpuplan.domain.system.facility import BoardDraw, FacilityPlan, NodeDraw
from gpuplan.errors import InvariantError, one
from gpuplan.performance.power import (
    build_of,
    cap_slowdown,
    is_cliff,
    limit_w,
    loaded_idle_w,
    node_power,
)
from gpuplan.studies.power.carbon import pue_note
from gpuplan.units import KW

# Share of the highest draw over busy hours. Assumption; heavy training draws 0.76 [Newkirk2025].
TYPICAL_FRAC = 0.7
# What vendors say to provision over what nodes are observed to draw: 10.2 over 8.4 kW [Latif2025].
RATING_RATIO = 1.2


def server_with(catalog: Catalog, accelerator: Accelerator, n_accelerators: int) -> Server | None:
    """The catalog's server of this size whose limit is published; of several the thirstiest."""
    found = [
        server
        for server in catalog.servers.values()
        if server.accelerator == accelerator.id
        and server.n_accelerators == n_accelerators
        and server.power.limit_w is not None
    ]
    return max(found, key=lambda server: server.power.limit_w or 0.0, default=None)


def node_draw(
    catalog: Catalog,
    accelerator: Accelerator,
    n_accelerators: int,
    *,
    max_w: float | None = None,
    load_frac: float | None = None,
) -> tuple[NodeDraw, tuple[Assumption, ...]]:
    """The node: the user's limit, its vendor's, or from its parts; and what was assumed."""
    known = server_with(catalog, accelerator, n_accelerators)
    notes: list[Assumption] = []
    most = max_w or (known.power.limit_w if known else None)
    if most is None:
        most = _rated_w(accelerator, n_accelerators)
        notes.append(_rating_note(accelerator, most))
    if load_frac is None:
        load_frac = TYPICAL_FRAC
        notes.append(_load_note())
    board = _board(accelerator, load_frac)
    node = NodeDraw(
        name=known.name if known else f"{n_accelerators} x {accelerator.name}",
        n_accelerators=n_accelerators,
        idle_w=min(most, _idle_w(accelerator, n_accelerators, known)),
        typical_w=load_frac * most,
        max_w=most,
        board=board,
    )
    return (_with_server(node, known) if known else node), tuple(notes)


def _board(accelerator: Accelerator, load_frac: float) -> BoardDraw:
    limit = limit_w(accelerator)
    idle = loaded_idle_w(accelerator.power, limit)
    return BoardDraw(limit_w=limit, idle_w=idle, typical_w=max(idle, load_frac * limit))


def _idle_w(accelerator: Accelerator, n: int, server: Server | None) -> float:
    if server is not None and server.power.measured_idle_w is not None:
        return server.power.measured_idle_w
    idle = loaded_idle_w(accelerator.power, limit_w(accelerator))
    return node_power(n * idle, n, build=build_of(accelerator)).wall_w


def _rated_w(accelerator: Accelerator, n: int) -> float:
    drawn = node_power(n * limit_w(accelerator), n, build=build_of(accelerator)).wall_w
    return RATING_RATIO * drawn


def _with_server(node: NodeDraw, server: Server) -> NodeDraw:
    is_liquid = server.power.cooling.startswith("liquid")
    return replace(
        node,
        height_u=server.height_u,
        weight_kg=server.weight_kg,
        depth_m=server.depth_m,
        cooling="liquid" if is_liquid else "air",
        liquid_frac=RoomRules().liquid_frac if is_liquid else 0.0,
        psu=psu_set(server.power.psu),
    )


def slowdown_of(accelerator: Accelerator, drawn_w: float, *, is_saturated: bool) -> Slowdown:
    """What a power cap costs in time, as a range; None below the cliff, where none is known."""
    limit = limit_w(accelerator)

    def slowdown(cap_w: float) -> Range | None:
        if is_cliff(cap_w, limit):
            return None
        light, heavy = (
            cap_slowdown(drawn_w, cap_w, limit=limit, curve=CAP_CURVES[kind])
            for kind in ("light", "saturated")
        )
        found = cap_estimate(light, heavy, is_saturated=is_saturated)
        return Range(low=found.low, mid=found.value, high=found.high)

    return slowdown


def facility_of(
    catalog: Catalog,
    owned: OwnedNodes,
    site: Site,
    *,
    is_training: bool = False,
    build: BuildRules = USUAL,
) -> FacilityPlan:
    """The site of nodes that are or will be there: racks, power, cooling, findings."""
    accelerator = find_accelerator(owned.accelerator, catalog).accelerator
    node, notes = node_draw(
        catalog,
        accelerator,
        owned.n_accelerators_per_node,
        max_w=owned.node_max_w,
        load_frac=owned.mean_utilization_frac,
    )
    if owned.name:
        node = replace(node, name=owned.name)
    if node.cooling == "liquid":
        node = replace(node, liquid_frac=build.room.liquid_frac)
    if owned.accelerator_cap_w is not None:
        node = capped(node, owned.accelerator_cap_w)
    pue = site.pue_ratio
    if pue is None:
        pue = INDUSTRY_PUE_RATIO
        notes += (pue_note(),)
    drawn = node.board.typical_w if node.board else 0.0
    slowdown = slowdown_of(accelerator, drawn, is_saturated=is_training)
    plan = facility_plan(
        node, owned.n_nodes, site=site, pue_ratio=pue, slowdown=slowdown, build=build
    )
    swings = swing_findings(node, owned.n_nodes, is_training=is_training)
    return replace(plan, findings=plan.findings + swings, assumptions=(*notes, *plan.assumptions))


def _rating_note(accelerator: Accelerator, most: float) -> Assumption:
    return assume(
        f"highest draw of a node with {accelerator.name}",
        f"{most / KW:.1f} kW",
        f"no vendor's limit is known; its parts, and {RATING_RATIO - 1:.0%} as vendors add",
        "owned[].node_max_kw",
        "MLPerf-power",
    )


def _load_note() -> Assumption:
    return assume(
        "average draw over highest",
        f"{TYPICAL_FRAC:.0%}",
        "no utilization is given",
        "owned[].mean_utilization_frac",
    )


class NodeWatts(NamedTuple):
    """Of one node at its plug; zero where no limit of the accelerator is published."""

    max_w: float
    mean_w: float


def node_watts(catalog: Catalog, accelerator: str, n_accelerators: int) -> NodeWatts:
    """Highest and mean draw of one node: its maker's figure, or from its parts."""
    card = catalog.accelerators.get(AcceleratorId(accelerator))
    if card is None:
        what = f"{accelerator} is in no catalog"
        raise one(InvariantError, "plan", "power", what, "resolve names before pricing")
    if card.power.limit_w is None:
        return NodeWatts(max_w=0.0, mean_w=0.0)
    node, _ = node_draw(catalog, card, max(1, n_accelerators))
    return NodeWatts(max_w=node.max_w, mean_w=node.typical_w)


def wall_draw(catalog: Catalog, accelerator: str, n_accelerators: int) -> WallDraw | None:
    """How the draw at the wall follows that of the accelerators; None without a published limit."""
    card = catalog.accelerators[AcceleratorId(accelerator)]
    if card.power.limit_w is None:
        return None
    n, build = max(1, n_accelerators), build_of(card)
    host = node_power(0.0, n, build=build).wall_w
    return WallDraw(
        host_w=host,
        ratio=node_power(1.0, n, build=build).wall_w - host,
        idle_w=loaded_idle_w(card.power, card.power.limit_w),
        busy_w=TYPICAL_FRAC * card.power.limit_w,
    )


def moved_w(
    catalog: Catalog, accelerator: str, node_w: float | None, *, n: int, n_new: int
) -> float | None:
    """Draw of a node of another size with accelerators as busy as in one that draws so much."""
    old, new = (wall_draw(catalog, accelerator, each) for each in (n, n_new))
    if node_w is None or old is None or new is None:
        return None
    each_w = max(0.0, node_w - old.host_w) / old.ratio / max(1, n)
    return new.host_w + new.ratio * each_w * n_new


def racks_per_node(scenario: Scenario, catalog: Catalog, node: NodeKind) -> float:
    """Share of a rack that a node takes; more than all racks where it fits into none."""
    site = scenario.site
    card = catalog.accelerators.get(AcceleratorId(node.accelerator))
    if site is None or site.n_racks is None or card is None or card.power.limit_w is None:
        return 0.0
    drawn, _ = node_draw(catalog, card, max(1, node.n_accelerators))
    fit = fit_rack(drawn, site.rack or Rack(), room=scenario.policy.build.room)
    if not fit.limits:
        return 0.0
    return 1.0 / fit.n_nodes if fit.n_nodes else site.n_racks + 1.0
