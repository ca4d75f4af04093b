"""Training forecasts: the columns of a training table in, its step and its whole run out."""

from collections.abc import Mapping
from dataclasses import replace

from gpuplan.calibration.residuals import Spread
from gpuplan.calibration.training.constants import (
    TrainingCalibration,
    constants_of,
    read_calibration,
    tier_of,
)
from gpuplan.calibration.training.fabric import names_kind, nic_bytes_per_s
from gpuplan.calibration.training.rows import TrainingRow
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.model.network import Model
from gpuplan.domain.provenance import Assumption, Estimate, Tier, assume
from gpuplan.domain.ranges import exactly
from gpuplan.domain.requests.requests import TrainingRun
from gpuplan.domain.scenario.workload import CheckpointPlan
from gpuplan.domain.training.run import RunForecast
from gpuplan.domain.training.setup import LoRA, ParallelLayout
from gpuplan.domain.training.time import TrainingForecast
from gpuplan.errors import InputError, one
from gpuplan.performance.memory.training.frameworks import PRACTICES
from gpuplan.performance.memory.training.params import adapter_params
from gpuplan.performance.memory.training.setups import USUAL_FRAMEWORK, usual_framework
from gpuplan.performance.training.step import training_step
from gpuplan.studies.measured.names import accelerator_of
from gpuplan.studies.measured.training import Configuration, shape_key
from gpuplan.studies.training.cases import Case, case_of, kind_of
from gpuplan.studies.training.fit import configuration_fit
from gpuplan.studies.training.interruptions import Interruptions
from gpuplan.units import GBIT

USUAL_DEVICES = 8  # a server of them, where no number is stated
# As a table writes what a framework recomputes by default.
RECOMPUTE_WORDS = {"alternate": "selective"}


def predict_training(
    fields: Mapping[str, str], *, calibration: TrainingCalibration | None = None
) -> TrainingForecast:
    """Step time, throughput and utilization with ranges, and what was assumed."""
    return forecast(case_of(TrainingRow(fields), read_catalog()), calibration)


def predict_run(run: TrainingRun, *, model: Model | None = None) -> RunForecast:
    """Step time, throughput, MFU, memory and length of a training run, with ranges.

    `training_run` builds the run from keywords.
    """
    requested = counted(dict(run.columns))
    columns, assumed = with_usual(requested)
    case = case_of(TrainingRow(columns), read_catalog(), model=model)
    found = case.configuration
    predicted, stops = forecast(case), _stops(run, found)
    n = found.layout.n_accelerators
    notes = (*predicted.assumptions, *assumed, *stops.assumptions)
    return RunForecast(
        model=found.model,
        columns=tuple(requested.items()),
        forecast=replace(predicted, assumptions=notes),
        fit=configuration_fit(found, task=columns["task"], framework=columns["framework"]),
        goodput=stops.goodput(n),
        useful_frac=stops.useful_frac(n),
        n_tokens=run.n_tokens,
    )


def counted(columns: Mapping[str, str]) -> dict[str, str]:
    """The columns with as many accelerators as are stated, beside their type or in its name."""
    text, stated = columns["accelerator"], columns["n_accelerators"]
    choice = find_accelerator(text, read_catalog())
    named = choice.n_accelerators or 1
    n = int(stated or (named if named > 1 else USUAL_DEVICES))
    if n % named:
        fix = "name the type alone, or a multiple of what its name counts"
        raise one(InputError, "predict-training", "--devices", f"{n} of {text!r}", fix)
    kind = str(choice.accelerator.id) if named > 1 else text
    return {**columns, "accelerator": kind, "n_accelerators": str(n)}


def trained_params(model: Model, adapter: LoRA | None) -> float:
    """Parameters whose state a checkpoint holds: all of them, or the adapters alone."""
    if adapter is None:
        return float(model.n_params)
    return adapter_params(model, ParallelLayout(), adapter)


