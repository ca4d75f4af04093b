"""Traffic between nodes: how a workload's speed depends on the bandwidth that leaves a node.

Training exchanges gradients (and gathers weights where they are sharded); serving does where
tensor parallelism spans nodes. A model need not be named: its size will do.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from gpuplan.calibration.links import fabric_link, link_of
from gpuplan.catalog.models import find_model
from gpuplan.design.rules import assumed
from gpuplan.domain.model.precision import format_named
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import NodeNetwork
from gpuplan.domain.scenario.workload import Batch, Layout, Serving, Training, Workload
from gpuplan.domain.system.parts import Stage, StageOption
from gpuplan.domain.training.scaling import NodeLinks, Remedy, ScaleLayout, ScaleRequest
from gpuplan.domain.training.setup import ParallelLayout, Recompute, Sharding
from gpuplan.domain.training.time import Fabric
from gpuplan.performance.collectives import all_reduce_time_s, hierarchical_time_s
from gpuplan.performance.training.basis import peak_flop_per_s
from gpuplan.performance.training.run import GivenStep, given_compute_s, given_step
from gpuplan.studies.measured.training import fabric_of
from gpuplan.studies.naming import model_named
from gpuplan.studies.system_check.data_path import sample_rate
from gpuplan.studies.system_check.placement import Placement, Remark, not_judged
from gpuplan.studies.training.scaling import scale
from gpuplan.units import GBIT

SHARDINGS: dict[str, Sharding] = {
    "fsdp": "zero3",
    "hsdp": "zero3",
    "zero3": "zero3",
    "zero2": "zero2",
    "zero1": "zero1",
    "ddp": "none",
    "none": "none",
}
RECOMPUTES: dict[str, Recompute] = {"none": "none", "selective": "selective", "full": "full"}
USUAL_MFU_FRAC = 0.4  # of large models that are trained well; reported where it is used
DECODE_BATCH = 32  # sequences that a replica across nodes decodes at once; reported
BYTES_16 = 2.0
REDUCES_PER_LAYER = 2  # after attention and after the feed-forward part [Shoeybi2019]
SLOWEST, FASTEST = 0.1 * GBIT, 12_800 * GBIT  # of a node: between them a rate is searched
N_HALVINGS = 40
LOSS_REPORTED_FRAC = 0.05

EfficiencyOf = Callable[[int, float], float]  # nodes, bytes/s that leave one
RemediesOf = Callable[[int, float], tuple[Remedy, ...]]


class Traffic(NamedTuple):
    """What the exchange between nodes costs, and how efficiency depends on the bandwidth."""

    stages: tuple[Stage, ...] = ()
    efficiency: EfficiencyOf | None = None
    remarks: tuple[Remark, ...] = ()


class Exchange(NamedTuple):
    """Efficiency by bandwidth, what else would help, and what was assumed."""

    efficiency: EfficiencyOf
    remedies: RemediesOf
    assumptions: tuple[Assumption, ...] = ()


def network_of(scenario: Scenario, placement: Placement) -> NodeNetwork | None:
    """The nodes' own NICs, else the site's network; None where neither is described."""
    site = scenario.site.network if scenario.site else None
    owned = placement.owned
    if owned.n_nics is None or owned.nic_bytes_per_s is None:
        return site
    return NodeNetwork(
        kind=site.kind if site else "ethernet",
        n_nics_per_node=owned.n_nics,
        nic_bytes_per_s=owned.nic_bytes_per_s,
        oversubscription_ratio=site.oversubscription_ratio if site else 1.0,
    )


def node_rate(network: NodeNetwork) -> float:
    """The bandwidth of a node in bytes a second when all nodes communicate."""
    whole = network.n_nics_per_node * network.nic_bytes_per_s
    return whole / network.oversubscription_ratio


def traffic_between_nodes(scenario: Scenario, work: Workload, placement: Placement) -> Traffic:
    """The exchange of work that spans nodes; nothing for work that stays inside one."""
    if placement.n_nodes < 2 or not _spans_nodes(work, placement):
        return Traffic()
    exchange = _exchange(work, placement)
    if exchange is None:
        what = "without the size of the model the exchange between nodes is not judged"
        fix = "name the model, or give model.params_b and, of samples, copy_to_device.batch_samples"
        return Traffic(remarks=(not_judged(work, what, fix),))
    network = network_of(scenario, placement)
    if network is None:
        what = "the network between nodes is not described: their exchange is not judged"
        missing = not_judged(work, what, "give site.network")
        return Traffic((), exchange.efficiency, (missing, *exchange.assumptions))
    remarks = (*exchange.assumptions, *assumed(placement.build, "links.enough_speed_frac"))
    stage = _stage(exchange, placement, node_rate(network))
    return Traffic((stage,), exchange.efficiency, remarks)


def least_rate(efficiency: EfficiencyOf, n_nodes: int, enough_frac: float) -> float | None:
    """The lowest bandwidth of a node at which work keeps enough of its speed; None if none does."""
    if efficiency(n_nodes, FASTEST) < enough_frac:
        return None
    low, high = SLOWEST, FASTEST
    for _ in range(N_HALVINGS):
        middle = (low * high) ** 0.5
        if efficiency(n_nodes, middle) >= enough_frac:
            high = middle
        else:
            low = middle
        if high / low < 1.001:
            break
    return high


def _stage(exchange: Exchange, placement: Placement, rate: float) -> Stage:
    n_nodes = placement.n_nodes
    reached = exchange.efficiency(n_nodes, rate)
    remedies = exchange.remedies(n_nodes, rate) if reached < 1 - LOSS_REPORTED_FRAC else ()
    enough = least_rate(exchange.efficiency, n_nodes, placement.build.links.enough_frac)
    fix = f"{enough / GBIT:,.0f} Gbit/s from each node" if enough else "another layout"
    if remedies:
        listed = "; ".join(f"{r.what} ({r.efficiency_frac:.0%})" for r in remedies)
        fix = f"before adding accelerators: {listed}; else {fix}"
    return Stage(
        name="network between nodes",
        load_ratio=1.0 / reached - 1.0,
        is_overlapped=False,
        n_wanted=enough if enough is not None else FASTEST,
        n_given=rate,
        unit="bytes/s",
        fix=fix,
        options=tuple(StageOption(what=r.what, busy_frac=r.efficiency_frac) for r in remedies),
    )


def _spans_nodes(work: Workload, placement: Placement) -> bool:
    """Whether nodes must communicate: in training, and where tensor parallelism spans nodes."""
    if not isinstance(work.work, Serving | Batch):
        return work.is_training
    n_tensor = work.layout.n_tensor if work.layout else None
    return n_tensor is not None and n_tensor > placement.n_per_node


def _exchange(work: Workload, placement: Placement) -> Exchange | None:
    run = work.work
    if isinstance(run, Serving | Batch):
        return _tensor_parallel(work, placement)
    if isinstance(run, Training) and work.model is not None and work.model.name is not None:
        return _training_of_named(work, run, work.model.name, placement)
    return _training_of_sized(work, placement)


# --- training of a named model ------------------------------------------------------------------


def _training_of_named(work: Workload, run: Training, model: str, placement: Placement) -> Exchange:
    layout, n = work.layout or Layout(), placement.n_per_node
    batch = run.accelerator_batch_tokens or run.sequence_tokens
    request = ScaleRequest(
        model=model,
        accelerator=str(placement.accelerator.id),
        counts=(n,),
        micro_batch=max(1, round(batch / run.sequence_tokens)),
        sequence_tokens=run.sequence_tokens,
        n_micro_batches=layout.n_accumulation_steps or 1,
        layout=ScaleLayout(
            sharding=SHARDINGS.get(layout.sharding or "fsdp", "zero3"),
            is_hybrid=layout.sharding == "hsdp",
            tp=layout.n_tensor or 1,
        ),
        recompute=RECOMPUTES.get(layout.recompute or "full", "full"),
        links=NodeLinks(n_node=n),
        mfu_frac=run.mfu_frac.mid if run.mfu_frac else None,
    )

    def curve(n_nodes: int, rate: float) -> ScaleRequest:
        links = replace(request.links, adapters_bytes_per_s=rate)
        return replace(request, links=links, counts=(n, n_nodes * n))

    def efficiency(n_nodes: int, rate: float) -> float:
        return scale(curve(n_nodes, rate)).points[-1].efficiency_frac if n_nodes > 1 else 1.0

    def remedies(n_nodes: int, rate: float) -> tuple[Remedy, ...]:
        return scale(curve(n_nodes, rate)).remedies

    return Exchange(efficiency, remedies, _layout_notes(work, run))


def _layout_notes(work: Workload, run: Training) -> tuple[Assumption, ...]:
    """What is assumed of the layout where the user left it open."""
    layout, found = work.layout or Layout(), []
    if layout.sharding is None:
        value = "fsdp: weights, gradients and optimizer states sharded"
        why, change = "usual for large models", "workloads[].layout.sharding"
        found.append(assume(f"sharding of {work.name}", value, why, change))
    if layout.recompute is None:
        why, change = "large models seldom fit without", "workloads[].layout.recompute"
        found.append(assume(f"activation recomputation of {work.name}", "full", why, change))
    if run.accelerator_batch_tokens is None:
        value = f"one sequence of {run.sequence_tokens:,} tokens"
        change = "workloads[].training.tokens_per_accelerator_per_step"
        why = "larger steps hide more of the exchange"
        found.append(assume(f"step of {work.name}", value, why, change))
    return tuple(found)


# --- training of a model of which the size is known ---------------------------------------------


def _training_of_sized(work: Workload, placement: Placement) -> Exchange | None:
    """Gradients of so many parameters beside a computation of known length."""
    n_params = params_of(work)
    timed = _compute_s(work, placement, n_params) if n_params else None
    if n_params is None or timed is None:
        return None
    compute_s, mfu_notes = timed
    layout, run, n_node = work.layout or Layout(), work.work, placement.n_per_node
    sharding = layout.sharding or ("fsdp" if isinstance(run, Training) else "ddp")
    kind = SHARDINGS.get(sharding, "zero3")
    # Where nothing is gathered each rank is a shard group of its own.
    n_shard = 1 if kind == "none" else n_node if sharding == "hsdp" else None
    step = GivenStep(
        compute_s=compute_s, n_params=n_params, n_micro_batches=layout.n_accumulation_steps or 1
    )

    def step_s(n_nodes: int, rate: float) -> float:
        parallel = ParallelLayout(dp=n_nodes * n_node, sharding=kind, n_shard=n_shard)
        return given_step(step, parallel, _fabric(placement, rate)).step_s

    def efficiency(n_nodes: int, rate: float) -> float:
        return step_s(1, rate) / step_s(n_nodes, rate) if n_nodes > 1 else 1.0

    def remedies(n_nodes: int, rate: float) -> tuple[Remedy, ...]:
        faster = efficiency(n_nodes, 4 * rate)
        is_better = faster > efficiency(n_nodes, rate)
        return (Remedy(what="four times the NICs", efficiency_frac=faster),) if is_better else ()

    notes = _layout_notes(work, run) if isinstance(run, Training) else ()
    return Exchange(efficiency, remedies, (*mfu_notes, *notes))


def params_of(work: Workload, store: Path | None = None) -> float | None:
    """Parameters of the work's model; None where it has none that is known."""
    if work.model is None:
        return None
    if work.model.n_params is not None:
        return work.model.n_params
    return model_named(work.model.name, store).n_params if work.model.name else None


