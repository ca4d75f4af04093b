"""Whether a training job can be laid out as asked: every problem at once."""

from gpuplan.domain.model.layers import Attention, Experts, LatentAttention
from gpuplan.domain.model.network import Model
from gpuplan.domain.training.setup import ParallelLayout, TrainingSetup
from gpuplan.errors import InputError, Problem


def check_training(model: Model, setup: TrainingSetup, layout: ParallelLayout) -> None:
    """Raise with all problems of the job, if it has any."""
    problems = training_problems(model, setup, layout)
    if problems:
        raise InputError("training", problems)


def training_problems(model: Model, setup: TrainingSetup, layout: ParallelLayout) -> list[Problem]:
    """Every problem that keeps the job from running."""
    return [
        *_positive(setup, layout),
        *_task(setup),
        *_pipeline(model, layout),
        *_tensor(model, layout),
        *_experts(model, layout),
        *_shards(layout),
    ]


def _positive(setup: TrainingSetup, layout: ParallelLayout) -> list[Problem]:
    counts = {
        "micro_batch": setup.micro_batch,
        "sequence_tokens": setup.sequence_tokens,
        "n_micro_batches": setup.n_micro_batches,
        "tp": layout.tp,
        "pp": layout.pp,
        "n_virtual": layout.n_virtual,
        "cp": layout.cp,
        "ep": layout.ep,
        "dp": layout.dp,
    }
    return [
        Problem(name, f"got {value}", "must be 1 or more")
        for name, value in counts.items()
        if value < 1
    ]


def _task(setup: TrainingSetup) -> list[Problem]:
    is_adapted = setup.task in ("lora", "qlora")
    if is_adapted and setup.adapter is None:
        return [Problem("adapter", f"missing for {setup.task}", "give rank and targets")]
    if not is_adapted and setup.adapter is not None:
        return [Problem("adapter", f"given for {setup.task}", "leave it out, or ask for lora")]
    if setup.task == "qlora" and setup.adapter is not None and setup.adapter.base is None:
        return [Problem("adapter.base", "missing for qlora", "give the format, e.g. nf4")]
    return []


def _pipeline(model: Model, layout: ParallelLayout) -> list[Problem]:
    # Embedding and output layer may take a place of their own (126 layers on 16 stages of 8).
    n_places = model.main.n_layers + 2
    n_chunks = layout.pp * layout.n_virtual
    if n_chunks <= n_places:
        return []
    what = f"{layout.pp} stages x {layout.n_virtual} chunks (--vp) for {n_places - 2} layers"
    return [
        Problem("pp", what, f"use at most {n_places} in total: fewer stages, or a smaller --vp")
    ]


def _tensor(model: Model, layout: ParallelLayout) -> list[Problem]:
    mixers = [group.mixer for group in model.main.groups]
    heads = {m.n_heads for m in mixers if isinstance(m, Attention | LatentAttention)}
    return [
        Problem("tp", f"{layout.tp} does not divide {n} heads", "use a divisor of the heads")
        for n in sorted(heads)
        if layout.tp > 0 and n % layout.tp
    ]


def _experts(model: Model, layout: ParallelLayout) -> list[Problem]:
    feeds = [group.feed_forward for group in model.main.groups]
    counts = {feed.n_experts for feed in feeds if isinstance(feed, Experts)}
    if layout.ep > 1 and not counts:
        return [Problem("ep", f"got {layout.ep} for a model without experts", "use 1")]
    problems = [
        Problem("ep", f"{layout.ep} does not divide {n} experts", "use a divisor of the experts")
        for n in sorted(counts)
        if layout.ep > 0 and n % layout.ep
    ]
    n_ranks = layout.dp * layout.cp
    if layout.ep > 1 and n_ranks % layout.ep:
        what = f"{layout.ep} does not divide {n_ranks} data- and context-parallel ranks"
        problems.append(Problem("ep", what, "experts are spread over those ranks"))
    return problems


def _shards(layout: ParallelLayout) -> list[Problem]:
    n_ranks = layout.dp * layout.cp
    if layout.n_shard is not None and (layout.n_shard < 1 or n_ranks % layout.n_shard):
        what = f"{layout.n_shard} does not divide {n_ranks} data- and context-parallel ranks"
        return [Problem("n_shard", what, "use a divisor, or leave it out for all of them")]
    return []
