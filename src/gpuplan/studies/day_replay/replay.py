"""The chosen fleets replayed on draws that no sizing has seen; one that violates an SLO grows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.candidates.search import smallest_that_holds
from gpuplan.domain.columns import Ints, ints
from gpuplan.domain.plan.answer import Curve, Replay
from gpuplan.domain.plan.selection import Selection
from gpuplan.domain.plan.sizing import ReplicaNeed, Sized, Sizing
from gpuplan.domain.scenario.workload import Serving
from gpuplan.stages import begin
from gpuplan.studies.day_replay.day import (
    POOL,
    day_of,
    day_stream,
    loop_replay,
    replay_of,
    trace_day,
    trace_stream,
    violated_hours,
)
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.planning.options import FleetTable
from gpuplan.studies.sizing.serving import ServingSizer
from gpuplan.studies.sizing.simulator import FleetSimulator

FRESH_DRAW = 2  # sizing used 0 and 1
LEAST_MORE = 8  # replicas more that are tried in any case
LOAD_FRACS = (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25)
MOST_PERCENT = 250.0  # of a limit in charts: beyond, a queue grows without end


class ReplayOutcome(NamedTuple):
    """Sizings after a replay, what it showed, and whether a fleet had to grow."""

    sizings: list[Sizing]
    replays: tuple[Replay, ...]
    is_tightened: bool


class ReplayedFleet(NamedTuple):
    """A chosen fleet with what it is simulated by."""

    sizing: Sizing
    sized: Sized
    runs: FleetSimulator
    sizer: ServingSizer
    chosen: Selection

    def replay(self, need: ReplicaNeed) -> Replay | None:
        """The day or week with so many replicas: the trace itself, or fresh draws by the hour."""
        runs, demand = self.runs, self.sizing.demand
        n_replicas = hourly_replicas(self.sizing, need, self.chosen)
        recorded, n_whole = runs.streams.recorded, runs.options.n_replayed_whole
        peak = demand.peak_of(0, 0)
        if demand.n_users is not None:
            return loop_replay(runs, demand, n_replicas, draw=FRESH_DRAW)
        if recorded is not None and len(demand.hours.load_frac) == 1:
            day = trace_day(recorded, int(n_replicas.max()), peak_per_s=peak, n_whole=n_whole)
            seed = runs.options.seed
            requests = trace_stream(recorded, day, peak_per_s=peak, seed=seed)
        else:
            day = day_of(demand, n_replicas, residence_s=runs.residence_s, n_whole=n_whole)
            requests = day_stream(runs, day, draw=FRESH_DRAW)
        return replay_of(runs, day, requests, workload=self.sizing.workload)

    def violated(self, need: ReplicaNeed, day: Replay | None) -> NDArray[np.bool_]:
        """Hours that need more replicas: those out of SLO, and the peak on fresh draws."""
        demand = self.sizing.demand
        hours = demand.hours.load_frac
        violated = np.zeros(len(hours), bool) if day is None else violated_hours(demand, day)
        n = min(need.n_peak, POOL) if demand.n_users is None else need.n_peak
        peak = demand.peak_of(0, 0) * n / need.n_peak
        if not self.runs.run(peak, n, draw=FRESH_DRAW).meets_slo:
            violated = violated | (hours == hours.max())
        return violated

    def enough(self, violated: NDArray[np.bool_]) -> ReplicaNeed:
        """The fewest replicas more in these hours with which the replay meets every SLO."""

        def holds(n_more: int) -> bool:
            need = _more(self.sized, violated, n_more)
            return not self.violated(need, self.replay(need)).any()

        most = max(LEAST_MORE, self.sized.n_serving)
        n_more = smallest_that_holds(holds, 1, 2, most=most) or most
        return _more(self.sized, violated, n_more)

    def sizing_with(self, sized: Sized) -> Sizing:
        """The sizing with this fleet in place of the chosen one."""
        others = self.sizing.sized
        return replace(
            self.sizing, sized=tuple(sized if each is self.sized else each for each in others)
        )


def replay_chosen(
    inputs: PlanInputs, sizings: Sequence[Sizing], chosen: Selection
) -> ReplayOutcome:
    """Every chosen fleet through its day; one that violates an SLO grows and is measured anew."""
    begin("simulating the chosen fleet through its day")
    done: list[Sizing] = []
    replays: list[Replay] = []
    is_tightened = False
    for sizing in sizings:
        fleet = replayed_fleet(inputs, sizing, chosen)
        if fleet is None:
            done.append(sizing)
            continue
        day = fleet.replay(fleet.sized.need)
        violated = fleet.violated(fleet.sized.need, day)
        replays += [] if day is None else [day]
        is_tightened = is_tightened or bool(violated.any())
        done.append(_grown(fleet, violated) if violated.any() else sizing)
    return ReplayOutcome(done, tuple(replays), is_tightened)


def _grown(fleet: ReplayedFleet, violated: NDArray[np.bool_]) -> Sizing:
    """The sizing with enough replicas, and with what that number reaches."""
    need = fleet.enough(violated)
    more = need.n_peak - fleet.sized.n_serving
    count = f"{more} replica{'s' if more != 1 else ''}" if more else "some hours"
    remark = f"{count} more than sized: the replay on fresh draws violated an SLO"
    return fleet.sizing_with(fleet.sizer.resized(fleet.sized, need=need, remark=remark))


def with_safe_utilization(
    inputs: PlanInputs, table: FleetTable, sizings: Sequence[Sizing], *, chosen: Selection
) -> tuple[FleetTable, list[Sizing]]:
    """The chosen fleets with the utilization up to which they meet their SLOs; none if brief."""
    if inputs.request.basis.is_brief:
        return table, list(sizings)
    done: list[Sizing] = []
    by_name = dict(table.by_name)
    for sizing in sizings:
        fleet = replayed_fleet(inputs, sizing, chosen)
        if fleet is None:
            done.append(sizing)
            continue
        safe, remarks = fleet.sizer.with_safety(fleet.sized), fleet.sizer.too_few(fleet.sized)
        done.append(fleet.sizing_with(_judged(safe, safe, remarks)))
        by_name |= {
            name: row._replace(sized=_judged(row.sized, safe, remarks))
            for name, row in by_name.items()
            if name[0] == sizing.workload and row.sized.candidate == fleet.sized.candidate
        }
    return table._replace(by_name=by_name), done


def _judged(sized: Sized, safe: Sized, notes: tuple[str, ...]) -> Sized:
    """The fleet with its safe utilization, and what fewer would violate before other remarks."""
    return replace(sized, utilization=safe.utilization, remarks=(*notes, *sized.remarks))


def hourly_replicas(sizing: Sizing, need: ReplicaNeed, chosen: Selection) -> Ints:
    """Replicas that the plan counts on in each hour: all, or by need where nodes come and go."""
    hours = ints(need.n_replicas[0, 0])
    option = chosen.option_of(sizing.workload)
    sharers = [each for each in chosen.chosen if each.pool == option.pool]
    start = option.first_period
    nodes = sum(
        provisioned.n_nodes[0, start]
        for provisioned in chosen.provisioned
        if provisioned.pool == option.pool
    )
    is_steady = bool(np.all(nodes == np.max(nodes)))
    return ints(np.full_like(hours, hours.max())) if is_steady and len(sharers) == 1 else hours


def _more(sized: Sized, violated: NDArray[np.bool_], n_more: int) -> ReplicaNeed:
    """So many replicas more, of every pool of a large fleet, in these hours of any period."""
    need = sized.need.n_replicas
    step = n_more * max(1, round(sized.n_serving / POOL))
    grown = need + step * ((need > 0) & violated[None, None, :])
    # A later period may ask at a low hour for what today's peak does: more load never takes fewer.
    return ReplicaNeed(n_replicas=ints(grown))


def latency_curves(inputs: PlanInputs, sizing: Sizing, *, sized: Sized) -> tuple[Curve, ...]:
    """Latency of this very fleet as the load moves, in shares of each SLO."""
    runs = _runs(inputs, sizing, sized)
    if runs is None or not runs.limits:
        return ()
    n = min(sized.n_serving, POOL)  # larger fleets are pools of so many
    peak = sizing.demand.peak_of(0, 0) * n / sized.n_serving
    chart = f"Latency of {sizing.workload} over load, without spare replicas"
    trials = [runs.run(frac * peak, n, draw=FRESH_DRAW) for frac in LOAD_FRACS]
    percents = tuple(100.0 * frac for frac in LOAD_FRACS)
    lines = [
        (
            f"{limit.metric} {limit.statistic}",
            percents,
            tuple(_percent(t.latencies[place][1].value_s, limit.limit_s) for t in trials),
        )
        for place, limit in enumerate(runs.limits)
    ]
    lines.append(("limit", (percents[0], percents[-1]), (100.0, 100.0)))
    axes = {"x_name": "load, % of the planned peak", "y_name": "% of the SLO limit"}
    return tuple(Curve(chart=chart, name=name, x=x, y=y, **axes) for name, x, y in lines)


def _percent(value_s: float, limit_s: float) -> float:
    return float(f"{min(MOST_PERCENT, 100.0 * value_s / limit_s):.5g}")


def replayed_fleet(inputs: PlanInputs, sizing: Sizing, chosen: Selection) -> ReplayedFleet | None:
    """The fleet that was chosen for this workload; None where it was not simulated."""
    names = [o.name.rsplit(" on ", 1)[0] for o in chosen.chosen if o.workload == sizing.workload]
    sized = next((s for s in sizing.sized if names and s.candidate.name == names[0]), None)
    runs = None if sized is None else _runs(inputs, sizing, sized)
    task = inputs.task(sizing)
    if sized is None or runs is None or task is None:
        return None
    return ReplayedFleet(sizing, sized, runs, ServingSizer(task, runs), chosen)


def _runs(inputs: PlanInputs, sizing: Sizing, sized: Sized) -> FleetSimulator | None:
    """The simulator of one fleet; None where it was not simulated."""
    task = inputs.task(sizing)
    if task is None or task.workload.model is None or task.workload.model.name is None:
        return None
    if not isinstance(task.workload.work, Serving) or sized.method != "simulated":
        return None
    key = (task.workload.name, sized.candidate)
    known = inputs.around.simulators.get(key)
    if known is not None and known.evaluator.load == task.serving_load:
        return known
    simulator = task.simulator(sized.candidate)
    if simulator is not None:
        inputs.around.simulators[key] = simulator
    return simulator
