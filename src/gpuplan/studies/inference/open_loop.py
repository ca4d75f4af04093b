"""Requests at a rate: a deployment's iterations -> a run of one replica -> its latencies.

Near saturation waits depend on chance more than on means, so they are simulated: the engine's
own limits, the step times of predictions, Poisson arrivals routed to the replica with the least
outstanding, as in plans and replays, lengths that scatter. The draws are the same for every
deployment.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import NormalDist, geometric_mean
from typing import NamedTuple

import numpy as np

from gpuplan.demand.streams import stream
from gpuplan.domain.columns import Floats, Ints, floats
from gpuplan.domain.inference.performance import LatencyLimits, ServingSetup
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.simulation.engine import EngineLimits, Fleet
from gpuplan.domain.simulation.outcome import RequestTimes
from gpuplan.domain.traffic.stream import Requests, requests_of
from gpuplan.errors import PlannerError
from gpuplan.performance.kernels.regimes import (
    Served,
    ServingCase,
    max_load,
    open_loop,
    prefill_s,
    serve_start_s,
)
from gpuplan.simulation.serving.groups import holds_each, without_hybrid
from gpuplan.simulation.serving.run import simulate_serving
from gpuplan.studies.inference.deployment import EvaluatedDeployment
from gpuplan.studies.inference.prefix import fresh_requests
from gpuplan.units import DAY

SEED = 1
# Deviation of the lengths' logarithms. Assumption: between suites that draw lengths evenly (0.2)
# and conversations (1.0).
LENGTH_LOG_SD = 0.6
# A run covers so many times what is in the engine at once, and is measured where it has settled.
N_TURNOVERS = 10
LEAST_SETTLING = 10
LEAST_REQUESTS, MOST_REQUESTS = 1000, 20_000
POOL = 8  # replicas that are run: they speak for more, whose load is as even
LEAST_S = 1e-12
LONGEST_S = 10 * DAY
SETTLED_FRAC, DRAINING_FRAC = 0.3, 0.1
# Log deviation of predicted step times, about that of throughput of rows outside the fit.
STEP_LOG_SD = 0.05
N_RUNS = 3
MOST_USED_FRAC = 0.97  # of the full throughput, that a deployment keeps up with
LONG_WAIT_STEPS = 20.0  # iterations; shorter waits may grow by chance
# Means over the limits of 99th percentiles where submissions raise their rate until one binds:
# medians of benchmarks in 245 runs [MLPerf].
TPOT_LIMIT_FRAC, TTFT_LIMIT_FRAC = 0.73, 0.22


class OpenLoop(NamedTuple):
    """Latencies of a replica under its share of the rate; waits end with the first token."""

    wait_mean_s: float
    tpot_mean_s: float
    tpot_p50_s: float
    n_running: float
    n_requests: int  # of a run, that one replica took
    is_growing: bool  # more comes than goes


class Share(NamedTuple):
    """What one replica is given."""

    requests_per_s: float
    n_replicas: int  # behind one router, that are run
    n_requests: int
    is_whole: bool  # measured from the first request to the last


def open_loop_run(of: EvaluatedDeployment) -> OpenLoop | None:
    """The middle of runs with iterations as quick as predicted, and somewhat quicker or slower.

    None where an iteration takes longer than the simulator can count.
    """
    try:
        return _simulated(of)
    except PlannerError:
        return None


def _simulated(of: EvaluatedDeployment) -> OpenLoop:
    setup, case = of.setup, of.case
    near = open_loop(of.work, of.step, of.regime, case)
    share = _share(setup, case, near)
    if setup.load.limits is not None:
        return _at_limits(of, setup.load.limits, share)
    requests = _requests(case, share)
    fleet = replace(of.fleet(share.n_replicas), limits=_limits(of, requests))
    slower = slowdowns(_used_frac(of), is_held=setup.load.is_held)
    found = middle([_run(requests, fleet, share, slower=s) for s in slower])
    if case.output_tokens > 1.0:
        return found
    # Nobody waits for a second token: what one would take is the formula's.
    tpot_s = float(near.tpot_s)
    return found._replace(tpot_mean_s=tpot_s, tpot_p50_s=tpot_s)


def _at_limits(of: EvaluatedDeployment, limits: LatencyLimits, share: Share) -> OpenLoop:
    """Latencies where the rate was raised until they bind: what binds says more than the rate.

    At 85 to 95 % of the capacity a tenth more or less of it decides between no queue and an
    endless one; the rules decide which of the two was published.
    """
    tpot_s = TPOT_LIMIT_FRAC * limits.tpot_p99_s
    start_s = float(serve_start_s(of.work, of.step, of.regime, of.case, tpot_s))
    own_s = float(prefill_s(of.work, of.step, of.case))
    n_running = max(1.0, share.requests_per_s * float(of.case.output_tokens) * tpot_s)
    return OpenLoop(
        # The start is part of what the limit binds: callers add it again.
        wait_mean_s=max(own_s, TTFT_LIMIT_FRAC * limits.ttft_p99_s) - start_s,
        tpot_mean_s=tpot_s,
        tpot_p50_s=tpot_s,
        n_running=n_running,
        n_requests=share.n_requests,
        is_growing=False,
    )


def _used_frac(of: EvaluatedDeployment) -> float:
    """The rate over the most that the engines' own limits let through."""
    setup, r = of.setup, of.regime
    most = min(float(r.batch_limit), float(setup.settings.max_sequences * setup.layout.dp))
    full = max_load(of.work, of.step, r._replace(batch_limit=most), of.case)
    return float(of.case.requests_per_s * of.case.output_tokens / full.output_tokens_per_s)


