"""What a training workload asks for, whatever runs it: model, tokens, arithmetic, batch."""

from gpuplan.calibration.training.models import ASSUMED_VOCAB, Dimensions, model_from
from gpuplan.domain.model.network import Model
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.scenario.workload import ModelRef, Training, TrainingMethod, Workload
from gpuplan.errors import InputError, one
from gpuplan.performance.training.run import FORWARD_BACKWARD
from gpuplan.studies.sizing.demand import training_tokens
from gpuplan.studies.sizing.task import SizingTask
from gpuplan.studies.training.shapes import NO_LAYOUT, TrainingTask

# Frozen weights need no gradients of their own: forward and the way back through them.
ADAPTER_FLOP = 4.0
TASKS: dict[TrainingMethod, str] = {
    "pretraining": "pretrain",
    "full": "full",
    "lora": "lora",
    "qlora": "qlora",
}
ADAPTED = ("lora", "qlora")
LORA_RANK = 16
# Tokens of one update: 4 M for Llama 2 and most since [Touvron2023], 16 M for 405 B [Llama3].
BATCH_TOKENS, LARGE_BATCH_TOKENS, LARGE_PARAMS = 4.0 * 2**20, 16.0 * 2**20, 100e9
FINETUNE_SAMPLES = 128.0  # Assumption: sequences of one update
GIVEN_SLACK_FRAC, ASSUMED_SLACK_FRAC = 0.05, 0.125  # that the batch may move to divide evenly
PARAMS_PER_SQUARE = 12.0  # of a layer, over the square of its width [Kaplan2020]
WIDTH_PER_LAYER = 128.0  # Assumption: width over depth of a usual decoder
HEAD_DIM = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A training workload with its model."""

    workload: Workload
    work: Training
    task: TrainingTask
    n_params: float
    n_active_params: float
    has_shape: bool  # the layers are known, not assumed
    assumptions: tuple[Assumption, ...] = ()

    @property
    def n_tokens(self) -> float:
        """Of all epochs together."""
        return training_tokens(self.work)

    @property
    def n_samples(self) -> float:
        """Sequences of all epochs together."""
        return self.n_tokens / self.work.sequence_tokens

    @property
    def flop(self) -> float:
        """Of the model alone: recompute is no work done."""
        per_param = ADAPTER_FLOP if self.work.method in ADAPTED else FORWARD_BACKWARD
        return per_param * self.n_active_params * self.n_tokens


def job_of(task: SizingTask) -> Job:
    """The job with its model, by name or by its parameters alone."""
    workload = task.workload
    assert isinstance(workload.work, Training)
    ref = workload.model
    if ref is None or (ref.name is None and ref.n_params is None):
        fix = "name the model or give its parameters"
        raise one(InputError, "plan", f"{workload.name}.model", "is not known", fix)
    if ref.name is not None:
        return _job(workload, workload.work, task.model, (("model", ref.name),))
    model, columns = assumed_model(ref.n_params or 0.0)
    found = _job(workload, workload.work, model, columns)
    return _sized_as(found, ref)


def _job(
    workload: Workload, work: Training, model: Model, columns: tuple[tuple[str, str], ...]
) -> Job:
    batch, assumed = _batch(work, model.n_params)
    each = work.accelerator_batch_tokens
    rank, notes = work.lora_rank or LORA_RANK, list(assumed)
    if work.method in ADAPTED and work.lora_rank is None:
        why = "the usual LoRA adapter on all linear layers"
        notes.append(assume("LoRA rank", str(rank), why, "workloads[].training.lora_rank"))
    return Job(
        workload=workload,
        work=work,
        task=TrainingTask(
            model=model,
            columns=columns,
            task=TASKS[work.method],
            precision=workload.precisions[0] if workload.precisions else "bf16",
            sequence_tokens=work.sequence_tokens,
            batch_samples=batch,
            batch_slack_frac=ASSUMED_SLACK_FRAC if assumed else GIVEN_SLACK_FRAC,
            samples_per_accelerator=None if each is None else each / work.sequence_tokens,
            lora_rank=rank,
            requested=workload.layout or NO_LAYOUT,
        ),
        n_params=float(model.n_params),
        n_active_params=float(model.n_active_params),
        has_shape=True,
        assumptions=tuple(notes),
    )


def _sized_as(job: Job, ref: ModelRef) -> Job:
    """The job counted by the parameters that were given, not by those of the assumed shape."""
    n_params = float(ref.n_params or 0.0)
    main = job.task.model.main
    shape = f"{main.n_layers} layers of width {main.hidden_size}, dense"
    why = "the parameters alone were given; memory and layout rest on it"
    return Job(
        workload=job.workload,
        work=job.work,
        task=job.task,
        n_params=n_params,
        n_active_params=float(ref.n_active_params or n_params),
        has_shape=ref.n_active_params in (None, ref.n_params),
        assumptions=(*job.assumptions, assume("shape of the model", shape, why, "model: a name")),
    )


def assumed_model(n_params: float) -> tuple[Model, tuple[tuple[str, str], ...]]:
    """A dense decoder of so many parameters, with the columns that name it in a training table."""
    n_layers = max(1, round((n_params / (PARAMS_PER_SQUARE * WIDTH_PER_LAYER**2)) ** (1 / 3)))
    square, table = PARAMS_PER_SQUARE * n_layers, float(ASSUMED_VOCAB)
    width = ((table**2 + 4 * square * n_params) ** 0.5 - table) / (2 * square)
    step = 8 * HEAD_DIM if width > 16 * HEAD_DIM else HEAD_DIM  # heads that tensor ranks share
    hidden = step * max(1, round(width / step))
    name = f"dense decoder of {n_params / 1e9:g}B"
    shape = {"n_layers": n_layers, "hidden": hidden, "heads": hidden // HEAD_DIM}
    dimensions = Dimensions(n_layers=n_layers, hidden=hidden, n_heads=hidden // HEAD_DIM)
    columns = (("model", name), *((key, str(value)) for key, value in shape.items()))
    return model_from(name, dimensions, source=""), columns


def _batch(work: Training, n_params: float) -> tuple[float, tuple[Assumption, ...]]:
    """Sequences of one update, as given or as usual."""
    given = work.global_batch_tokens
    if given is not None or work.accelerator_batch_tokens is not None:
        return max(1.0, (given or 0.0) / work.sequence_tokens), ()
    if work.method == "pretraining":
        tokens = LARGE_BATCH_TOKENS if n_params >= LARGE_PARAMS else BATCH_TOKENS
        samples, why = max(1.0, tokens / work.sequence_tokens), "usual for models of this size"
    else:
        samples, why = FINETUNE_SAMPLES, "usual for fine-tuning"
    samples = min(samples, max(1.0, training_tokens(work) / work.sequence_tokens))
    value = f"{samples:,.0f} sequences of {work.sequence_tokens:,} tokens"
    change = "workloads[].training.global_batch_tokens"
    return samples, (assume("global batch", value, why, change),)
