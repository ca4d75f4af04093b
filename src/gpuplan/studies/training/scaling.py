"""Speed-up curve of a training job: names to nouns, nouns to steps, steps to a knee and causes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from gpuplan.calibration.training.constants import constants_of, read_calibration, training_labels
from gpuplan.calibration.training.fabric import names_kind, nic_bytes_per_s
from gpuplan.calibration.training.stacks import STACKS
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.network import Model
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.training.scaling import NodeLinks, Remedy, ScaleCurve, ScalePoint, ScaleRequest
from gpuplan.domain.training.setup import Execution, ParallelLayout, StateBytes, TrainingSetup
from gpuplan.domain.training.time import Fabric
from gpuplan.errors import InputError, Problem
from gpuplan.performance.training.basis import peak_flop_per_s
from gpuplan.performance.training.run import GivenStep, given_compute_s, given_step
from gpuplan.performance.training.step import training_step
from gpuplan.studies.measured.names import named_model
from gpuplan.studies.measured.training import architecture_class, fabric_of
from gpuplan.studies.training.sensitivity import ScaleCase, gains, spends
from gpuplan.units import GB, GBIT

WORTH_FRAC = 0.5  # a doubling that brings less than half of what it could is not worth it
STACK = STACKS["fsdp"]
ARITHMETIC = ("matrix products", "attention", "element-wise", "host", "optimizer")
REMEDY_MICRO_BATCHES = 8
REMEDY_GAIN_FRAC = 0.05


def scale(request: ScaleRequest) -> ScaleCurve:
    """Speed over the number of accelerators, the knee, and what to change before adding more."""
    model = named_model(request.model)
    accelerator = find_accelerator(request.accelerator, read_catalog()).accelerator
    counts = _counts(request)
    points = _points(request, model, accelerator, counts=counts)
    states = StateBytes(gradient_bytes_per_param=2.0)
    states_bytes = model.n_params * states.total_bytes_per_param

    def time_s(changed: ScaleRequest, device: Accelerator, n: int) -> float:
        return _step(changed, model, device, n=n)[0]

    case = ScaleCase(request, accelerator, _nics_bytes_per_s(request, accelerator), counts[-1])
    return ScaleCurve(
        points=tuple(points),
        knee=knee(points),
        states_bytes=states_bytes,
        remedies=_remedies(request, model, accelerator, last=points[-1], first=counts[0]),
        assumptions=(
            *_too_small(request, states_bytes, accelerator, counts),
            *_assumptions(request, accelerator),
        ),
        gains=tuple(gains(case, time_s)),
        spends=tuple(spends(case, time_s)),
    )


def knee(points: Sequence[ScalePoint]) -> int:
    """The last number up to which every step still brings half of what it could."""
    chosen = points[0].n_accelerators
    for before, after in pairwise(points):
        ideal = after.n_accelerators / before.n_accelerators - 1.0
        gained = after.speedup_ratio / before.speedup_ratio - 1.0
        if gained < WORTH_FRAC * ideal:
            break
        chosen = after.n_accelerators
    return chosen


def _counts(request: ScaleRequest) -> list[int]:
    problems = [
        Problem("counts", f"got {n}", "use whole nodes or a part of one node")
        for n in request.counts
        if n < 1 or (n > request.links.n_node and n % request.links.n_node)
    ]
    if not request.counts:
        problems.append(Problem("counts", "empty", "give numbers of accelerators, e.g. 8,16,64"))
    if request.mfu_frac is not None and not 0 < request.mfu_frac <= 1:
        problems.append(Problem("mfu", f"got {request.mfu_frac}", "use a share above 0, up to 1"))
    if request.loader_samples_per_s is not None and not request.loader_samples_per_s > 0:
        fix = "use samples per second above 0"
        problems.append(Problem("loader", f"got {request.loader_samples_per_s}", fix))
    problems += [*_tensor_problems(request), *_fabric_problems(request.links)]
    if problems:
        raise InputError("scale", problems)
    # Efficiency is against one server: a curve that begins beyond it would call any loss normal.
    first, last = min(*request.counts, _server(request)), max(request.counts)
    between = request.counts if len(request.counts) > 1 else _doublings(first, last)
    return sorted({first, *between, last})


def _doublings(first: int, last: int) -> list[int]:
    """Twice as many again and again, up to a largest number that is stated alone."""
    return [first << k for k in range((last // first).bit_length())]


def _server(request: ScaleRequest) -> int:
    """The accelerators of one server, or of one tensor-parallel group where that is larger."""
    return max(request.links.n_node, request.layout.tp)


def _tensor_problems(request: ScaleRequest) -> list[Problem]:
    tp, n_node = request.layout.tp, request.links.n_node
    problems = [
        Problem("tp", f"{n} accelerators do not divide by {tp}", "use multiples of tp")
        for n in request.counts
        if n % tp
    ]
    if tp > n_node and not request.layout.allows_tp_across_nodes:
        fix = f"keep tp at {n_node} or less, or ask for it with --tp-across-nodes"
        problems.append(Problem("tp", f"{tp} leaves the node of {n_node}", fix))
    if tp > n_node and request.mfu_frac is not None:
        fix = "do not give it: the calibrated model counts these transfers"
        problems.append(Problem("mfu", "says nothing of tensor parallelism across nodes", fix))
    return problems


def _fabric_problems(links: NodeLinks) -> list[Problem]:
    is_rate = " per " in links.fabric
    if is_rate and links.adapters_bytes_per_s is not None:
        return [Problem("fabric", "states a rate, and so does --node-gbit", "give one of them")]
    if not links.fabric or is_rate or names_kind(links.fabric):
        return []
    fix = "write e.g. '400 Gbit/s per GPU' or '3200 Gbit/s EFA per node'"
    return [Problem("fabric", f"got {links.fabric!r}", fix)]


def _points(
    request: ScaleRequest, model: Model, accelerator: Accelerator, *, counts: Sequence[int]
) -> list[ScalePoint]:
    points: list[ScalePoint] = []
    first: tuple[int, float] | None = None
    for n in counts:
        step_s, compute_s, causes = _step(request, model, accelerator, n=n)
        first = first or (n, step_s)
        # The share per accelerator stays, so that speed is accelerators by step time.
        speedup = n / first[0] * first[1] / step_s
        cause = max(causes, key=lambda part: part[1])[0] if causes else "compute"
        is_free = step_s <= compute_s * 1.02
        points.append(
            ScalePoint(
                n_accelerators=n,
                step_s=step_s,
                compute_s=compute_s,
                speedup_ratio=speedup,
                efficiency_frac=speedup * first[0] / n,
                cause="compute" if is_free else cause,
                causes_s=tuple(causes),
                usd_per_percent=_usd_per_percent(request, points, n=n, speedup=speedup),
            )
        )
    return points


def _usd_per_percent(
    request: ScaleRequest, points: Sequence[ScalePoint], *, n: int, speedup: float
) -> float | None:
    if request.price_usd_per_h is None or not points:
        return None
    before = points[-1]
    gained = 100.0 * (speedup - before.speedup_ratio)
    added = (n - before.n_accelerators) * request.price_usd_per_h
    return added / gained if gained > 0 else float("inf")


def _step(
    request: ScaleRequest, model: Model, accelerator: Accelerator, *, n: int
) -> tuple[float, float, list[tuple[str, float]]]:
    """The step with what the data loader cannot hide behind it."""
    step_s, compute_s, causes = _without_input(request, model, accelerator, n=n)
    if request.loader_samples_per_s is None:
        return step_s, compute_s, causes
    samples = n // request.layout.tp * request.micro_batch * request.n_micro_batches
    input_s = max(0.0, samples / request.loader_samples_per_s - step_s)
    return step_s + input_s, compute_s, [*causes, ("input", input_s)]


def _without_input(
    request: ScaleRequest, model: Model, accelerator: Accelerator, *, n: int
) -> tuple[float, float, list[tuple[str, float]]]:
    fabric = _fabric(request, accelerator)
    requested = request.layout
    per_node = max(1, request.links.n_node // requested.tp)
    layout = ParallelLayout(
        dp=n // requested.tp,
        tp=requested.tp,
        has_sequence_parallel=requested.tp > 1,
        sharding=requested.sharding,
        n_shard=min(n // requested.tp, per_node) if requested.is_hybrid else None,
    )
    if request.mfu_frac is None:
        return _calibrated(request, model, accelerator, layout=layout, fabric=fabric)
    tokens = request.micro_batch * request.sequence_tokens / requested.tp
    compute_s = given_compute_s(
        model.n_active_params,
        tokens,
        flop_per_s=request.mfu_frac * peak_flop_per_s(accelerator, "bf16"),
        has_full_recompute=request.recompute == "full",
    )
    given = GivenStep(
        compute_s=compute_s,
        n_params=model.n_params / requested.tp,
        n_micro_batches=request.n_micro_batches,
    )
    parts = given_step(given, layout, fabric)
    return parts.step_s, parts.compute_s, [("data parallel", parts.exposed_s)]


def _calibrated(
    request: ScaleRequest,
    model: Model,
    accelerator: Accelerator,
    *,
    layout: ParallelLayout,
    fabric: Fabric,
) -> tuple[float, float, list[tuple[str, float]]]:
    labels = training_labels(
        STACK, family=accelerator.family, architecture=architecture_class(model)
    )
    constants = constants_of(
        read_calibration().fitted, labels, accelerator=accelerator, stack=STACK
    )
    setup = TrainingSetup(
        task="full",
        states=StateBytes(gradient_bytes_per_param=2.0),
        micro_batch=request.micro_batch,
        sequence_tokens=request.sequence_tokens,
        n_micro_batches=request.n_micro_batches,
        execution=Execution(recompute=request.recompute),
    )
    step = training_step(model, accelerator, setup, layout, fabric, constants)
    compute_s = sum(seconds for name, seconds in step.parts_s if name in ARITHMETIC)
    causes = [(str(name), s) for name, s in step.parts_s if name not in ARITHMETIC]
    return step.step_s, compute_s, causes


def _fabric(request: ScaleRequest, accelerator: Accelerator) -> Fabric:
    """The links that predict-training and plan would see, from the same words."""
    return fabric_of(accelerator, stated=stated_fabric(request.links), n_node=request.links.n_node)


def stated_fabric(links: NodeLinks) -> str:
    """The network of a server in words; empty where nothing is stated."""
    rate = links.adapters_bytes_per_s
    return links.fabric if rate is None else f"{rate / GBIT:g} Gbit/s {links.fabric} per node"


def _remedies(
    request: ScaleRequest, model: Model, accelerator: Accelerator, *, last: ScalePoint, first: int
) -> tuple[Remedy, ...]:
    """What would bring more than accelerators: hybrid sharding, or more NICs."""
    if last.efficiency_frac > 1.0 - REMEDY_GAIN_FRAC or last.n_accelerators <= first:
        return ()
    nics_bytes_per_s = _nics_bytes_per_s(request, accelerator)
    hybrid = replace(
        request,
        layout=replace(request.layout, is_hybrid=True),
        n_micro_batches=REMEDY_MICRO_BATCHES,
    )
    links = replace(request.links, adapters_bytes_per_s=4 * nics_bytes_per_s)
    changes = {
        f"hybrid sharding (HSDP) with gradient accumulation of {REMEDY_MICRO_BATCHES}": hybrid,
        "four times the NICs": replace(request, links=links),
    }
    found = []
    for what, changed in changes.items():
        points = _points(changed, model, accelerator, counts=(first, last.n_accelerators))
        gain = points[-1].efficiency_frac - last.efficiency_frac
        if gain > REMEDY_GAIN_FRAC:
            found.append(Remedy(what=what, efficiency_frac=points[-1].efficiency_frac))
    return tuple(sorted(found, key=lambda remedy: -remedy.efficiency_frac))


def _nics_bytes_per_s(request: ScaleRequest, accelerator: Accelerator) -> float:
    """What leaves one server, all its NICs together."""
    stated, n_node = stated_fabric(request.links), request.links.n_node
    return n_node * nic_bytes_per_s(stated, accelerator, n_node=n_node)[0]


def _too_small(
    request: ScaleRequest, states_bytes: float, accelerator: Accelerator, counts: Sequence[int]
) -> Iterator[Assumption]:
    """Which numbers of accelerators cannot even hold the sharded model states."""
    layout = request.layout
    if layout.sharding != "zero3":
        return
    most = request.links.n_node if layout.is_hybrid else counts[-1]
    each, room = {n: states_bytes / min(n, most) for n in counts}, accelerator.memory.visible_bytes
    small = [n for n in counts if each[n] > room]
    if small:
        yield Assumption(
            what=f"memory of {', '.join(map(str, small))} accelerators",
            value=f"too small: {each[small[0]] / GB:,.0f} GB of model states each at {small[0]}",
            why=f"{room / GB:,.0f} GB are there; the curve compares speed only",
            change="--devices; gpuplan fit-training tells what fits",
        )


def _assumptions(request: ScaleRequest, accelerator: Accelerator) -> tuple[Assumption, ...]:
    stated, n_node = stated_fabric(request.links), request.links.n_node
    each, is_stated = nic_bytes_per_s(stated, accelerator, n_node=n_node)
    nics = Assumption(
        what="network between servers",
        value=f"{each / GBIT:g} Gbit/s per accelerator",
        why="the maker's reference server: the bandwidth that leaves the node is not given",
        change="--node-gbit or --fabric",
    )
    software = Assumption(
        what="software",
        value="fully sharded PyTorch, operator by operator",
        why="no utilization was given",
        change="--mfu",
    )
    given = ((nics, is_stated), (software, request.mfu_frac is not None))
    return tuple(assumption for assumption, is_given in given if not is_given)
