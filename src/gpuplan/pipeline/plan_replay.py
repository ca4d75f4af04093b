"""The chosen fleets replayed on draws that no sizing has seen; where one breaks it grows."""

from collections.abc import Sequence
from dataclasses import replace

from gpuplan.domain.columns import ints
from gpuplan.domain.plan import Curve
from gpuplan.domain.scenario import Scenario
from gpuplan.domain.selection import FleetOption, Selection
from gpuplan.domain.sizing import ReplicaNeed, Sized, Sizing
from gpuplan.domain.workload import Serving
from gpuplan.pipeline.models import model_named
from gpuplan.pipeline.plan_candidates import Bench
from gpuplan.pipeline.plan_sizing import Surroundings, serving_load
from gpuplan.pipeline.plan_sizing_runs import Runs, Streams

FRESH_DRAW = 2  # sizing used 0 and 1
LARGEST_REPLAY = 32  # replicas; larger fleets were sized as pools of so many
LOAD_FRACS = (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25)
_ENDS = (100.0 * LOAD_FRACS[0], 100.0 * LOAD_FRACS[-1])


def replayed(
    scenario: Scenario, around: Surroundings, sizings: Sequence[Sizing], *, chosen: Selection
) -> tuple[list[Sizing], bool]:
    """The sizings, each chosen fleet that broke a promise grown by one; whether any was."""
    done, is_tightened = [], False
    for sizing in sizings:
        sized = sized_of(sizing, chosen)
        if sized is None or _holds(scenario, around, sizing, sized=sized):
            done.append(sizing)
            continue
        is_tightened = True
        grown = tuple(_grown(each) if each is sized else each for each in sizing.sized)
        done.append(replace(sizing, sized=grown))
    return done, is_tightened


def sized_of(sizing: Sizing, chosen: Selection) -> Sized | None:
    """The fleet behind the option that was chosen for this workload."""
    options = [option for option in chosen.chosen if option.workload == sizing.workload]
    return _behind(sizing, options[0]) if options else None


def latency_curves(
    scenario: Scenario, around: Surroundings, sizing: Sizing, *, sized: Sized
) -> tuple[Curve, ...]:
    """What users feel on this very fleet as the load moves, in shares of each promise."""
    runs = _runs(scenario, around, sizing, sized=sized)
    if runs is None or not runs.limits or sized.n_serving > LARGEST_REPLAY:
        return ()
    peak = sizing.demand.peak_of(0, 0)
    chart = f"What users of {sizing.workload} feel as the load moves, spares left out"
    trials = [runs.trial(frac * peak, sized.n_serving, draw=FRESH_DRAW) for frac in LOAD_FRACS]
    names = {"x_name": "load, % of the planned peak", "y_name": "% of the promised limit"}
    broken = Curve(chart=chart, name="limit", x=_ENDS, y=(100.0, 100.0), **names)
    felt = (
        Curve(
            chart=chart,
            name=f"{limit.metric} {limit.statistic}",
            x=tuple(100.0 * frac for frac in LOAD_FRACS),
            y=tuple(_share(trial.judged[place][1].value_s, limit.limit_s) for trial in trials),
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


def _grown(sized: Sized) -> Sized:
    """One replica more wherever there is load."""
    need = sized.need.n_replicas
    remark = "one replica more: the replay on fresh draws broke a promise"
    return replace(
        sized,
        need=ReplicaNeed(n_replicas=ints(need + (need > 0))),
        remarks=(*sized.remarks, remark),
    )


def _holds(scenario: Scenario, around: Surroundings, sizing: Sizing, *, sized: Sized) -> bool:
    runs = _runs(scenario, around, sizing, sized=sized)
    if runs is None or sized.n_serving > LARGEST_REPLAY:
        return True
    peak = sizing.demand.peak_of(0, 0)
    return runs.trial(peak, sized.n_serving, draw=FRESH_DRAW).holds


def _runs(scenario: Scenario, around: Surroundings, sizing: Sizing, *, sized: Sized) -> Runs | None:
    """Trials of one fleet; None where it was not simulated."""
    workload = scenario.workload(sizing.workload)
    if workload is None or workload.model is None or workload.model.name is None:
        return None
    work = workload.work
    if not isinstance(work, Serving) or sized.method != "simulated":
        return None
    bench = Bench(
        model_named(workload.model.name, around.store),
        serving_load(workload, sizing.demand),
        around.catalog,
        context_tokens=max(1, round(sizing.demand.input_tokens + sizing.demand.output_tokens)),
    )
    streams = Streams(work.arrivals, work.request, around.options.seed)
    prospect = bench.prospect(sized.candidate)
    return Runs(prospect, bench, streams, limits=work.slo.limits, options=around.options)
