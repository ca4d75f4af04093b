"""What machines say to each other, in: work, adapters; out: a stage, and speed by line rate.

Training exchanges gradients (and gathers weights where they are shared out); serving does where
tensor parallelism leaves a machine. A model need not be named: its size will do.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

from gpuplan.calibration.links.models import link_of
from gpuplan.catalog.models import find_model
from gpuplan.design.rules import assumed
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.precision import format_named
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import NodeNetwork
from gpuplan.domain.scenario.workload import Batch, Generic, Layout, Serving, Training, Workload
from gpuplan.domain.system.findings import Finding
from gpuplan.domain.system.parts import Stage, StageOption
from gpuplan.domain.training.scaling import NodeLinks, Remedy, ScaleLayout, ScaleRequest
from gpuplan.domain.training.setup import ParallelLayout, Recompute, Sharding
from gpuplan.domain.training.time import Fabric, plain_link
from gpuplan.performance.collectives import all_reduce_time_s, hierarchical_time_s
from gpuplan.performance.training.basis import peak_flop_per_s
from gpuplan.performance.training.run import GivenStep, given_compute_s, given_step
from gpuplan.studies.system_check.data_path import Ground, sample_rate
from gpuplan.studies.training.scaling import ADAPTER_LATENCY_S, scale
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
USUAL_MFU_FRAC = 0.4  # of large models that are trained well; told where it is used
DECODE_BATCH = 32  # sequences that a replica across machines answers at once; told
BYTES_16 = 2.0
REDUCES_PER_LAYER = 2  # after attention and after the feed-forward part [Shoeybi2019]
SLOWEST, FASTEST = 0.1 * GBIT, 12_800 * GBIT  # of a machine: between them a rate is searched
N_HALVINGS = 40
LOSS_TOLD_FRAC = 0.05

Again = Literal["none", "selective", "full"]
EfficiencyOf = Callable[[int, float], float]  # nodes, bytes/s that leave one


class Talk(NamedTuple):
    """What the exchange between machines costs, and over which networks it would cost less."""

    stages: tuple[Stage, ...] = ()
    findings: tuple[Finding, ...] = ()
    efficiency: EfficiencyOf | None = None
    assumptions: tuple[Assumption, ...] = ()


class Exchange(NamedTuple):
    """How speed follows the line rate, what else would help, and what was assumed."""

    efficiency: EfficiencyOf
    remedies: Callable[[int, float], tuple[Remedy, ...]]
    assumptions: tuple[Assumption, ...] = ()


def network_of(scenario: Scenario, ground: Ground) -> NodeNetwork | None:
    """The machines' own adapters, else the site's; None where neither is described."""
    site = scenario.site.network if scenario.site else None
    owned = ground.owned
    if owned.n_nics is None or owned.nic_bytes_per_s is None:
        return site
    kind = site.kind if site else "ethernet"
    ratio = site.oversubscription_ratio if site else 1.0
    return NodeNetwork(
        kind=kind,
        n_nics_per_node=owned.n_nics,
        nic_bytes_per_s=owned.nic_bytes_per_s,
        oversubscription_ratio=ratio,
    )


def node_rate(network: NodeNetwork) -> float:
    """Bytes a second that a node gets across the fabric when all talk."""
    whole = network.n_nics_per_node * network.nic_bytes_per_s
    return whole / network.oversubscription_ratio


def talk_of(scenario: Scenario, work: Workload, ground: Ground) -> Talk:
    """The exchange of work that spans machines; nothing for work that stays inside one."""
    if ground.n_nodes < 2 or not _spans(work, ground):
        return Talk()
    exchange = _exchange(work, ground)
    if exchange is None:
        what = "without the size of the model the exchange between machines is not judged"
        fix = "name the model, or give model.params_b and, of samples, copy_to_device.batch_samples"
        return Talk(findings=(_finding(work, what, fix),))
    network = network_of(scenario, ground)
    if network is None:
        what = "how machines are joined is not described: their exchange is not judged"
        return Talk(
            findings=(_finding(work, what, "give site.network"),),
            efficiency=exchange.efficiency,
            assumptions=exchange.assumptions,
        )
    told = (*exchange.assumptions, *assumed(ground.build, "links.enough_speed_frac"))
    stage = _stage(exchange, ground, node_rate(network))
    return Talk((stage,), (), exchange.efficiency, told)


def least_rate(
    efficiency: EfficiencyOf, n_nodes: int, enough_frac: float, *, most: float = FASTEST
) -> float | None:
    """The lowest rate of a node at which work keeps enough of its speed; None where none does."""
    if efficiency(n_nodes, most) < enough_frac:
        return None
    low, high = SLOWEST, most
    for _ in range(N_HALVINGS):
        middle = (low * high) ** 0.5
        if efficiency(n_nodes, middle) >= enough_frac:
            high = middle
        else:
            low = middle
        if high / low < 1.001:
            break
    return high


def _stage(exchange: Exchange, ground: Ground, rate: float) -> Stage:
    n_nodes = ground.n_nodes
    reached = exchange.efficiency(n_nodes, rate)
    remedies = exchange.remedies(n_nodes, rate) if reached < 1 - LOSS_TOLD_FRAC else ()
    enough = least_rate(exchange.efficiency, n_nodes, ground.build.links.enough_frac)
    ways = "; ".join(f"{r.what} ({r.efficiency_frac:.0%})" for r in remedies)
    fix = f"{enough / GBIT:,.0f} Gbit/s from each machine" if enough else "another layout"
    if ways:
        fix = f"before adding accelerators: {ways}; else {fix}"
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


def _spans(work: Workload, ground: Ground) -> bool:
    """Whether machines must talk: training does; serving, where tensor parallelism leaves one."""
    run = work.work
    if isinstance(run, Training):
        return True
    if isinstance(run, Generic):
        return run.is_training
    n_tensor = work.layout.n_tensor if work.layout else None
    return n_tensor is not None and n_tensor > ground.owned.n_accelerators_per_node


def _exchange(work: Workload, ground: Ground) -> Exchange | None:
    run = work.work
    if isinstance(run, Serving | Batch):
        return _tensor(work, ground)
    if isinstance(run, Training) and work.model is not None and work.model.name is not None:
        return _named(work, run, ground)
    return _sized(work, ground)


# --- training of a named model ------------------------------------------------------------------


def _named(work: Workload, run: Training, ground: Ground) -> Exchange:
    ask = _request(work, run, ground)

    def curve(n_nodes: int, node_bytes_per_s: float) -> ScaleRequest:
        links = replace(ask.links, adapters_bytes_per_s=node_bytes_per_s)
        n = ask.links.n_node
        return replace(ask, links=links, counts=(n, n_nodes * n))

    def efficiency(n_nodes: int, node_bytes_per_s: float) -> float:
        if n_nodes < 2:
            return 1.0
        return scale(curve(n_nodes, node_bytes_per_s)).points[-1].efficiency_frac

    def remedies(n_nodes: int, node_bytes_per_s: float) -> tuple[Remedy, ...]:
        return scale(curve(n_nodes, node_bytes_per_s)).remedies

    return Exchange(efficiency, remedies, _layout_notes(work))


def _request(work: Workload, run: Training, ground: Ground) -> ScaleRequest:
    layout = work.layout or Layout()
    batch = run.accelerator_batch_tokens or run.sequence_tokens
    return ScaleRequest(
        model=work.model.name if work.model and work.model.name else "",
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


def _layout_notes(work: Workload) -> tuple[Assumption, ...]:
    """What is taken of the layout where the user left it open."""
    layout = work.layout or Layout()
    found = []
    if layout.sharding is None:
        found.append(
            _note(
                f"sharding of {work.name}",
                "fsdp: weights, gradients and optimizer shared out",
                "the usual way of large models",
                "workloads[].layout.sharding",
            )
        )
    if layout.recompute is None and isinstance(work.work, Training):
        found.append(
            _note(
                f"recompute of {work.name}",
                "full",
                "large models seldom fit without",
                "workloads[].layout.recompute",
            )
        )
    run = work.work
    if isinstance(run, Training) and run.accelerator_batch_tokens is None:
        found.append(
            _note(
                f"step of {work.name}",
                f"one sequence of {run.sequence_tokens:,} tokens",
                "larger steps hide more of the exchange",
                "workloads[].training.tokens_per_accelerator_per_step",
            )
        )
    return tuple(found)


# --- training of a model of which the size is known ---------------------------------------------


def _sized(work: Workload, ground: Ground) -> Exchange | None:
    """Gradients of so many parameters beside a computation of known length."""
    n_params = params_of(work)
    timed = _compute_s(work, ground, n_params) if n_params else None
    if n_params is None or timed is None:
        return None
    compute_s, told = timed
    layout = work.layout or Layout()
    default = "fsdp" if isinstance(work.work, Training) else "ddp"
    sharding = layout.sharding or default
    step = GivenStep(
        compute_s=compute_s, n_params=n_params, n_micro_batches=layout.n_accumulation_steps or 1
    )
    n_node = ground.owned.n_accelerators_per_node

    def step_s(n_nodes: int, rate: float, how: str) -> float:
        kind = SHARDINGS.get(how, "zero3")
        n = n_nodes * n_node
        # Where nothing is gathered each rank is a shard group of its own.
        n_shard = 1 if kind == "none" else n_node if how == "hsdp" else None
        parallel = ParallelLayout(dp=n, sharding=kind, n_shard=n_shard)
        return given_step(step, parallel, _fabric(ground, rate)).step_s

    def efficiency(n_nodes: int, rate: float) -> float:
        return step_s(1, rate, sharding) / step_s(n_nodes, rate, sharding) if n_nodes > 1 else 1.0

    def remedies(n_nodes: int, rate: float) -> tuple[Remedy, ...]:
        faster = Remedy(
            what="four times the adapters", efficiency_frac=efficiency(n_nodes, 4 * rate)
        )
        return (faster,) if faster.efficiency_frac > efficiency(n_nodes, rate) else ()

    notes = _layout_notes(work) if isinstance(work.work, Training) else ()
    return Exchange(efficiency, remedies, (*told, *notes))


def params_of(work: Workload) -> float | None:
    """Parameters of the work's model; None where it has none that is known."""
    if work.model is None:
        return None
    if work.model.n_params is not None:
        return work.model.n_params
    return find_model(work.model.name).n_params if work.model.name else None