def with_usual(columns: Mapping[str, str]) -> tuple[dict[str, str], tuple[Assumption, ...]]:
    """The columns of a run with what its task is usually done with, and what was assumed."""
    filled = {"task": "pretrain", "framework": "", "recompute": "", "fabric": "", **columns}
    if filled["task"] not in USUAL_FRAMEWORK:
        what, fix = f"got {filled['task']!r}", f"use one of {', '.join(USUAL_FRAMEWORK)}"
        raise one(InputError, "predict-training", "--task", what, fix)
    accelerator = accelerator_of(filled.get("accelerator", ""), read_catalog())
    assumed = []
    if not filled["framework"]:
        name = filled["framework"] = usual_framework(filled["task"], accelerator.vendor)
        why = f"the usual framework for {filled['task']}"
        assumed.append(assume("framework", name, why, "--framework", PRACTICES[name].source))
    practice = PRACTICES.get(filled["framework"].lower())
    if not filled["recompute"] and practice is not None:
        word = practice.execution.recompute
        filled["recompute"] = RECOMPUTE_WORDS.get(word, word)
        why = f"the default of {filled['framework']}"
        assumed.append(assume("activation recomputation", word, why, "--recompute"))
    return filled, (*assumed, *_network_notes(filled))


def _network_notes(columns: Mapping[str, str]) -> list[Assumption]:
    """The NICs that are assumed between servers; InputError where the text says nothing of them."""
    row, stated = TrainingRow(columns), columns["fabric"]
    accelerator = accelerator_of(row.text("accelerator"), read_catalog())
    n_node = row.count("devices_per_node") or 8
    rate, is_stated = nic_bytes_per_s(stated, accelerator, n_node=n_node)
    if is_stated or row.n_accelerators <= n_node:
        return []
    if stated and not names_kind(stated):
        fix = "write e.g. '400 Gbit/s per GPU' or '3200 Gbit/s per node'"
        raise one(InputError, "predict-training", "--fabric", f"got {stated!r}", fix)
    value, why = f"{rate / GBIT:,.0f} Gbit/s per accelerator", "the maker's reference server"
    return [assume("network between servers", value, why, "--fabric")]


def _stops(run: TrainingRun, found: Configuration) -> Interruptions:
    """What stops the run: as asked, else as usual."""
    rate, n = run.checkpoint_bytes_per_s, found.layout.n_accelerators
    writes = None if rate is None else exactly(rate)
    checkpoint = CheckpointPlan(write_bytes_per_s=writes, restart_s=run.restart_s)
    mtbf_s = None if run.mtbf_s is None else run.mtbf_s * n
    return Interruptions(checkpoint, trained_params(found.model, found.setup.adapter), mtbf_s)


def forecast(case: Case, calibration: TrainingCalibration | None = None) -> TrainingForecast:
    """The step of one case with the ranges of the calibration, and what was assumed."""
    used, found = calibration or read_calibration(), case.configuration
    constants = constants_of(
        used.fitted, found.labels, accelerator=found.accelerator, stack=found.stack
    )
    step = training_step(
        found.model, found.accelerator, found.setup, found.layout, found.fabric, constants
    )
    known = used.known(found.labels, shape_key(found.model), has_conditions=case.is_complete)
    spread, tier = used.spread(kind_of(case), known), tier_of(known)
    return TrainingForecast(
        step=step,
        step_s=_rising(step.step_s, spread, tier),
        tokens_per_s_per_accelerator=_falling(step.tokens_per_s_per_accelerator, spread, tier),
        mfu_frac=_falling(step.mfu_frac, spread, tier),
        assumptions=found.assumptions,
    )


def _rising(value: float, spread: Spread, tier: Tier) -> Estimate:
    return Estimate(value=value, low=value * spread.low, high=value * spread.high, tier=tier)


def _falling(value: float, spread: Spread, tier: Tier) -> Estimate:
    """A rate: a longer step is a lower rate."""
    return Estimate(value=value, low=value / spread.high, high=value / spread.low, tier=tier)
