"""Pools behind one router as one run, in: a run of each pool; out: all of their requests.

A router that sends requests by weight gives every pool a Poisson stream of its own: pools are run
apart, each with its share of the load, and their requests are counted together.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from gpuplan.demand.statistics import summary
from gpuplan.domain.columns import Floats, floats, ints
from gpuplan.domain.simulation.outcome import (
    WEIGHTED,
    ClassStatistics,
    EngineTotals,
    Outcome,
    RequestTimes,
    UseOverTime,
)
from gpuplan.domain.simulation.simulation import PowerOverTime, SimulateRequest, Simulation
from gpuplan.domain.traffic.stream import Requests
from gpuplan.simulation.serving.statistics import flow_of
from gpuplan.studies.replay.judge import judged
from gpuplan.studies.replay.power import total_estimate

Columns = dict[str, Any]  # of numbers, by the name of their field
TIMES = ("wait_s", "ttft_s", "tpot_s", "e2e_s", "n_preemptions", "is_finished")
USES = ("busy_frac", "cache_frac", "compute_frac", "bandwidth_frac")


def joined(runs: Sequence[Simulation], request: SimulateRequest) -> Simulation:
    """All pools as one fleet: every request once, in the order in which they came."""
    outcome = _outcome([run.outcome for run in runs])
    return replace(
        runs[0],
        fleet=replace(runs[0].fleet, router=WEIGHTED),
        outcome=outcome,
        statistics=judged(outcome, request),
        classes=tuple(_class(run) for run in runs),
        wall_s=sum(run.wall_s for run in runs),
        flow=flow_of(outcome),
        power=_power([run.power for run in runs], outcome),
        holding=None,
        load=summary(outcome.requests),
    )


def _class(run: Simulation) -> ClassStatistics:
    """What the requests of one pool felt."""
    found, setup = run.statistics, run.setup
    n = run.fleet.n_engines // setup.n_engines
    return ClassStatistics(
        name=f"{n} × {setup.layout.n_accelerators} {setup.accelerator.name}",
        n_requests=found.n_measured,
        n_completed=run.outcome.n_completed,
        recall_frac=found.recall_frac,
        ttft=found.ttft,
        tpot=found.tpot,
        e2e=found.e2e,
    )


def _outcome(parts: Sequence[Outcome]) -> Outcome:
    order = np.argsort(np.concatenate([x.requests.arrive_s for x in parts]), kind="stable")

    def columns(of: Sequence[Requests] | Sequence[RequestTimes], names: Iterable[str]) -> Columns:
        return {name: np.concatenate([getattr(x, name) for x in of])[order] for name in names}

    requests = columns([x.requests for x in parts], (f.name for f in fields(Requests)))
    times = columns([x.times for x in parts], TIMES)
    refused: dict[str, int] = {}
    for why, n in (each for part in parts for each in part.refused):
        refused[why] = refused.get(why, 0) + n
    notes = dict.fromkeys(note for part in parts for note in part.assumptions)
    return Outcome(
        requests=Requests(**requests),
        times=RequestTimes(**times),
        use=_use(parts),
        totals=_totals([part.totals for part in parts]),
        n_engines=sum(part.n_engines for part in parts),
        refused=tuple(refused.items()),
        assumptions=tuple(notes),
    )


def _use(parts: Sequence[Outcome]) -> UseOverTime:
    """Shares of the engines of all pools, bin by bin; a pool that is done is idle."""
    n_bins = max(len(part.use.busy_frac) for part in parts)
    n_engines = [part.n_engines for part in parts]
    return UseOverTime(
        bin_s=parts[0].use.bin_s,
        **{
            name: floats(
                np.average(
                    [_padded(getattr(part.use, name), n_bins) for part in parts],
                    axis=0,
                    weights=n_engines,
                )
            )
            for name in USES
        },
    )


def _padded(values: Floats, n: int) -> Floats:
    return floats(np.pad(values, (0, n - len(values))))


def _totals(parts: Sequence[EngineTotals]) -> EngineTotals:
    """Sums over all pools; the span is that of the one that ends last."""
    sums = {f.name: sum(getattr(part, f.name) for part in parts) for f in fields(EngineTotals)}
    return EngineTotals(**{**sums, "span_s": max(part.span_s for part in parts)})


def _power(parts: Sequence[PowerOverTime | None], outcome: Outcome) -> PowerOverTime | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    n_bins = max(len(part.power_w) for part in known)
    energy = total_estimate([part.energy_j for part in known])
    n_tokens = int(ints(outcome.requests.output_tokens[outcome.finished]).sum())
    return PowerOverTime(
        bin_s=known[0].bin_s,
        power_w=floats(sum(_padded(part.power_w, n_bins) for part in known)),
        mean_power_w=total_estimate([part.mean_power_w for part in known]),
        energy_j=energy,
        energy_j_per_output_token=energy.scaled(1.0 / n_tokens) if n_tokens else None,
    )