def stored_bytes_per_param(work: Workload) -> float:
    """Bytes of a stored weight in the first allowed precision; 16 bits where none is named."""
    form = format_named(work.precisions[0]) if work.precisions else None
    return form.stored_bytes if form else BYTES_16


def _compute_s(
    work: Workload, placement: Placement, n_params: float
) -> tuple[float, tuple[Assumption, ...]] | None:
    """Seconds of one step of one accelerator, without any exchange."""
    run, path = work.work, work.data_path
    if isinstance(run, Training):
        share, mfu_notes = (
            (run.mfu_frac.mid, ()) if run.mfu_frac else (USUAL_MFU_FRAC, (_mfu_note(),))
        )
        active = work.model.n_active_params if work.model else None
        recompute = work.layout.recompute if work.layout else None
        return given_compute_s(
            active or n_params,
            run.accelerator_batch_tokens or run.sequence_tokens,
            flop_per_s=share * peak_flop_per_s(placement.accelerator, "bf16"),
            has_full_recompute=RECOMPUTES.get(recompute or "full", "full") == "full",
        ), mfu_notes
    rate = sample_rate(work, placement)
    if path is None or path.copy is None or rate is None:
        return None
    return path.copy.n_batch_samples / rate, ()


def _mfu_note() -> Assumption:
    return assume(
        "model FLOPs utilization (MFU)",
        f"{USUAL_MFU_FRAC:.0%} of the dense 16-bit peak",
        "a model that only has a size has no operators to time",
        "workloads[].training.mfu_frac",
    )


