"""The chosen fleets replayed on draws that no sizing has seen; where one breaks it grows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.candidates.search import smallest_that_holds
from gpuplan.domain.columns import Ints, ints
from gpuplan.domain.plan.answer import Curve, Replay
from gpuplan.domain.plan.selection import FleetOption, Selection
from gpuplan.domain.plan.sizing import ReplicaNeed, Sized, Sizing
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Serving
from gpuplan.studies.day_replay.day import (
    POOL,
    broken_hours,
    day_of,
    day_stream,
    replay_of,
    trace_day,
    trace_stream,
)
from gpuplan.studies.planning.options import Rows
from gpuplan.studies.sizing.serving import ServingSizer
from gpuplan.studies.sizing.simulator import FleetSimulator
from gpuplan.studies.sizing.task import SizingContext, SizingTask

FRESH_DRAW = 2  # sizing used 0 and 1
GROWN = "{} more than sized: the replay on fresh draws broke a promise"
LEAST_MORE = 8  # replicas more that are tried in any case
LOAD_FRACS = (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25)
_ENDS = (100.0 * LOAD_FRACS[0], 100.0 * LOAD_FRACS[-1])


class Replayed(NamedTuple):
    """Sizings after a replay, what it showed, and whether a fleet had to grow."""

    sizings: list[Sizing]
    replays: tuple[Replay, ...]
    is_tightened: bool


def replayed(
    scenario: Scenario, around: SizingContext, sizings: Sequence[Sizing], *, chosen: Selection
) -> Replayed:
    """Every chosen fleet through its day; one that breaks a promise grows and is measured anew."""
    done: list[Sizing] = []
    seen: list[Replay] = []
    is_tightened = False
    for sizing in sizings:
        sized = sized_of(sizing, chosen)
        runs = None if sized is None else _runs(scenario, around, sizing, sized=sized)
        if sized is None or runs is None:
            done.append(sizing)
            continue
        hourly = _hourly(sizing, sized.need, chosen)
        day = _day(runs, sizing, n_replicas=hourly, seed=around.options.seed)
        broken = _broken(runs, sizing, n_serving=sized.n_serving, day=day)
        seen += [] if day is None else [day]
        if not broken.any():
            done.append(sizing)
            continue
        is_tightened = True
        need = _enough(runs, sizing, sized, chosen=chosen, broken=broken)
        more = need.n_peak - sized.n_serving
        remark = GROWN.format(f"{more} replica{'s' if more != 1 else ''}" if more else "some hours")
        grown = measured_anew(scenario, around, sizing, sized=sized, need=need, remark=remark)
        done.append(replace(sizing, sized=tuple(grown if s is sized else s for s in sizing.sized)))
    return Replayed(done, tuple(seen), is_tightened)


def measured_anew(
    scenario: Scenario, around: SizingContext, sizing: Sizing, *, sized: Sized, need: ReplicaNeed,
    remark: str,
) -> Sized:  # fmt: skip
    """The fleet in another number, with what that number reaches; as it was, if never simulated."""
    runs = _runs(scenario, around, sizing, sized=sized)
    if runs is None:
        return replace(sized, need=need, remarks=(*sized.remarks, remark))
    sizer = _sizer(scenario, around, sizing, runs)
    return sizer.resized(sized, need=need, remark=remark)


def secured(
    scenario: Scenario, around: SizingContext, rows: Rows, *, sizings: Sequence[Sizing],
    chosen: Selection,
) -> tuple[Rows, list[Sizing]]:  # fmt: skip
    """The chosen fleets with the load up to which they are safe; the others are not asked."""
    done: list[Sizing] = []
    by_name = dict(rows.by_name)
    for sizing in sizings:
        sized = sized_of(sizing, chosen)
        runs = None if sized is None else _runs(scenario, around, sizing, sized=sized)
        if sized is None or runs is None:
            done.append(sizing)
            continue
        safe = _sizer(scenario, around, sizing, runs).with_safety(sized)
        done.append(replace(sizing, sized=tuple(safe if s is sized else s for s in sizing.sized)))
        by_name |= {
            name: row._replace(sized=_with_safety_of(safe, row.sized))
            for name, row in by_name.items()
            if name[0] == sizing.workload and row.sized.candidate == sized.candidate
        }
    return rows._replace(by_name=by_name), done


def _with_safety_of(safe: Sized, sized: Sized) -> Sized:
    return replace(
        sized, utilization=safe.utilization, n_slow_end=safe.n_slow_end,
        capacity_per_s=safe.capacity_per_s,
    )  # fmt: skip


def _sizer(
    scenario: Scenario, around: SizingContext, sizing: Sizing, runs: FleetSimulator
) -> ServingSizer:
    return ServingSizer(_task(scenario, around, sizing), runs)


def _task(scenario: Scenario, around: SizingContext, sizing: Sizing) -> SizingTask:
    workload = scenario.workload(sizing.workload)
    assert workload is not None
    return SizingTask(workload=workload, scenario=scenario, demand=sizing.demand, context=around)


def _hourly(sizing: Sizing, need: ReplicaNeed, chosen: Selection) -> Ints:
    """Replicas that the plan counts on in each hour: all, or by need where nodes come and go."""
    hours = ints(need.n_replicas[0, 0])
    option = chosen.option_of(sizing.workload)
    sharers = [each for each in chosen.chosen if each.pool == option.pool]
    nodes = sum(held.n_nodes[0, 0] for held in chosen.held if held.pool == option.pool)
    is_steady = bool(np.all(nodes == np.max(nodes)))
    return ints(np.full_like(hours, hours.max())) if is_steady and len(sharers) == 1 else hours


def _enough(
    runs: FleetSimulator,
    sizing: Sizing,
    sized: Sized,
    *,
    chosen: Selection,
    broken: NDArray[np.bool_],
) -> ReplicaNeed:
    """The fewest replicas more in these hours with which the replay breaks nothing."""

    def holds(n_more: int) -> bool:
        need = _more(sized, broken, n_more)
        hourly = _hourly(sizing, need, chosen)
        day = _day(runs, sizing, n_replicas=hourly, seed=runs.options.seed)
        return not _broken(runs, sizing, n_serving=need.n_peak, day=day).any()

    most = max(LEAST_MORE, sized.n_serving)
    return _more(sized, broken, smallest_that_holds(holds, 1, 2, most=most) or most)


def _day(runs: FleetSimulator, sizing: Sizing, *, n_replicas: Ints, seed: int) -> Replay | None:
    """The day or week: the trace itself where there is one, fresh draws by the hour else."""
    demand, recorded = sizing.demand, runs.streams.recorded
    peak = demand.peak_of(0, 0)
    if recorded is not None and len(demand.hours.load_frac) == 1:
        most = int(n_replicas.max())
        day = trace_day(recorded, most, peak_per_s=peak, n_whole=runs.options.n_replayed_whole)
        requests = trace_stream(recorded, day, peak_per_s=peak, seed=seed)
    else:
        day = day_of(
            demand, n_replicas, residence_s=runs.residence_s,
            n_whole=runs.options.n_replayed_whole,
        )  # fmt: skip
        requests = day_stream(runs, day, draw=FRESH_DRAW)
    return replay_of(runs, day, requests, workload=sizing.workload)


def _broken(
    runs: FleetSimulator, sizing: Sizing, *, n_serving: int, day: Replay | None
) -> NDArray[np.bool_]:
    """Hours that need more replicas: those that broke, and the peak on fresh draws."""
    hours = sizing.demand.hours.load_frac
    broken = np.zeros(len(hours), bool) if day is None else broken_hours(sizing.demand, day)
    n = min(n_serving, POOL)
    peak = sizing.demand.peak_of(0, 0) * n / n_serving
    if not runs.run(peak, n, draw=FRESH_DRAW).meets_slo:
        broken = broken | (hours == hours.max())
    return broken


def _more(sized: Sized, broken: NDArray[np.bool_], n_more: int) -> ReplicaNeed:
    """So many replicas more, of every pool of a large fleet, in these hours of any period."""
    need = sized.need.n_replicas
    step = n_more * max(1, round(sized.n_serving / POOL))
    grown = need + step * ((need > 0) & broken[None, None, :])
    # A later period may ask at a low hour for what today's peak does: more load never takes fewer.
    return ReplicaNeed(n_replicas=ints(grown))


def sized_of(sizing: Sizing, chosen: Selection) -> Sized | None:
    """The fleet behind the option that was chosen for this workload."""
    options = [option for option in chosen.chosen if option.workload == sizing.workload]
    return _behind(sizing, options[0]) if options else None


def latency_curves(
    scenario: Scenario, around: SizingContext, sizing: Sizing, *, sized: Sized
) -> tuple[Curve, ...]:
    """What users feel on this very fleet as the load moves, in shares of each promise."""
    runs = _runs(scenario, around, sizing, sized=sized)
    if runs is None or not runs.limits:
        return ()
    n = min(sized.n_serving, POOL)  # larger fleets are pools of so many
    peak = sizing.demand.peak_of(0, 0) * n / sized.n_serving
    chart = f"What users of {sizing.workload} feel as the load moves, spares left out"
    trials = [runs.run(frac * peak, n, draw=FRESH_DRAW) for frac in LOAD_FRACS]
    names = {"x_name": "load, % of the planned peak", "y_name": "% of the promised limit"}
    broken = Curve(chart=chart, name="limit", x=_ENDS, y=(100.0, 100.0), **names)
    felt = (
        Curve(
            chart=chart,
            name=f"{limit.metric} {limit.statistic}",
            x=tuple(100.0 * frac for frac in LOAD_FRACS),
            y=tuple(_share(trial.latencies[place][1].value_s, limit.limit_s) for trial in trials),
            **names,
        )
        for place, limit in enumerate(runs.limits)
    )
    return (*felt, broken)


def _share(value_s: float, limit_s: float) -> float:
    # Far beyond the limit a queue grows without end: the chart shows that it does, not how far.
    return float(f"{min(250.0, 100.0 * value_s / limit_s):.5g}")


def _behind(sizing: Sizing, option: FleetOption) -> Sized | None:
    names = {sized.candidate.name: sized for sized in sizing.sized}
    return names.get(option.name.rsplit(" on ", 1)[0])


def _runs(
    scenario: Scenario, around: SizingContext, sizing: Sizing, *, sized: Sized
) -> FleetSimulator | None:
    """Trials of one fleet; None where it was not simulated."""
    workload = scenario.workload(sizing.workload)
    if workload is None or workload.model is None or workload.model.name is None:
        return None
    work = workload.work
    if not isinstance(work, Serving) or sized.method != "simulated":
        return None
    task = _task(scenario, around, sizing)
    known = around.simulators.get((workload.name, sized.candidate))
    if known is not None and known.evaluator.load == task.serving_load:
        return known
    simulator = task.simulator(sized.candidate)
    if simulator is not None:
        around.simulators[workload.name, sized.candidate] = simulator
    return simulator
