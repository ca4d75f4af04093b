"""What a run says, measured as asked: after its warm-up, against its objective."""

from dataclasses import replace

from gpuplan.domain.simulation.outcome import Outcome, ServingStatistics, StreamedOutcome
from gpuplan.domain.simulation.simulation import SimulateRequest
from gpuplan.errors import InputError, one
from gpuplan.simulation.serving.statistics import statistics_of


def judged(outcome: Outcome, asked: SimulateRequest) -> ServingStatistics:
    """The run's measures; InputError where the warm-up leaves nothing to measure."""
    found = statistics_of(outcome, warmup_s=asked.warmup_s, slo=asked.slo)
    check_measured(found, outcome)
    if asked.warmup_s is None and found.is_overloaded:
        return _uncut(outcome, asked)
    return found


def _uncut(outcome: Outcome, asked: SimulateRequest) -> ServingStatistics:
    """A queue that grows has no steady part, even where a cut would make its mean surer."""
    whole = statistics_of(outcome, warmup_s=0.0, slo=asked.slo)
    note = "nothing cut: the fleet is overloaded"
    warmup = replace(whole.delivery.warmup, is_automatic=True, is_settled=False, note=note)
    return replace(whole, delivery=replace(whole.delivery, warmup=warmup))


def check_measured(found: ServingStatistics, outcome: Outcome | StreamedOutcome) -> None:
    """A warm-up as long as the arrivals would pass for a fleet that serves nobody."""
    warmup = found.delivery.warmup
    if warmup.cut_s > 0 and warmup.n_requests >= outcome.n_requests:
        span_s = outcome.totals.span_s
        what = f"{warmup.cut_s:g} s of a run of {span_s:,.1f} s leave no request to measure"
        raise one(InputError, "simulate", "--warmup", what, "cut less, or run longer")
