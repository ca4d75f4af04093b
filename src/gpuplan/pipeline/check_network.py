"""Machines that talk to each other, in: training work, adapters; out: stage and fabrics."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

from gpuplan.design.fabric import fabric_counts
from gpuplan.design.fabric_parts import (
    ENOUGH_FRAC,
    cheapest_sufficient,
    fabric_options,
    fabric_plan,
    switch_for,
)
from gpuplan.domain.design import FabricPlan, Stage, StageOption
from gpuplan.domain.findings import Finding
from gpuplan.domain.hardware import Link, PartId
from gpuplan.domain.scaling import NodeLinks, ScaleCurve, ScaleLayout, ScaleRequest
from gpuplan.domain.scenario import Scenario
from gpuplan.domain.site import NodeNetwork
from gpuplan.domain.training import Recompute, Sharding
from gpuplan.domain.workload import Layout, Training, Workload
from gpuplan.pipeline.check_data import Ground
from gpuplan.pipeline.node_draw import server_with
from gpuplan.pipeline.scale import scale
from gpuplan.units import GBIT

SHARDINGS: dict[str, Sharding] = {
    "fsdp": "zero3", "hsdp": "zero3", "zero3": "zero3", "zero2": "zero2", "zero1": "zero1",
    "ddp": "none", "none": "none",
}  # fmt: skip
MANAGEMENT_PORTS = 2  # of a node: its controller and its system. Assumption.

Again = Literal["none", "selective", "full"]
EfficiencyOf = Callable[[int, float], float]  # nodes, bytes/s that leave one


class Talk(NamedTuple):
    """What the exchange between machines costs, and over which networks it would cost less."""

    stages: tuple[Stage, ...] = ()
    findings: tuple[Finding, ...] = ()
    efficiency: EfficiencyOf | None = None


def network_of(scenario: Scenario, ground: Ground) -> NodeNetwork | None:
    """The machines' own adapters, else the site's; None where neither is described."""
    site = scenario.site.network if scenario.site else None
    owned = ground.owned
    if owned.n_nics is None or owned.nic_bytes_per_s is None:
        return site
    kind = site.kind if site else "ethernet"
    ratio = site.oversubscription_ratio if site else 1.0
    return NodeNetwork(
        kind=kind, n_nics_per_node=owned.n_nics, nic_bytes_per_s=owned.nic_bytes_per_s,
        oversubscription_ratio=ratio,
    )  # fmt: skip


def talk_of(scenario: Scenario, work: Workload, ground: Ground) -> Talk:
    """The exchange of a training run over several machines; nothing for other work."""
    if not isinstance(work.work, Training) or ground.n_nodes < 2:
        return Talk()
    request = _request(work, work.work, ground)
    if request is None:
        what = "without a named model the exchange between machines is not judged"
        return Talk(findings=(_finding(work, what, "name the model"),))
    network = network_of(scenario, ground)
    if network is None:
        what = "how machines are joined is not described: their exchange is not judged"
        return Talk(findings=(_finding(work, what, "give site.network"),))
    ask = request

    def efficiency(n_nodes: int, node_bytes_per_s: float) -> float:
        if n_nodes < 2:
            return 1.0
        return _curve(ask, n_nodes, node_bytes_per_s).points[-1].efficiency_frac

    rate = node_rate(network)
    curve = _curve(request, ground.n_nodes, rate)
    return Talk(stages=(_stage(curve, rate),), efficiency=efficiency)


def node_rate(network: NodeNetwork) -> float:
    """Bytes a second that a node gets across the fabric when all talk."""
    whole = network.n_nics_per_node * network.nic_bytes_per_s
    return whole / network.oversubscription_ratio


def _request(work: Workload, run: Training, ground: Ground) -> ScaleRequest | None:
    if work.model is None or work.model.name is None:
        return None
    layout = work.layout or Layout()
    batch = run.accelerator_batch_tokens or run.sequence_tokens
    return ScaleRequest(
        model=work.model.name,
        accelerator=str(ground.accelerator.id),
        counts=(ground.owned.n_accelerators_per_node,),
        micro_batch=max(1, round(batch / run.sequence_tokens)),
        sequence_tokens=run.sequence_tokens,
        n_micro_batches=layout.n_accumulation_steps or 1,
        layout=ScaleLayout(
            sharding=SHARDINGS.get(layout.sharding or "fsdp", "zero3"),
            is_hybrid=layout.sharding == "hsdp",
            tp=layout.n_tensor or 1,
        ),
        recompute=_recompute(layout.recompute),
        links=NodeLinks(n_node=ground.owned.n_accelerators_per_node),
        mfu_frac=run.mfu_frac.mid if run.mfu_frac else None,
    )


def _recompute(given: str | None) -> Recompute:
    known: dict[str, Again] = {"none": "none", "selective": "selective", "full": "full"}
    return known.get(given or "full", "full")


def _curve(request: ScaleRequest, n_nodes: int, node_bytes_per_s: float) -> ScaleCurve:
    n_node = request.links.n_node
    links = replace(request.links, adapters_bytes_per_s=node_bytes_per_s)
    return scale(replace(request, links=links, counts=(n_node, n_nodes * n_node)))


def _stage(curve: ScaleCurve, rate: float) -> Stage:
    last = curve.points[-1]
    ratio = last.step_s / last.compute_s
    ways = "; ".join(f"{r.what} ({r.efficiency_frac:.0%})" for r in curve.remedies)
    return Stage(
        name="network between nodes",
        load_ratio=1.0 / last.efficiency_frac - 1.0,
        is_overlapped=False,
        n_wanted=rate * ratio,
        n_given=rate,
        unit="bytes/s",
        fix=f"before adding accelerators: {ways}"
        if ways
        else "more adapters, or more work per step",
        options=tuple(
            StageOption(what=r.what, busy_frac=r.efficiency_frac) for r in curve.remedies
        ),
    )


def fabrics_of(
    scenario: Scenario, ground: Ground, talk: Talk, *, n_racks: int
) -> tuple[tuple[FabricPlan, ...], tuple[Finding, ...]]:
    """The network as described, the cheapest that would do, and the one for management."""
    parts = ground.catalog.network
    links = tuple(parts.links.values())
    network = network_of(scenario, ground)
    n_nodes = ground.owned.n_nodes
    found: list[FabricPlan] = []
    told: list[Finding] = []
    if network is not None and n_nodes > 1:
        switch = switch_for(parts.switches, network, n_nodes * network.n_nics_per_node)
        if switch is None:
            what = f"no switch with ports of {network.nic_bytes_per_s / GBIT:.0f} Gbit/s is known"
            told.append(_finding(None, what, "draw the network with your maker's parts"))
        else:
            counts = fabric_counts(
                n_nodes, network.n_nics_per_node, n_switch_ports=switch.n_ports,
                oversubscription_ratio=network.oversubscription_ratio,
            )  # fmt: skip
            made = fabric_plan(
                counts, switch, port_bytes_per_s=network.nic_bytes_per_s, n_racks=n_racks,
                links=links,
            )  # fmt: skip
            reached = talk.efficiency(n_nodes, node_rate(network)) if talk.efficiency else None
            found.append(replace(made, efficiency_frac=reached))
        found += _sufficient(ground, talk, network, n_racks=n_racks, links=links)
    found += _storage_network(ground, n_racks=n_racks, links=links)
    found.append(_management(ground, n_racks=n_racks, links=links))
    return tuple(found), tuple(told)


def _sufficient(
    ground: Ground, talk: Talk, network: NodeNetwork, *, n_racks: int, links: tuple[Link, ...]
) -> list[FabricPlan]:
    """The cheapest network over which the work keeps its speed, where work says how it talks."""
    n_nodes, ask = ground.owned.n_nodes, talk.efficiency
    if ask is None:
        return []
    options = fabric_options(
        n_nodes, n_accelerators_per_node=ground.owned.n_accelerators_per_node, n_racks=n_racks,
        switches=ground.catalog.network.switches, links=links, kind=network.kind,
    )  # fmt: skip
    best = cheapest_sufficient(options, lambda rate: ask(n_nodes, rate), enough_frac=ENOUGH_FRAC)
    if best is None:
        return []
    plan, reached = best
    return [replace(plan, purpose="compute, cheapest that will do", efficiency_frac=reached)]


def _storage_network(ground: Ground, *, n_racks: int, links: tuple[Link, ...]) -> list[FabricPlan]:
    """The network to storage on the ports that the maker gives the machine for it."""
    owned = ground.owned
    server = server_with(ground.catalog, ground.accelerator, owned.n_accelerators_per_node)
    nic = None if server is None else ground.catalog.network.nics.get(PartId(server.host.front_nic))
    if server is None or nic is None or not server.host.n_front_nics or owned.n_nodes < 2:
        return []
    wanted = NodeNetwork(
        kind="ethernet", n_nics_per_node=server.host.n_front_nics,
        nic_bytes_per_s=nic.port_bytes_per_s, oversubscription_ratio=1.0,
    )  # fmt: skip
    n_ends = owned.n_nodes * wanted.n_nics_per_node
    switch = switch_for(ground.catalog.network.switches, wanted, n_ends)
    if switch is None:
        return []
    counts = fabric_counts(
        owned.n_nodes, wanted.n_nics_per_node, n_switch_ports=switch.n_ports, kind=None
    )
    return [
        fabric_plan(
            counts, switch, port_bytes_per_s=wanted.nic_bytes_per_s, n_racks=n_racks, links=links,
            purpose="storage",
        )
    ]  # fmt: skip


def _management(ground: Ground, *, n_racks: int, links: tuple[Link, ...]) -> FabricPlan:
    """Controllers and systems of all nodes on slow ports of their own."""
    switch = min(ground.catalog.network.switches.values(), key=lambda s: s.port_bytes_per_s)
    counts = fabric_counts(
        ground.owned.n_nodes, MANAGEMENT_PORTS, n_switch_ports=switch.n_ports,
        oversubscription_ratio=4.0,
    )  # fmt: skip
    return fabric_plan(
        counts, switch, port_bytes_per_s=switch.port_bytes_per_s, n_racks=n_racks, links=links,
        purpose="management",
    )  # fmt: skip


def _finding(work: Workload | None, what: str, fix: str) -> Finding:
    where = work.name if work else "network"
    return Finding(severity="warning", rule="not-judged", where=where, what=what, fix=fix)
