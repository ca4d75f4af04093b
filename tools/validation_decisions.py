"""The part of docs/validation.md on decisions: stated odds of a TPOT target beside what happened.

Closed loops of the ledger: each first prediction with the range that the groups of other folds
ask for states a chance that TPOT is within a target; the measured row says whether it was.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import exp, log
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from ledger import TABLE, later_figures, possible_figures, rows_of
from validation_ranges import Figure, bootstrap, figures, held_out_rules

from gpuplan.candidates.risk import Z_80

CELL, METRIC = "tpot_mean_ms|fixed_concurrency", "tpot_mean_ms"
TARGETS_MS = (10.0, 15.0, 20.0, 30.0, 50.0, 100.0)
EDGES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.86, 0.94, 1.0)
RISKS = (0.5, 0.6, 0.7, 0.8, 0.9)
SITE = ("source", "accelerator", "n_accelerators", "model", "precision", "engine",
        "engine_version", "tp", "layout_note", "input_tokens", "output_tokens")  # fmt: skip
PAGE = """\
## Odds of meeting a target

Closed loops of the first predictions at targets of {targets} ms of mean TPOT. The stated chance is
that of the lognormal law whose 80 % range the other groups ask for, as plans take it
(`candidates/risk.py`); observed is the share of measured rows within the target, with the 90 %
interval of drawing groups anew. Where stated and observed agree, the odds of plans can be believed.

| stated chance | rows x targets | groups | mean stated | observed |
|---|---:|---:|---:|---:|"""
DECISIONS = """
For each configuration measured at several concurrencies, the one with the highest throughput whose
stated chance is at least the asked one is chosen; best is the highest that was measured within the
target.

| asked chance | decisions | target met | violated | none though one met | share of the best |
|---|---:|---:|---:|---:|---:|"""


class Odds(NamedTuple):
    """A measured closed loop with what was stated of it."""

    site: str
    group: str
    n_users: float
    predicted_ms: float
    measured_ms: float
    half: float

    def chance(self, target_ms: float) -> float:
        """The stated chance that TPOT is within the target."""
        return NormalDist().cdf(log(target_ms / self.predicted_ms) * Z_80 / self.half)


def stated() -> list[Odds]:
    """Closed loops of the later rows with ranges of groups held out."""
    found: Sequence[Figure] = figures()
    rules = held_out_rules(found)
    table = {row["id"]: row for row in rows_of(TABLE)}
    wanted = possible_figures(later_figures(), metrics=(METRIC,))
    lines = {
        (each.line.group, round(each.line.log_ratio, 9)): each.line
        for each in found
        if each.line.cell == CELL
    }
    made = []
    for row in wanted:
        ratio = log(float(row["measured"]) / float(row["predicted"]))
        line = lines.get((row["group"], round(ratio, 9)))
        if line is None:
            continue
        of = table[row["id"]]
        half = rules[line.group].half(line.keys)
        site = "|".join(of[name] for name in SITE)
        users, predicted = float(of["batch"] or 1), float(row["predicted"])
        made.append(Odds(site, line.group, users, predicted, predicted * exp(ratio), half))
    return made


def reliability() -> str:
    """Stated chances beside what was measured, and what decisions by them would have met."""
    found = stated()
    targets = ", ".join(f"{target:g}" for target in TARGETS_MS)
    parts = [PAGE.format(targets=targets), *_diagram(found), DECISIONS, *_decisions(found), ""]
    return "\n".join(parts)


def _diagram(found: Sequence[Odds]) -> Iterator[str]:
    pairs = [
        (each.chance(target), each.measured_ms <= target, each.group)
        for each in found
        for target in TARGETS_MS
    ]
    for low, high in pairwise(EDGES):
        some = [p for p in pairs if low <= p[0] < high or (high == 1.0 and p[0] == 1.0)]
        if not some:
            continue
        chance, met, groups = zip(*some, strict=True)
        least, most = bootstrap(np.array(met, dtype=float), groups)
        yield (
            f"| {100 * low:.0f} to {100 * high:.0f} % | {len(some)} | {len(set(groups))} "
            f"| {100 * np.mean(chance):.0f} % "
            f"| {100 * np.mean(met):.0f} % ({least:.0f} to {most:.0f}) |"
        )


def _decisions(found: Sequence[Odds]) -> Iterator[str]:
    sites: dict[str, list[Odds]] = defaultdict(list)
    for each in found:
        sites[each.site].append(each)
    several = [some for some in sites.values() if len({each.n_users for each in some}) > 1]
    for asked in RISKS:
        made = [
            _decided(some, target, asked)
            for some in several
            for target in TARGETS_MS
            if any(each.measured_ms <= target for each in some)
        ]
        chosen = [share for share in made if share is not None]
        met = [share for share in chosen if share > 0]
        yield (
            f"| {100 * asked:.0f} % | {len(made)} | {100 * len(met) / len(made):.0f} % "
            f"| {100 * (len(chosen) - len(met)) / len(made):.0f} % "
            f"| {100 * (len(made) - len(chosen)) / len(made):.0f} % "
            f"| {100 * np.mean(met):.0f} % |"
        )


def _decided(some: Sequence[Odds], target_ms: float, asked: float) -> float | None:
    """Throughput of the choice over the best within the target; 0 where it violates it."""

    def rate(each: Odds, tpot_ms: float) -> float:
        return each.n_users / tpot_ms

    sure = [each for each in some if each.chance(target_ms) >= asked]
    if not sure:
        return None
    choice = max(sure, key=lambda each: rate(each, each.predicted_ms))
    if choice.measured_ms > target_ms:
        return 0.0
    best = max(rate(e, e.measured_ms) for e in some if e.measured_ms <= target_ms)
    return rate(choice, choice.measured_ms) / best
