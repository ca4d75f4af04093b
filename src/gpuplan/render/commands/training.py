"""Command lines of training runs: torchrun with Megatron-LM, torchtitan, or TRL with PEFT."""

import shlex
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gpuplan.domain.plan.deployed import Deployed, DeployedPool, RenderedFile
from gpuplan.domain.scenario.workload import Training
from gpuplan.render.reasons import commented, head, reasons
from gpuplan.render.text import text_file

Flags = list[tuple[str, object, bool]]
RECOMPUTE = {"full": "full", "selective": "selective", "alternate": "selective"}


class Rendezvous(NamedTuple):
    """How the nodes of a run find each other, as the shell of the scheduler names them."""

    rank: str = "${NODE_RANK:-0}"
    address: str = "${MASTER_ADDR:-localhost}"


def n_nodes(one: DeployedPool) -> int:
    """Servers of the run."""
    return max(1, one.node.n_nodes)


def per_node(one: DeployedPool) -> int:
    """Accelerators of each of them."""
    return one.node.n_accelerators or one.n_per_replica // n_nodes(one)


def framework_of(one: DeployedPool) -> str:
    """Which of the commands fits: the plan's framework, adapters always by PEFT."""
    assert one.run is not None
    if one.run.method in ("lora", "qlora"):
        return "trl"
    name = one.pool.engine.lower()
    return "megatron" if "megatron" in name or "nemo" in name else "torchtitan"


def torchrun(one: DeployedPool, at: Rendezvous) -> str:
    """The launcher, one process for each accelerator."""
    return (
        f"torchrun --nnodes {n_nodes(one)} --nproc-per-node {per_node(one)} "
        f'--node-rank "{at.rank}" --master-addr "{at.address}" --master-port 29500'
    )


def run_command(one: DeployedPool, at: Rendezvous) -> str:
    """The whole command of one node."""
    assert one.run is not None
    name = framework_of(one)
    program, flags = PROGRAMS[name]
    launcher = torchrun(one, at)
    words = [
        flag if value is True else f"{flag} {shlex.quote(str(value))}"
        for flag, value, is_set in flags(one, one.run)
        if is_set
    ]
    return " \\\n  ".join([f"{launcher} {program}", *words])


def _megatron(one: DeployedPool, run: Training) -> Flags:
    layout, steps = one.pool.layout, one.pool.steps
    recompute = RECOMPUTE.get(steps.recompute)
    samples = _samples(run)
    return [
        ("--tensor-model-parallel-size", layout.tp, True),
        ("--sequence-parallel", True, layout.tp > 1),
        ("--pipeline-model-parallel-size", layout.pp, True),
        ("--num-virtual-stages-per-pipeline-rank", steps.vp, layout.pp > 1 and steps.vp > 1),
        ("--context-parallel-size", layout.cp, layout.cp > 1),
        ("--expert-model-parallel-size", layout.ep, layout.ep > 1),
        ("--use-distributed-optimizer", True, layout.sharding == "zero1"),
        ("--use-torch-fsdp2", True, layout.sharding in ("zero3", "hsdp")),
        ("--micro-batch-size", steps.micro_batch, steps.micro_batch > 0),
        ("--global-batch-size", steps.global_batch, steps.global_batch > 0),
        ("--seq-length", run.sequence_tokens, True),
        ("--max-position-embeddings", run.sequence_tokens, True),
        ("--train-samples", samples, samples is not None),
        ("--bf16", True, one.pool.precision == "bf16"),
        ("--fp8-format", "hybrid", one.pool.precision == "fp8"),
        ("--recompute-activations", True, recompute == "selective"),
        ("--recompute-granularity", "full", recompute == "full"),
        ("--recompute-method", "uniform", recompute == "full"),
        ("--recompute-num-layers", 1, recompute == "full"),
    ]


