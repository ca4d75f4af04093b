"""Requests to replay, from a trace, from figures, or from a scenario; what is assumed is told."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpuplan.demand.arrivals import gamma_bursts, mmpp, poisson, weibull_bursts
from gpuplan.demand.lengths import draw_lengths
from gpuplan.demand.profile import growing, growth_ratio, hourly_weights, warped
from gpuplan.demand.scale import scaled_blocks, scaled_rows
from gpuplan.demand.statistics import dispersion
from gpuplan.demand.streams import stream
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.traffic.drawn import DrawnLoad, LoadSource, LoadTerms
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.domain.traffic.trace import TraceQuery
from gpuplan.errors import InputError, Problem
from gpuplan.inputs.traces.read import read_trace
from gpuplan.studies.replay.closed_loop import closed_load, turn_problems
from gpuplan.studies.replay.sessions import talking_load
from gpuplan.units import HOUR

DEFAULT_S = HOUR
DEFAULT_BURSTINESS_RATIO = 2.0


class Settled(NamedTuple):
    """A load in which nothing is excluded, and what was put in."""

    load: DrawnLoad
    assumptions: tuple[Assumption, ...]


def traced_load(
    path: Path, *, query: TraceQuery | None = None, scale: float = 1.0, seed: int = 0
) -> LoadSource:
    """Requests of a trace file; scaled by superposing shifted copies, so that bursts stay."""
    read = read_trace(path, query)
    requests, blocks, assumed = read.requests, read.blocks, []
    if scale != 1.0:
        more = scaled_rows(requests, scale, seed=seed)
        assumed.append(_scaling(scale, requests.arrive_s, more.requests.arrive_s))
        requests = more.requests
        if blocks is not None:
            blocks = scaled_blocks(blocks, more)
            assumed.append(_shared_text())
    notes = (*read.remarks, *bad_lines(read.n_bad, read.bad))
    assumed += bad_assumed(read.n_bad, read.bad)
    if not read.has_arrivals:
        notes += ("all requests come at once; for a rate give the file to --lengths-from",)
    return LoadSource(
        requests=requests, source="trace", assumptions=tuple(assumed), remarks=notes, blocks=blocks
    )


def bad_lines(n_bad: int, shown: Sequence[Problem]) -> tuple[str, ...]:
    """How many lines of a file could not be read, and the first of them."""
    return (f"{n_bad:,} bad lines excluded", *map(str, shown)) if n_bad else ()


def bad_assumed(n_bad: int, shown: Sequence[Problem]) -> list[Assumption]:
    """The same for whoever reads the result alone."""
    if not n_bad:
        return []
    value, why = f"{n_bad:,} excluded", f"they could not be read; the first: {shown[0]}"
    return [assume("bad lines", value, why, "fix the file")]


def drawn_load(load: DrawnLoad, *, seed: int = 0) -> LoadSource:
    """Requests drawn by law; same figures and seed, same requests."""
    if load.law == "closed" or (load.law is None and load.n_users is not None):
        return closed_load(load, seed=seed)
    settled, assumptions = settled_load(load)
    assert settled.input is not None
    assert settled.output is not None
    if settled.n_turns_mean not in (None, 1.0):
        return talking_load(settled, assumptions, lambda starts: _arrive_s(starts, seed), seed=seed)
    arrive_s = _arrive_s(settled, seed)
    if settled.n_requests is not None:
        arrive_s = arrive_s[: settled.n_requests]
    n = len(arrive_s)
    requests = requests_of(
        arrive_s,
        draw_lengths(settled.input, n, stream(seed, "input lengths")),
        draw_lengths(settled.output, n, stream(seed, "output lengths")),
    )
    return LoadSource(requests=requests, source="drawn", assumptions=assumptions)


def settled_load(load: DrawnLoad) -> Settled:
    """The load with its gaps filled; InputError with every figure that is missing or wrong."""
    problems = _problems(load)
    if problems:
        raise InputError("simulate", problems)
    changes: dict[str, object] = {}
    assumed = []
    if load.law is None:
        is_bursty = load.burstiness_ratio not in (None, 1.0)
        changes["law"] = "mmpp" if load.phases else "gamma" if is_bursty else "poisson"
        if not load.phases and load.burstiness_ratio is None:
            assumed.append(
                assume(
                    "arrivals",
                    "Poisson",
                    "no burstiness was given",
                    "--arrivals, --burstiness, --phases",
                )
            )
    elif load.law in ("gamma", "weibull") and load.burstiness_ratio is None:
        changes["burstiness_ratio"] = DEFAULT_BURSTINESS_RATIO
        assumed.append(
            assume(
                "burstiness",
                f"{DEFAULT_BURSTINESS_RATIO:g}",
                "gaps deviate by twice their mean",
                "--burstiness",
            )
        )
    if load.duration_s is None and load.n_requests is None:
        seconds = _default_s(load)
        changes["duration_s"] = seconds
        why = "the profile's whole period" if seconds > DEFAULT_S else "long enough for p99.9"
        assumed.append(assume("duration", f"{seconds / HOUR:g} h", why, "--duration, --requests"))
    for name in ("input", "output"):
        lengths = getattr(load, name)
        if lengths.shape in ("fixed", "near"):
            each = "each" if lengths.shape == "fixed" else "within a tenth"
            assumed.append(
                assume(
                    f"{name} lengths",
                    f"{lengths.mean_tokens:g} tokens {each}",
                    "one figure was given",
                    f"--{name}-p95",
                )
            )
    return Settled(replace(load, **changes), tuple(assumed))  # type: ignore[arg-type]


def _default_s(load: DrawnLoad) -> float:
    profile = load.terms.hourly_profile if load.terms else ()
    return len(profile) * HOUR if profile else DEFAULT_S


def _problems(load: DrawnLoad) -> list[Problem]:
    found = []
    if load.law == "mmpp" and not load.phases:
        fix = "give e.g. 2x300,20x30: 2 a second for 300 s on average, then 20 for 30 s"
        found.append(Problem("--phases", "missing", fix))
    if load.phases and load.law not in (None, "mmpp"):
        found.append(Problem("--phases", f"with {load.law} arrivals", "use --arrivals mmpp"))
    if not load.phases and load.law != "mmpp" and load.requests_per_s is None:
        found.append(Problem("--rate", "missing", "give requests a second, e.g. 5, or --trace"))
    for flag, lengths in (("--input-tokens", load.input), ("--output-tokens", load.output)):
        if lengths is None:
            found.append(Problem(flag, "missing", "give the tokens of a request, e.g. 1000"))
    if load.duration_s is not None and load.n_requests is not None:
        what = "both a duration and a number of requests"
        found.append(Problem("--requests", what, "give one of them"))
    found += _bad_phases(load)
    if load.law == "poisson" and load.burstiness_ratio not in (None, 1.0):
        what = f"{load.burstiness_ratio:g} with Poisson arrivals, whose burstiness is 1"
        found.append(Problem("--burstiness", what, "use --arrivals gamma or weibull"))
    is_conversation = load.n_turns_mean is not None
    if load.n_users is not None or (load.think_s is not None and not is_conversation):
        found.append(Problem("--users", f"with {load.law} arrivals", "use --arrivals closed"))
    return [*found, *turn_problems(load), *_bad_numbers(load)]


def _bad_phases(load: DrawnLoad) -> list[Problem]:
    found = [
        Problem(
            "--phases",
            f"got {phase.requests_per_s:g}x{phase.stay_s:g}",
            "a rate is 0 or more, a stay above 0 seconds, both finite",
        )
        for phase in load.phases
        if not (0 <= phase.requests_per_s < np.inf and 0 < phase.stay_s < np.inf)
    ]
    if load.phases and not found and not any(phase.requests_per_s for phase in load.phases):
        found.append(Problem("--phases", "no phase has a rate", "give one above 0"))
    return found


def _bad_numbers(load: DrawnLoad) -> list[Problem]:
    figures = {
        "--rate": load.requests_per_s,
        "--burstiness": load.burstiness_ratio,
        "--duration": load.duration_s,
        "--requests": load.n_requests,
        "--input-tokens": load.input.mean_tokens if load.input else None,
        "--output-tokens": load.output.mean_tokens if load.output else None,
    }
    return [
        Problem(flag, f"got {value:g}", "must be above 0, and finite")
        for flag, value in figures.items()
        if value is not None and not (np.isfinite(value) and value > 0)
    ]


def _arrive_s(load: DrawnLoad, seed: int) -> Floats:
    """Arrivals up to the duration, or the first n: drawn over twice the time until there are n."""
    if load.duration_s is not None:
        return _drawn_s(load, load.duration_s, seed)
    n = load.n_requests or 0
    duration_s = (n + 6.0 * float(np.sqrt(n)) + 50.0) / _mean_rate(load)
    arrive_s = _drawn_s(load, duration_s, seed)
    while len(arrive_s) < n:
        duration_s *= 2.0
        arrive_s = _drawn_s(load, duration_s, seed)
    return arrive_s


def _drawn_s(load: DrawnLoad, duration_s: float, seed: int) -> Floats:
    terms = load.terms or LoadTerms()
    monthly = terms.growth_frac_per_month
    grown = growth_ratio(monthly, terms.after_s or 0.0)
    # An hour may run faster than the mean clock: enough is drawn, and what is late is cut.
    most = float(hourly_weights(terms.hourly_profile).max()) if terms.hourly_profile else 1.0
    is_growing = terms.after_s is None and monthly != 0
    ahead = growth_ratio(max(0.0, monthly), duration_s) if is_growing else 1.0
    drawn = _by_law(load, grown, duration_s * most * ahead, seed)
    if is_growing:
        drawn = growing(drawn, monthly)
    if terms.hourly_profile:
        drawn = warped(drawn, terms.hourly_profile)
    return floats(drawn[drawn < duration_s])


def _mean_rate(load: DrawnLoad) -> float:
    if load.requests_per_s is not None:
        return load.requests_per_s
    stays = sum(phase.stay_s for phase in load.phases)
    return sum(phase.requests_per_s * phase.stay_s for phase in load.phases) / stays


def _by_law(load: DrawnLoad, grown: float, duration_s: float, seed: int) -> Floats:
    if load.law == "mmpp":
        rates = floats([phase.requests_per_s * grown for phase in load.phases])
        stays = floats([phase.stay_s for phase in load.phases])
        return mmpp(rates, stays, duration_s=duration_s, seed=seed)
    rate, ratio = (load.requests_per_s or 0.0) * grown, load.burstiness_ratio or 1.0
    if load.law == "weibull":
        return weibull_bursts(rate, duration_s, cv_ratio=ratio, seed=seed)
    if load.law == "gamma":
        return gamma_bursts(rate, duration_s, cv_ratio=ratio, seed=seed)
    return poisson(rate, duration_s, seed=seed)


def _scaling(factor: float, before_s: Floats, after_s: Floats) -> Assumption:
    """How bursty the load was and is, where it is long enough to tell."""
    why = "copies of the trace shifted by up to 30 minutes: as bursty as it was"
    notes = []
    for window_s in (1.0, 10.0, 60.0):
        pair = dispersion(before_s, window_s), dispersion(after_s, window_s)
        if None not in pair:
            notes.append(f"{pair[0]:.2f} to {pair[1]:.2f} in {window_s:g} s")
    if notes:
        why += f"; index of dispersion {', '.join(notes)}"
    return assume("scaled load", f"x {factor:g}", why, "--scale")


def _shared_text() -> Assumption:
    value = "what a hundredth of the requests begin with is common, the rest is each copy's own"
    why = "system prompts are the service's, conversations are other people's"
    return assume("text of the copies", value, why, "--no-prefix-caching")
