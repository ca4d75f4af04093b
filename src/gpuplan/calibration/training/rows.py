"""Rows of training measurements, in: a CSV in the published form; out: typed conditions.

Blank stays None: what a blank means is decided where the row becomes a configuration.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpuplan.calibration.tables import read_rows
from gpuplan.calibration.training.models import Dimensions

TABLES = ("llm_training.csv", "llm_finetune.csv", "llm_finetune_scripts.csv")
FINE_TUNING = ("lora", "qlora", "sft", "full")
MEASURED = ("step_s", "tokens_per_s_per_accelerator", "mfu_pct")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOrigin:
    """Who measured, with what."""

    id: str
    source: str
    framework: str
    date: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowModel:
    """What was trained."""

    name: str
    dimensions: Dimensions | None
    n_layers: int | None  # a cut-down copy where it differs from the model's own
    task: str
    lora_rank: int | None = None
    quantization: str = ""
    lora_targets: str = ""  # "all" matrices, or those of attention


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMachine:
    """What it ran on."""

    accelerator: str
    n_accelerators: int
    fabric: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRun:
    """How it ran."""

    precision: str
    recompute: str
    sequence_tokens: int | None
    global_batch: int | None
    micro_batch: int | None
    sharding: str
    degrees: Mapping[str, int]  # tp, pp, vp, cp, ep, dp where given


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRow:
    """One measurement with its conditions."""

    origin: RowOrigin
    model: RowModel
    machine: RowMachine
    run: RowRun
    measured: Mapping[str, float]  # by metric, as published


def shipped_rows() -> list[TrainingRow]:
    """The rows that the calibration rests on: pre-training and fine-tuning."""
    return [row_of(fields) for name in TABLES for fields in read_rows(name)]


def row_of(fields: Mapping[str, str | None]) -> TrainingRow:
    """A typed row; columns that are not there count as blank."""

    def text(name: str) -> str:
        return (fields.get(name) or "").strip()

    n_layers, hidden = _count(text("n_layers")), _count(text("hidden"))
    dimensions = None
    if n_layers and hidden:
        dimensions = Dimensions(
            n_layers=n_layers,
            hidden=hidden,
            n_heads=_count(text("heads")),
            n_vocab=_count(text("vocab")),
        )
    n_accelerators = _count(text("n_accelerators"))
    degrees = {name: _count(text(name)) for name in ("tp", "pp", "vp", "cp", "ep", "dp")}
    return TrainingRow(
        origin=RowOrigin(**{n: text(n) for n in ("id", "source", "framework", "date", "note")}),
        model=RowModel(
            name=text("model"),
            dimensions=dimensions,
            n_layers=n_layers,
            task=text("task").lower(),
            lora_rank=_count(text("lora_rank")),
            quantization=text("quantization"),
            lora_targets=text("lora_targets").lower(),
        ),
        machine=RowMachine(
            accelerator=text("accelerator"),
            n_accelerators=1 if n_accelerators is None else n_accelerators,
            fabric=text("fabric"),
        ),
        run=RowRun(
            precision=text("precision").lower(),
            recompute=text("recompute").lower(),
            sequence_tokens=_count(text("seq_len")),
            global_batch=_count(text("global_batch")),
            micro_batch=_count(text("micro_batch")),
            sharding=text("sharding").lower(),
            degrees={name: n for name, n in degrees.items() if n is not None},
        ),
        measured=_measured(fields),
    )


def _measured(fields: Mapping[str, str | None]) -> dict[str, float]:
    found = {}
    for metric in MEASURED:
        value = _number((fields.get(f"measured_{metric}") or "").strip())
        if value is not None and value > 0:
            found[metric] = value
    return found


def _count(text: str) -> int | None:
    number = _number(text)
    return None if number is None else round(number)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[-+]?\d*\.?\d+(e[-+]?\d+)?", text, re.IGNORECASE) else None


def regime_of(row: TrainingRow) -> str:
    """Pre-training, or fine-tuning of any kind."""
    return "fine-tuning" if row.model.task in FINE_TUNING else "pre-training"