def _compute_s(
    work: Workload, ground: Ground, n_params: float
) -> tuple[float, tuple[Assumption, ...]] | None:
    """Seconds of one step of one accelerator, without any exchange."""
    run, path = work.work, work.data_path
    if isinstance(run, Training):
        tokens = run.accelerator_batch_tokens or run.sequence_tokens
        share, told = (run.mfu_frac.mid, ()) if run.mfu_frac else (USUAL_MFU_FRAC, (_mfu_note(),))
        active = work.model.n_active_params if work.model else None
        layout = work.layout or Layout()
        return given_compute_s(
            active or n_params,
            tokens,
            flop_per_s=share * peak_flop_per_s(ground.accelerator, "bf16"),
            has_full_recompute=_recompute(layout.recompute) == "full",
        ), told
    rate = sample_rate(work, ground)
    if path is None or path.copy is None or rate is None:
        return None
    return path.copy.n_batch_samples / rate, ()


def _mfu_note() -> Assumption:
    return _note(
        "utilization of the arithmetic",
        f"{USUAL_MFU_FRAC:.0%} of the dense 16-bit peak",
        "a model that only has a size has no operators to time",
        "workloads[].training.mfu_frac",
    )


def _fabric(ground: Ground, node_bytes_per_s: float) -> Fabric:
    n_node = ground.owned.n_accelerators_per_node
    island = ground.accelerator.scale_up
    n_island = max(n_node, island.n_domain if island else 1)
    outside = plain_link(
        "adapters",
        node_bytes_per_s / n_node,
        rate_frac=NodeLinks().rate_frac,
        alpha_s=ADAPTER_LATENCY_S,
    )
    inside = link_of(ground.accelerator, n_ranks=min(n_node, n_island))
    return Fabric(n_island=n_island, inside=inside, outside=outside, n_node=n_node)