def _torchtitan(one: DeployedPool, run: Training) -> Flags:
    layout, steps = one.pool.layout, one.pool.steps
    shards = one.node.n_accelerators if layout.sharding == "hsdp" else -1
    replicas = max(1, layout.dp // shards) if shards > 0 else 1
    n_steps = _steps(one, run)
    return [
        ("--parallelism.tensor_parallel_degree", layout.tp, True),
        ("--parallelism.pipeline_parallel_degree", layout.pp, layout.pp > 1),
        ("--parallelism.context_parallel_degree", layout.cp, layout.cp > 1),
        ("--parallelism.expert_parallel_degree", layout.ep, layout.ep > 1),
        ("--parallelism.data_parallel_shard_degree", shards, True),
        ("--parallelism.data_parallel_replicate_degree", replicas, replicas > 1),
        ("--training.local_batch_size", steps.micro_batch, steps.micro_batch > 0),
        ("--training.global_batch_size", steps.global_batch, steps.global_batch > 0),
        ("--training.seq_len", run.sequence_tokens, True),
        ("--training.steps", n_steps, n_steps is not None),
        ("--activation_checkpoint.mode", RECOMPUTE.get(steps.recompute, "none"), True),
    ]


def _trl(one: DeployedPool, run: Training) -> Flags:
    steps, layout = one.pool.steps, one.pool.layout
    micro = steps.micro_batch or 1
    accumulated = max(1, steps.global_batch // (micro * max(1, layout.dp)))
    return [
        ("--model_name_or_path", one.model or "MODEL", True),
        ("--dataset_name", "DATASET", True),
        ("--use_peft", True, True),
        ("--lora_r", run.lora_rank or 16, True),
        ("--lora_target_modules", "all-linear", True),
        ("--load_in_4bit", True, run.method == "qlora"),
        ("--per_device_train_batch_size", micro, True),
        ("--gradient_accumulation_steps", accumulated, True),
        ("--max_length", run.sequence_tokens, True),
        ("--num_train_epochs", f"{run.n_epochs:g}", True),
        ("--gradient_checkpointing", True, steps.recompute not in ("", "none")),
        ("--fsdp", "full_shard auto_wrap", layout.sharding in ("zero3", "hsdp")),
        ("--bf16", True, True),
    ]


PROGRAMS: dict[str, tuple[str, Callable[[DeployedPool, Training], Flags]]] = {
    "megatron": ("pretrain_gpt.py", _megatron),
    "torchtitan": ("-m torchtitan.train", _torchtitan),
    "trl": ("trl/scripts/sft.py", _trl),
}


def _samples(run: Training) -> int | None:
    """Sequences over all epochs."""
    if run.n_samples is not None:
        return round(run.n_samples * run.n_epochs)
    return (
        None if run.n_tokens is None else round(run.n_tokens * run.n_epochs / run.sequence_tokens)
    )


def _steps(one: DeployedPool, run: Training) -> int | None:
    samples = _samples(run)
    batch = one.pool.steps.global_batch
    return None if samples is None or not batch else -(-samples // batch)


def notes_of(one: DeployedPool) -> Iterator[str]:
    """What the command leaves to whoever runs it."""
    yield (
        "The model's own arguments, the data and the tokenizer are yours to add; layout, batch, "
        "precision and recomputation are the plan's."
    )
    if one.pool.layout.sharding:
        yield f"Sharding {one.pool.layout.sharding}; network as planned: {_fabric(one)}."


def _fabric(one: DeployedPool) -> str:
    return one.pool.steps.fabric or "within one server"


def training_scripts(deployed: Deployed) -> Iterator[RenderedFile]:
    """A script for each run."""
    for one in deployed.pools:
        if one.run is None:
            continue
        notes = [*head(deployed), *reasons(one), *notes_of(one)]
        body = f"set -eu\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\n{run_command(one, Rendezvous())}\n"
        yield text_file(f"train-{one.name}.sh", f"#!/usr/bin/env bash\n{commented(notes)}{body}")
