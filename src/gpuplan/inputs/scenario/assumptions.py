"""Defaults made visible: each value that the user did not give, why, and how to give it.

Kinds of work as the plain ones they consist of: rollouts and training, tokens of audio, samples.

In: a scenario as written. Out: the same with plain workloads alone. The second part of a workload
stands at the end of the list, so that every other keeps its place.
"""

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

from pydantic import TypeAdapter

from gpuplan.domain.provenance import Assumption
from gpuplan.inputs.documents.document import KeyPath, show_path
from gpuplan.inputs.schema.keys import Spread, Strict
from gpuplan.inputs.schema.kinds import (
    ClassicalSpec,
    MadeWorkload,
    RecommenderSpec,
    ReinforcementLearningSpec,
    SpeechSynthesisSpec,
)
from gpuplan.inputs.schema.scenario import ScenarioSpec
from gpuplan.inputs.schema.workload import PlainWorkload
from gpuplan.units import DAY, GFLOP, HOUR, KB, MB, MS

SHARED = ("precision", "kv_precision", "priority", "team", "schedule", "capacity", "data_path")
PLAIN: TypeAdapter[PlainWorkload] = TypeAdapter(PlainWorkload)


# Defaults that stand in for a key only where another key is given.
ACTIVE_FRAC = 0.2
REQUESTS_PER_USER_PER_H = 10.0
PEAK_TO_MEAN_OF_DAY = 3.0
LORA_RANK = 16


class Assumptions:
    """Collects what is assumed while a scenario is read."""

    def __init__(self) -> None:
        self._found: list[Assumption] = []

    def add(self, path: KeyPath, value: object, why: str, *, what: str) -> None:
        """Note a value that was assumed for a key, with the reason."""
        change = show_path(path)
        note = Assumption(what=what, value=show_value(value), why=why, change=change)
        self._found.append(note)

    def all(self) -> tuple[Assumption, ...]:
        """What was noted, in order of the file."""
        return tuple(self._found)

    def add_defaults(self, spec: Strict, path: KeyPath = ()) -> None:
        """Note every default of the format that stands in for a key that was left out."""
        for name, field in type(spec).model_fields.items():
            value = getattr(spec, name)
            here = (*path, name)
            extra = field.json_schema_extra
            why = extra.get("x-why") if isinstance(extra, dict) else None
            if name not in spec.model_fields_set and why is not None:
                self.add(here, value, str(why), what=field.description or name)
            else:
                self._descend(value, here)

    def _descend(self, value: Any, path: KeyPath) -> None:
        if isinstance(value, Strict):
            self.add_defaults(value, path)
        elif isinstance(value, list):
            for i, item in enumerate(value):
                self._descend(item, (*path, i))


def show_value(value: object) -> str:
    """A value as the user would write it."""
    if isinstance(value, Spread):
        one = value.low == value.high
        return f"{value.mid:g}" if one else f"{value.low:g} … {value.mid:g} … {value.high:g}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(show_value(item) for item in value)
    return str(value)


def with_plain_kinds(spec: ScenarioSpec) -> ScenarioSpec:
    """The scenario with every workload as the plain kinds that it consists of."""
    first: list[PlainWorkload] = []
    rest: list[PlainWorkload] = []
    for work in spec.workloads:
        if isinstance(work, MadeWorkload):
            parts = [PLAIN.validate_python({**_shared(work), **part}) for part in _parts(work)]
            first.append(parts[0])
            rest += parts[1:]
        else:
            first.append(work)
    return spec.model_copy(update={"workloads": [*first, *rest]})


def _shared(work: MadeWorkload) -> dict[str, Any]:
    """Keys that every kind has, those that were given."""
    given = {name: getattr(work, name) for name in SHARED if name in work.model_fields_set}
    if work.model is not None:
        given["model"] = work.model
    return given


@singledispatch
def _parts(work: object) -> list[Mapping[str, Any]]:
    raise TypeError(type(work).__name__)  # every made kind is registered below


@_parts.register
def _(work: ReinforcementLearningSpec) -> list[Mapping[str, Any]]:
    """Training of the policy, and the engine that writes its samples one step ahead of it.

    Samples of one prompt share its prefill: of k of them, k - 1 find it in the prefix cache.
    """
    run, rollout = work.training, work.rollout
    each = rollout.input_tokens + rollout.output_tokens
    batch = {
        "docs": (run.tokens or 0.0) * run.epochs / each,
        "deadline_h": (run.deadline_days or 0.0) * DAY / HOUR,
    }
    hit = 1.0 - 1.0 / max(1.0, rollout.samples_per_prompt)
    request = {
        "input_tokens": rollout.input_tokens,
        "output_tokens": rollout.output_tokens,
        "prefix_hit_frac": hit,
    }
    training = {**run.model_dump(exclude_unset=True), "method": "full"}
    return [
        {"name": f"{work.name} training", "kind": "finetuning", "training": training},
        {
            "name": f"{work.name} rollout",
            "kind": "batch_inference",
            "batch": batch,
            "request": request,
        },
    ]


@_parts.register
def _(work: SpeechSynthesisSpec) -> list[Mapping[str, Any]]:
    """A service that writes audio tokens at least as fast as they are heard."""
    slo = {"tpot_p95_ms": 1.0 / work.audio_tokens_per_s / MS}
    if work.ttft_p95_ms is not None:
        slo["ttft_p95_ms"] = work.ttft_p95_ms
    request = {
        "input_tokens": work.text_tokens,
        "output_tokens": work.audio_s * work.audio_tokens_per_s,
    }
    return [
        {
            "name": work.name,
            "kind": "online_inference",
            "demand": work.demand,
            "request": request,
            "slo": slo,
        }
    ]


@_parts.register
def _(work: RecommenderSpec) -> list[Mapping[str, Any]]:
    """Samples bound by the traffic of embedding rows, or by the dense layers."""
    given = work.work
    traffic = given.lookups_per_sample * given.embedding_dim * given.element_bytes
    samples = {
        "samples_per_s": given.samples_per_s,
        "gflop_per_sample": given.dense_gflop_per_sample,
        "activation_mb_per_sample": traffic / MB,
        "hourly_profile": given.hourly_profile,
    }
    return [{"name": work.name, "kind": "generic", "work": samples}]


@_parts.register
def _(work: ClassicalSpec) -> list[Mapping[str, Any]]:
    """Rows bound by their operations, or by reading them."""
    given = work.work
    samples = {
        "samples_per_s": given.samples_per_s,
        "gflop_per_sample": given.operations_per_sample / GFLOP,
        "activation_mb_per_sample": given.sample_kb * KB / MB,
        "training": given.training,
    }
    return [{"name": work.name, "kind": "generic", "work": samples}]