# --- serving over several machines --------------------------------------------------------------


def _tensor(work: Workload, ground: Ground) -> Exchange | None:
    """Two all-reduces in each layer, waited for, beside reading the weights of a step."""
    if work.model is None or work.model.name is None or work.layout is None:
        return None
    model, n_tensor = find_model(work.model.name), work.layout.n_tensor or 1
    n_node = ground.owned.n_accelerators_per_node
    n_across = -(-n_tensor // n_node)
    read_s = _read_s(model, work, ground, n_tensor)
    message = DECODE_BATCH * model.main.hidden_size * BYTES_16
    n_reduces = REDUCES_PER_LAYER * model.main.n_layers
    inner = link_of(ground.accelerator, n_ranks=n_node)
    # The same spread inside one machine, if it were large enough, is what speed is held against.
    inside_s = n_reduces * all_reduce_time_s(message, n_node, inner)

    def efficiency(n_nodes: int, rate: float) -> float:
        if n_nodes < 2:
            return 1.0
        outer = plain_link(
            "adapters", rate, rate_frac=NodeLinks().rate_frac, alpha_s=ADAPTER_LATENCY_S
        )
        across_s = n_reduces * hierarchical_time_s(
            all_reduce_time_s, message, (n_node, inner), (min(n_nodes, n_across), outer)
        )
        return (read_s + inside_s) / (read_s + max(inside_s, across_s))

    def remedies(n_nodes: int, rate: float) -> tuple[Remedy, ...]:
        what = f"tensor parallelism inside a machine ({n_node}), pipeline stages between them"
        return (Remedy(what=what, efficiency_frac=1.0),)

    note = _note(
        f"sequences at once of {work.name}",
        f"{DECODE_BATCH}",
        "its exchange is judged in steps of this size",
        "gpuplan predict --concurrency",
    )
    return Exchange(efficiency, remedies, (note,))


def _read_s(model: Model, work: Workload, ground: Ground, n_tensor: int) -> float:
    """Reading the weights once: what a step of few sequences takes at least."""
    form = format_named(work.precisions[0]) if work.precisions else None
    width = form.stored_bytes if form else BYTES_16
    return model.n_active_params * width / (n_tensor * ground.accelerator.memory.bytes_per_s)


def _note(what: str, value: str, why: str, change: str) -> Assumption:
    return Assumption(what=what, value=value, why=why, change=change)


def _finding(work: Workload, what: str, fix: str) -> Finding:
    return Finding(severity="warning", rule="not-judged", where=work.name, what=what, fix=fix)
