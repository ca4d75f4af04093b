"""A training job from few words: the task, the framework's usual way, what the user insists on."""

import dataclasses
from typing import get_args

from gpuplan.domain.model.precision import FORMATS
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.requests.requests import TrainingRequest
from gpuplan.domain.training.setup import (
    ALL_LINEAR_TARGETS,
    Execution,
    LoRA,
    Recompute,
    StateBytes,
    Task,
    TrainingSetup,
)
from gpuplan.errors import InputError, Problem
from gpuplan.performance.memory.training.frameworks import (
    HALF_ADAPTER,
    OPTIMIZER_BYTES,
    PRACTICES,
    WIDE_ADAPTER,
    Practice,
)

# The framework that most people run a task with.
USUAL_FRAMEWORK = {
    "pretrain": "megatron",
    "full": "torchtitan",
    "lora": "transformers",
    "qlora": "transformers",
}
VENDOR_FRAMEWORK = {"Google": "maxtext"}  # where the usual ones do not run


def usual_framework(task: str, vendor: str = "") -> str:
    """The framework that most people run a task with on accelerators of this vendor."""
    return VENDOR_FRAMEWORK.get(vendor) or USUAL_FRAMEWORK[task]


def setup_of(
    request: TrainingRequest, vendor: str = ""
) -> tuple[TrainingSetup, tuple[Assumption, ...]]:
    """The job in full, with what was assumed; InputError names every word that is unknown."""
    _refuse_unknown(request)
    framework = request.framework or usual_framework(request.task, vendor)
    practice = PRACTICES[framework]
    task: Task = request.task  # type: ignore[assignment]
    setup = TrainingSetup(
        task=task,
        states=_states(practice, request),
        micro_batch=request.micro_batch,
        sequence_tokens=request.sequence_tokens,
        execution=_execution(practice, request.recompute),
        adapter=_adapter(request, framework),
    )
    return setup, _assumptions(request, framework, setup.execution)


def _refuse_unknown(request: TrainingRequest) -> None:
    requested = [
        ("--task", request.task, get_args(Task)),
        ("--framework", request.framework, tuple(PRACTICES)),
        ("--recompute", request.recompute, get_args(Recompute)),
        ("--optimizer", request.optimizer, tuple(OPTIMIZER_BYTES)),
    ]
    problems = [
        Problem(flag, f"got {word!r}", f"use one of {', '.join(known)}")
        for flag, word, known in requested
        if word is not None and word not in known
    ]
    if problems:
        raise InputError("fit", problems)


def _states(practice: Practice, request: TrainingRequest) -> StateBytes:
    if request.optimizer is None:
        return practice.states
    retained = OPTIMIZER_BYTES[request.optimizer]
    return dataclasses.replace(practice.states, optimizer_bytes_per_param=retained)


def _execution(practice: Practice, requested: str | None) -> Execution:
    if requested is None:
        return practice.execution
    # What torchtitan calls selective drops every second matrix product, not the scores.
    is_alternate = requested == "selective" and practice.execution.recompute == "alternate"
    recompute: Recompute = "alternate" if is_alternate else requested  # type: ignore[assignment]
    return dataclasses.replace(practice.execution, recompute=recompute)


def _adapter(request: TrainingRequest, framework: str) -> LoRA | None:
    if request.task not in ("lora", "qlora"):
        return None
    # PEFT makes its adapters in 32 bits and feeds them so; others keep the base's 16.
    is_wide = framework == "transformers"
    return LoRA(
        rank=request.lora_rank,
        targets=ALL_LINEAR_TARGETS,
        states=WIDE_ADAPTER if is_wide else HALF_ADAPTER,
        base=FORMATS["nf4-dq"] if request.task == "qlora" else None,
        input_bytes_per_element=4.0 if is_wide else 2.0,
    )


def _assumptions(
    request: TrainingRequest, framework: str, execution: Execution
) -> tuple[Assumption, ...]:
    found = []
    if request.framework is None:
        why = f"the usual framework for {request.task}"
        found.append(
            assume("framework", framework, why, "--framework", PRACTICES[framework].source)
        )
    if request.recompute is None:
        why = f"the default of {framework}"
        found.append(assume("activation recomputation", execution.recompute, why, "--recompute"))
    if request.task in ("lora", "qlora"):
        value = f"rank {request.lora_rank} on all linear layers"
        why = "the usual LoRA adapter"
        found.append(assume("adapter", value, why, "--lora-rank"))
    return tuple(found)