def _fabric(placement: Placement, node_bytes_per_s: float) -> Fabric:
    stated = f"{node_bytes_per_s / GBIT:g} Gbit/s per node"
    return fabric_of(placement.accelerator, stated=stated, n_node=placement.n_per_node)


# --- serving over several nodes -----------------------------------------------------------------


def _tensor_parallel(work: Workload, placement: Placement) -> Exchange | None:
    """Two all-reduces in each layer, waited for, beside reading the weights of a step."""
    if work.model is None or work.model.name is None or work.layout is None:
        return None
    model, n_tensor = find_model(work.model.name), work.layout.n_tensor or 1
    n_node = placement.n_per_node
    n_across = -(-n_tensor // n_node)
    # Reading the weights once is what a step of few sequences takes at least.
    read_bytes = model.n_active_params * stored_bytes_per_param(work)
    read_s = read_bytes / (n_tensor * placement.accelerator.memory.bytes_per_s)
    message = DECODE_BATCH * model.main.hidden_size * BYTES_16
    n_reduces = REDUCES_PER_LAYER * model.main.n_layers
    inner = link_of(placement.accelerator, n_ranks=n_node)
    # The same spread inside one node, if it were large enough, is what speed is held against.
    inside_s = n_reduces * all_reduce_time_s(message, n_node, inner)

    def efficiency(n_nodes: int, rate: float) -> float:
        if n_nodes < 2:
            return 1.0
        outer = fabric_link(rate)
        across_s = n_reduces * hierarchical_time_s(
            all_reduce_time_s, message, (n_node, inner), (min(n_nodes, n_across), outer)
        )
        return (read_s + inside_s) / (read_s + max(inside_s, across_s))

    def remedies(_n_nodes: int, _rate: float) -> tuple[Remedy, ...]:
        what = f"tensor parallelism inside a node ({n_node}), pipeline stages between nodes"
        return (Remedy(what=what, efficiency_frac=1.0),)

    note = assume(
        f"concurrent sequences of {work.name}",
        f"{DECODE_BATCH}",
        "its exchange is judged in steps of this size",
        "gpuplan predict --concurrency",
    )
    return Exchange(efficiency, remedies, (note,))