def slowdowns(used_frac: float, *, is_held: bool) -> list[float]:
    """By how much iterations may be slower than predicted, if the rate is held.

    Predicted step times err, and waits near saturation answer to that many times over. Even steps
    of the chances of a lognormal error, of those with which the deployment keeps up. One that
    does not keep up as predicted is run as predicted, unless its rate is known to be held.
    """
    if used_frac >= MOST_USED_FRAC and not is_held:
        return [1.0]
    chance = NormalDist()
    kept_chance = max(chance.cdf(math.log(MOST_USED_FRAC / used_frac) / STEP_LOG_SD), 1e-9)
    places = ((j + 0.5) / N_RUNS * kept_chance for j in range(N_RUNS))
    return [math.exp(STEP_LOG_SD * chance.inv_cdf(place)) for place in places]


def middle(runs: Sequence[OpenLoop]) -> OpenLoop:
    """Geometric means of all runs."""

    def mean(values: Iterable[float]) -> float:
        return geometric_mean(max(value, LEAST_S) for value in values)

    return OpenLoop(
        wait_mean_s=mean(run.wait_mean_s for run in runs),
        tpot_mean_s=mean(run.tpot_mean_s for run in runs),
        tpot_p50_s=mean(run.tpot_p50_s for run in runs),
        n_running=mean(run.n_running for run in runs),
        n_requests=runs[-1].n_requests,
        is_growing=any(run.is_growing for run in runs),
    )


def _run(requests: Requests, fleet: Fleet, share: Share, *, slower: float) -> OpenLoop:
    # Iterations that all take longer are requests that come faster, by a slower clock.
    faster = replace(requests, arrive_s=floats(requests.arrive_s / slower))
    run = _measured(
        faster,
        simulate_serving(faster, fleet).times,
        share._replace(requests_per_s=share.requests_per_s * slower),
    )
    return run._replace(
        wait_mean_s=slower * run.wait_mean_s,
        tpot_mean_s=slower * run.tpot_mean_s,
        tpot_p50_s=slower * run.tpot_p50_s,
    )


def _share(setup: ServingSetup, case: ServingCase, near: Served) -> Share:
    rate = case.requests_per_s
    n_all = max(1, round(setup.n_replicas))
    n_run, requested = min(n_all, POOL), setup.load.n_requests
    if requested is not None and requested / n_all <= MOST_REQUESTS:
        return Share(rate, n_run, max(1, round(requested / n_all)), True)
    n_settled = N_TURNOVERS * rate * float(near.e2e_s)
    n = min(MOST_REQUESTS, max(LEAST_REQUESTS, math.ceil(n_settled)))
    ends_per_s = float(near.output_tokens_per_s) / case.output_tokens
    n_taken = max(1, min(n, int(LONGEST_S * ends_per_s)))
    # So few that no two meet: nothing has to settle or drain.
    return Share(rate, n_run, n_taken, n_taken < LEAST_SETTLING)


def _requests(case: ServingCase, share: Share) -> Requests:
    """A Poisson stream for all replicas that are run."""
    n = share.n_requests * share.n_replicas
    gaps = stream(SEED, "arrivals").standard_exponential(n)
    gaps /= share.n_replicas * share.requests_per_s
    prompt = _lengths(case.input_tokens, n, "input lengths")
    answer = _lengths(case.output_tokens, n, "output lengths")
    drawn = requests_of(np.cumsum(gaps), prompt, answer)
    return fresh_requests(drawn, float(case.cached_tokens / case.input_tokens))


