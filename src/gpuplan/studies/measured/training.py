"""A row of a training table as nouns: model, accelerator, setup, layout, fabric, and its labels.

Blanks are filled by what the software of that row does by default; every fill is an assumption.
"""

import re
from dataclasses import replace

from gpuplan.calibration.links import fabric_link, link_of
from gpuplan.calibration.training.constants import training_labels
from gpuplan.calibration.training.fabric import fabric_kind, nic_bytes_per_s
from gpuplan.calibration.training.models import known_model, model_from
from gpuplan.calibration.training.rows import TrainingRow
from gpuplan.calibration.training.stacks import COMPILER, Stack, stack_of
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.layers import Experts, Recurrence
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.precision import FORMATS
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.training.setup import (
    ALL_LINEAR_TARGETS,
    ATTENTION_TARGETS,
    Compute,
    Execution,
    LoRA,
    ParallelLayout,
    Recompute,
    Sharding,
    StateBytes,
    TrainingSetup,
)
from gpuplan.domain.training.time import Fabric
from gpuplan.errors import InputError, Problem
from gpuplan.studies.measured.names import accelerator_of, check_named, named_model

ASSUMED_SEQUENCE_TOKENS = 4096
ASSUMED_LORA_RANK = 16
MOST_IN_SERVER = 16  # larger scale-up domains are racks, whatever a server of them holds
NARROW: tuple[Compute, ...] = ("mxfp8", "fp4")  # formats of the grouped kernel
GRAPH_HOST_RATIO = 0.2  # of launching a layer, where whole steps are recorded (Assumption)
ASSUMED_SAMPLES = 8  # per accelerator and step
# Attention with learned sinks and clamped gates runs outside of the fused kernels.
SINKS = ("gpt_oss",)
COMPUTE: tuple[tuple[str, Compute], ...] = (
    (r"fp4", "fp4"),
    (r"mx", "mxfp8"),
    (r"fp8|float8|e4m3", "fp8"),
    (r"fp16|float16|half", "fp16"),
    (r"tf32", "tf32"),
    (r"^fp32|float32", "fp32"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """All that the step formula and the calibration need of one row."""

    model: Model
    accelerator: Accelerator
    setup: TrainingSetup
    layout: ParallelLayout
    fabric: Fabric
    stack: Stack
    program: str  # who ran it with what: the table's own name for its source
    assumptions: tuple[Assumption, ...] = ()

    @property
    def labels(self) -> dict[str, str]:
        """What the constants may depend on."""
        return training_labels(
            self.stack,
            family=self.accelerator.family,
            architecture=architecture_class(self.model),
            program=self.program,
        )


def architecture_class(model: Model) -> str:
    """dense, moe, or hybrid with or without experts."""
    groups = model.main.groups
    is_moe = any(isinstance(group.feed_forward, Experts) for group in groups)
    if any(isinstance(group.mixer, Recurrence) for group in groups):
        return "hybrid-moe" if is_moe else "hybrid"
    if is_moe and model.architecture in SINKS:
        return "moe-sinks"
    return "moe" if is_moe else "dense"


def shape_key(model: Model) -> str:
    """The network by its shape: names change, and a fine-tuned copy is the same work."""
    main = model.main
    return f"{main.n_layers}x{main.hidden_size} {model.n_params / 1e9:.3g}B"


def configuration_of(
    row: TrainingRow, catalog: Catalog, *, model: Model | None = None
) -> Configuration:
    """The row as nouns, or of a model that is at hand; InputError where a name is unknown."""
    _check_counts(row)
    assumed: list[Assumption] = []
    stack = _stack(row)
    accelerator = accelerator_of(row.text("accelerator"), catalog)
    model = model or _model_of(row, assumed)
    _check_split(row, model, assumed)
    n_node = row.count("devices_per_node") or _n_node(accelerator)
    layout = _layout(row, model, stack, n_node=n_node, assumed=assumed)
    setup = _setup(row, model, stack, layout=layout, assumed=assumed)
    if setup.execution.kernels == "grouped" and architecture_class(model) != "dense":
        stack = stack._replace(host_ratio=GRAPH_HOST_RATIO)
    stated = row.joined("fabric", "accelerator")
    fabric = fabric_of(accelerator, stated=stated, n_node=row.count("devices_per_node"))
    return Configuration(
        model=model,
        accelerator=accelerator,
        setup=setup,
        layout=layout,
        fabric=fabric,
        stack=stack,
        program=row.text("source").partition(":")[0],
        assumptions=tuple(assumed),
    )


def _stack(row: TrainingRow) -> Stack:
    stack = stack_of(
        row.text("framework"),
        source=row.text("source"),
        date=row.text("date"),
        note=row.text("note"),
    )
    return stack._replace(sharding="zero3") if "fsdp" in row.lower("sharding") else stack


def _check_counts(row: TrainingRow) -> None:
    """Counts are at least one; all that are not are reported at once."""
    columns = ("seq_len", "global_batch", "micro_batch", "devices_per_node")
    counts = {
        "n_accelerators": row.n_accelerators,
        **{column: row.count(column) for column in columns},
        **row.degrees,
    }
    problems = [
        Problem(f"{row.name}.{name}", f"got {count}", "use 1 or more, or leave blank")
        for name, count in counts.items()
        if count is not None and count < 1
    ]
    if problems:
        raise InputError("training row", problems)


def _check_split(row: TrainingRow, model: Model, assumed: list[Assumption]) -> None:
    """No more stages than layers, no more ranks than heads; uneven splits are assumptions."""
    groups, degrees = model.main.groups, row.degrees
    heads = [n for n in (getattr(group.mixer, "n_heads", 0) for group in groups) if n]
    experts = [g.feed_forward.n_experts for g in groups if isinstance(g.feed_forward, Experts)]
    limits = {"pp": [model.main.n_layers], "tp": heads, "ep": experts}
    problems = [
        Problem(f"{row.name}.{name}", f"got {degrees[name]}", f"use {least} or less")
        for name, least in ((name, min(found)) for name, found in limits.items() if found)
        if degrees.get(name, 1) > least
    ]
    if problems:
        raise InputError("training row", problems)
    for name in ("tp", "ep"):
        if any(n % degrees.get(name, 1) for n in limits[name]):
            _assume(
                assumed, name, str(degrees[name]), "it does not divide the heads or experts evenly"
            )


def _model_of(row: TrainingRow, assumed: list[Assumption]) -> Model:
    dimensions = row.dimensions
    if dimensions is not None:
        known = known_model(row.text("model"))
        if known is not None:
            return known
        model = model_from(row.text("model"), dimensions, source=row.text("source"))
        assumed.extend(model.assumptions)
        return model
    check_named(row.text("model"))
    model = named_model(row.text("model"))
    n_layers = row.count("n_layers")
    if n_layers is None or n_layers == model.main.n_layers:
        return model
    if architecture_class(model) != "dense":
        _assume(assumed, "n_layers", str(model.main.n_layers), "the table counts otherwise")
        return model
    return _cut(model, n_layers)


def _cut(model: Model, n_layers: int) -> Model:
    """A copy with fewer layers, as used to test on few accelerators."""
    main = model.main
    share = n_layers / main.n_layers
    groups = tuple(
        replace(group, n_layers=max(1, round(group.n_layers * share))) for group in main.groups
    )
    stacks = tuple(replace(s, groups=groups) if s is main else s for s in model.stacks)
    return replace(model, stacks=stacks)


def fabric_of(accelerator: Accelerator, *, stated: str = "", n_node: int | None = None) -> Fabric:
    """Links of a server, the accelerator's usual one unless its size is given, and its NICs."""
    n_node = n_node or _n_node(accelerator)
    n_domain = max(n_node, _n_rack(accelerator))
    rate, _ = nic_bytes_per_s(stated, accelerator, n_node=n_node)
    outside = fabric_link(rate, fabric=fabric_kind(stated))
    # Cards of one server that no bridge or switch joins talk over the host's bus.
    inside = link_of(accelerator, n_ranks=min(8, n_domain))
    return Fabric(n_domain=n_domain, inside=inside, outside=outside, n_node=n_node)


def _n_rack(accelerator: Accelerator) -> int:
    """Accelerators of a scale-up domain that is larger than a server; 1 where there is none."""
    domain = accelerator.scale_up
    if domain is None:
        return 1
    if accelerator.vendor == "Google":
        return domain.n_domain_max  # a slice is cut out of the torus of a whole pod
    return domain.n_domain if domain.n_domain > MOST_IN_SERVER else 1


def _n_node(accelerator: Accelerator) -> int:
    return 4 if re.search(r"^gb\d|gh200", str(accelerator.id)) else 8


def _layout(
    row: TrainingRow, model: Model, stack: Stack, *, n_node: int, assumed: list[Assumption]
) -> ParallelLayout:
    degrees, n = row.degrees, row.n_accelerators
    tp, pp = degrees.get("tp", 1), degrees.get("pp", 1)
    cp, ep = degrees.get("cp", 1), degrees.get("ep", 1)
    dp = max(1, n // (tp * pp * cp))
    if dp * tp * pp * cp != n:
        used = f"{dp * tp * pp * cp} of {n}"
        _assume(assumed, "n_accelerators", used, "tp x pp x cp do not divide them")
    batch = row.count("global_batch")
    if batch is not None and dp > batch:
        # More ranks than samples: they can only share sequences.
        cp, dp = cp * dp // batch, batch
    n_virtual = degrees.get("vp") or _assumed_chunks(
        row, model, pp=pp, stack_name=stack.name, assumed=assumed
    )
    sharding, n_shard = _sharding(row, stack, n_near=min(dp * cp, max(1, n_node // tp)))
    return ParallelLayout(
        tp=tp,
        pp=pp,
        n_virtual=n_virtual,
        schedule="interleaved" if n_virtual > 1 else "1f1b",
        cp=cp,
        ep=min(ep, dp * cp),
        dp=dp,
        sharding=sharding,
        n_shard=n_shard,
        has_sequence_parallel=stack.has_sequence_parallel and tp > 1,
    )


def _assumed_chunks(
    row: TrainingRow, model: Model, *, pp: int, stack_name: str, assumed: list[Assumption]
) -> int:
    """NeMo and MLPerf entries interleave as far as layers allow; the others do not."""
    text = row.joined("framework", "source").lower()
    n_layers = model.main.n_layers
    if pp == 1 or stack_name != "megatron" or "primus" in text:
        return 1
    for slots in (n_layers, n_layers + 2):
        if slots % pp == 0:
            _assume(assumed, "vp", str(slots // pp), "NeMo recipes interleave single layers")
            return slots // pp
    return 1


def _sharding(row: TrainingRow, stack: Stack, *, n_near: int) -> tuple[Sharding, int | None]:
    text = row.lower("sharding")
    group = re.search(r"zero1 group (\d+)", text)
    if "zero1" in text:
        return "zero1", int(group[1]) if group else None
    if "grad_op" in text or "zero2" in text:
        return "zero2", None
    if "hsdp" in text or "hybrid" in text:
        return "zero3", n_near  # sharded inside a node, copied between nodes
    if "full_shard" in text or "fsdp" in text or "zero3" in text:
        return "zero3", None
    named: dict[str, Sharding] = {"distributed optimizer": "zero1", "none": "none", "ddp": "none"}
    return named.get(text, stack.sharding), None


def _setup(
    row: TrainingRow,
    model: Model,
    stack: Stack,
    *,
    layout: ParallelLayout,
    assumed: list[Assumption],
) -> TrainingSetup:
    sequence = row.count("seq_len")
    if sequence is None:
        sequence = ASSUMED_SEQUENCE_TOKENS
        _assume(assumed, "seq_len", str(sequence), "the row does not say")
    micro, n_micro = _batches(row, model, stack, layout=layout, assumed=assumed)
    is_adapter = "lora" in row.lower("task")
    compute = _compute(row.lower("precision"), assumed)
    execution = Execution(
        recompute=_recompute(row, stack),
        compute=compute,
        attention=stack.attention,
        kernels="grouped" if stack.fuses_experts and compute in NARROW else stack.kernels,
        scatters_stage_output=stack.scatters_stage_output,
    )
    gradient = 4.0 if "default" in row.text("note").lower() else stack.gradient_bytes
    states = StateBytes(gradient_bytes_per_param=gradient)
    return TrainingSetup(
        task="lora" if is_adapter else "pretrain",
        states=states,
        micro_batch=micro,
        sequence_tokens=sequence,
        n_micro_batches=n_micro,
        execution=execution,
        adapter=_adapter(row) if is_adapter else None,
    )


def _batches(
    row: TrainingRow,
    model: Model,
    stack: Stack,
    *,
    layout: ParallelLayout,
    assumed: list[Assumption],
) -> tuple[int, int]:
    """Micro-batch, and micro-batches per step and rank."""
    stated = re.search(r"micro_num (\d+)", row.text("note"))
    batch, micro = row.count("global_batch"), row.count("micro_batch")
    if batch is None:
        n_micro = int(stated[1]) if stated else 1
        if not stated:
            # Sharded scripts take what fits at once; pipelines are fed for every accelerator.
            per_rank = ASSUMED_SAMPLES * layout.n_accelerators // layout.dp
            n_micro = 1 if layout.sharding == "zero3" else max(1, per_rank // (micro or 1))
            assumed_batch = n_micro * (micro or 1) * layout.dp
            _assume(assumed, "global_batch", str(assumed_batch), "the row does not say")
        return micro or 1, n_micro
    per_rank = max(1, batch // layout.dp)
    if micro is None:
        # MaxText takes the samples of a device at once [MaxText].
        is_whole = stack.name == COMPILER
        micro = per_rank if is_whole else _assumed_micro(model, layout, per_rank)
        _assume(assumed, "micro_batch", str(micro), "the row does not say")
    return micro, max(1, round(per_rank / micro))


def _assumed_micro(model: Model, layout: ParallelLayout, per_rank: int) -> int:
    if layout.n_accelerators <= layout.tp:
        return per_rank  # one replica, one batch
    wanted = 4 if layout.pp == 1 else (2 if model.main.hidden_size < 12_288 else 1)
    return next(n for n in (wanted, 2, 1) if per_rank % n == 0)


def _recompute(row: TrainingRow, stack: Stack) -> Recompute:
    text = row.lower("recompute")
    if text in ("", "?"):
        # MaxText recomputes every layer where nothing else is said [MaxText].
        return "full" if stack.attention == "math" or stack.name == COMPILER else "none"
    if re.search(r"^(?!no).*(full|yes|true|checkpoint)|^(on|1)$", text):
        return "full"
    if "selective" in text:
        return "alternate" if stack.name.startswith("fsdp") else "selective"
    return "none"


def _compute(precision: str, assumed: list[Assumption]) -> Compute:
    found = next((name for pattern, name in COMPUTE if re.search(pattern, precision)), None)
    if found is not None:
        return found
    if not re.search(r"bf16|bfloat", precision):
        why = f"{precision!r} is no format of training" if precision else "the row does not say"
        _assume(assumed, "precision", "bf16", why)
    return "bf16"


def _adapter(row: TrainingRow) -> LoRA:
    quantized = re.search(r"qlora|nf4|4bit|4-bit", row.joined("task", "quantization").lower())
    return LoRA(
        rank=row.count("lora_rank") or ASSUMED_LORA_RANK,
        targets=ALL_LINEAR_TARGETS if row.lower("lora_targets") == "all" else ATTENTION_TARGETS,
        states=StateBytes(),
        base=FORMATS["nf4"] if quantized else None,
    )


def _assume(assumed: list[Assumption], what: str, value: str, why: str) -> None:
    assumed.append(Assumption(what=what, value=value, why=why, change=f"column {what}"))