def _lengths(mean_tokens: float, n: int, cause: str) -> Ints:
    """Lognormal lengths of about this mean over the draws; one token is one token."""
    if mean_tokens <= 1.0:
        return np.ones(n, dtype=np.int64)
    drawn = np.exp(LENGTH_LOG_SD * stream(SEED, cause).standard_normal(n))
    found: Ints = np.maximum(1, np.round(mean_tokens * drawn / drawn.mean())).astype(np.int64)
    return found


def _limits(of: EvaluatedDeployment, requests: Requests) -> EngineLimits:
    """The engine's own, without what its constants count as lost outside of it.

    All iterations that a request loses at its start are among the constants, which were fitted to
    runs of engines that plan nothing ahead.
    """
    limits = roomy_limits(of, requests.input_tokens + requests.output_tokens)
    return replace(limits, admission=replace(limits.admission, is_ahead=False), start_s=0.0)


def roomy_limits(of: EvaluatedDeployment, tokens: Ints) -> EngineLimits:
    """The engine's own for requests of about the mean length, none of which is refused."""
    limits = of.limits if holds_each(of.limits, tokens) else without_hybrid(of.limits)
    n_longest = math.ceil(int(tokens.max()) / limits.block_tokens) + 1
    return replace(
        limits,
        # Lengths are drawn around the mean: none is refused for what was never asked.
        max_context_tokens=None,
        # Where not even one has room, the caller says so; here it runs alone.
        n_blocks=max(n_longest, limits.n_blocks),
    )


def _measured(requests: Requests, times: RequestTimes, share: Share) -> OpenLoop:
    n = len(requests)
    rows = (
        slice(0, n)
        if share.is_whole
        else slice(int(SETTLED_FRAC * n), int((1.0 - DRAINING_FRAC) * n))
    )
    wait_s, is_many = times.ttft_s[rows], requests.output_tokens[rows] > 1
    tpot_s = times.tpot_s[rows][is_many] if is_many.any() else times.tpot_s[rows]
    decode_s = times.e2e_s[rows] - times.ttft_s[rows]
    return OpenLoop(
        wait_mean_s=float(wait_s.mean()),
        tpot_mean_s=float(tpot_s.mean()),
        tpot_p50_s=float(np.quantile(tpot_s, 0.5)),
        # Little's law: what arrives while one answer is written.
        n_running=max(1.0, share.requests_per_s * float(decode_s.mean())),
        n_requests=n // share.n_replicas,
        is_growing=_is_growing(times.wait_s, float(tpot_s.mean())),
    )


def _is_growing(wait_s: Floats, tpot_s: float) -> bool:
    """Waits for the first iteration that grow through the whole run: more comes than goes."""
    n = len(wait_s)
    half_s, end_s = wait_s[n // 2 - n // 20 : n // 2], wait_s[n - n // 20 :]
    if n < LEAST_REQUESTS:
        return False
    return bool(end_s.mean() > max(1.5 * half_s.mean(), LONG_WAIT_STEPS * tpot_s))


def not_run(load: str) -> Assumption:
    """A load that was to be run has a formula's latencies."""
    why = "iterations or the whole run take longer than the simulator can count"
    value = "a formula of means instead of a run: too quick near saturation"
    return assume("waits", value, why, f"{load}, --input-tokens")


def run_assumptions(run: OpenLoop | None, setup: ServingSetup) -> tuple[Assumption, ...]:
    """What a prediction at a rate rests on, and whether the rate can be held."""
    if run is None:
        return (not_run("--rate"),)
    if setup.load.limits is not None:
        why = "submissions raise their rate until a limit on latency binds"
        value = f"{TPOT_LIMIT_FRAC:g} and {TTFT_LIMIT_FRAC:g} of the limits on TPOT and TTFT"
        return (assume("latency at the limit", value, why, "--regime"),)
    scatter = assume(
        "scatter of lengths",
        f"lognormal, {LENGTH_LOG_SD:g} in the logarithm",
        "between suites that draw lengths evenly and conversations",
        "gpuplan simulate --trace",
    )
    if not run.is_growing:
        return (scatter,)
    why = "requests come faster than they are served: waits grow for as long as the rate lasts"
    n = run.n_requests * max(1, round(setup.n_replicas))
    value = f"{n} requests" if setup.load.n_requests is None else "all that the run sent"
    grown = assume("length of the run", value, why, "--rate, --replicas")
    return scatter, grown
