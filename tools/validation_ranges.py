"""The parts of docs/validation.md on 80 % ranges, and on what a probe is worth."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from math import log
from pathlib import Path
from typing import NamedTuple

import numpy as np
from fits.ranges import learned
from ledger import (
    FOLDER,
    Row,
    later_figures,
    later_lines,
    never_seen_lines,
    possible_figures,
    rows_of,
)
from validation_recipe import Recipe, Stated, recipe

from gpuplan.calibration.inference.ranges import Line
from gpuplan.calibration.inference.site import PROBED
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.calibration.residuals import weighted_quantiles
from gpuplan.domain.calibration.constants import LEAST_LOG, RangeRule
from gpuplan.studies.validation.figures import METRICS, TAIL_METRICS

STORED = Path(__file__).resolve().parent.parent / "src/gpuplan/calibration/data/llm_inference.json"
N_FOLDS, N_BOOTSTRAP = 5, 500
LEVEL_FRAC = 0.81  # of ranges after a probe: few sites say how far they narrow
PROBED_COLUMNS = ("log_before", "log_after", "half", "width_ratio")
LEAST_SITES = 5  # fewer say nothing of a figure
REGIMES = ("fixed_concurrency", "fixed_max_batch", "max_load", "static_batch")
RANGES = """\
## Ranges of sites never seen

First predictions of {n:,} figures of {groups} groups (source, model, accelerator), made before any
fit held their rows (`tests/validation/never_seen/first_predictions*.csv`, never edited). `then` are
the ranges that were stated with them; `now` are today's, learned from the other groups in
{folds} folds, and no narrower than rows of models held out of the fit ask for; `recipe` are those
of `then` times one factor per cell from the same folds (`tools/validation_recipe.py`). Coverage
in percent of figures, with the 90 % interval of drawing groups anew, and as a mean of groups; width
is ln high - ln low; the interval score [Gneiting2007] is in logs, lower is better.

| {what} | figures | groups | then: coverage, width, score | recipe | now | mean of groups |
|---|---:|---:|---:|---:|---:|---:|"""
PROBES = """\
## What a probe is worth

Sites are made of real rows: one source, model, accelerator, engine, version and precision in one
regime, by constants of a fit that their groups were held out of. k rows of a site, spread over
load, are handed to the refit of `gpuplan calibrate`, and up to ten other rows are predicted before
and after (`tools/judge_probes.py`). Errors are medians of |ln|, half-widths those of 80 % ranges in
logs, narrowed as other sites ask for; coverage in percent. `as shown` is the range that is printed
before a run; as it holds more than four of five of these rows, `fair` is the same range scaled as
the other sites ask for.

| figure | sites | k | error | half-width | score as shown, fair -> after | coverage after |
|---|---:|---:|---:|---:|---:|---:|"""


class Figure(NamedTuple):
    """A first prediction: its line and the ends stated then, as log ratios to it."""

    line: Line
    low: float
    high: float

    @property
    def stated(self) -> Stated:
        """The line with the half-width that was stated with it."""
        return Stated(self.line, max(LEAST_LOG**2, -self.low * self.high) ** 0.5)


def figures() -> list[Figure]:
    """All first predictions of means."""
    known = inference_calibration().known
    wanted, later = set(METRICS) - set(TAIL_METRICS), possible_figures(later_figures())
    found = [
        _figure(line, row, value="predicted")
        for line, row in zip(later_lines(later), later, strict=True)
    ]
    seen = {row["id"]: row for row in rows_of(FOLDER / "llm_inference.csv")}
    first = [
        row
        for row in rows_of(FOLDER / "first_predictions.csv")
        if row["metric"] in wanted and seen.get(row["id"], {}).get(f"measured_{row['metric']}")
    ]
    return found + [
        _figure(line, row, value="value")
        for line, row in zip(never_seen_lines(known), first, strict=True)
    ]


def _figure(line: Line, stated: Row, *, value: str) -> Figure:
    low, high = (log(float(stated[end]) / float(stated[value])) for end in ("low", "high"))
    return Figure(line, low, high)


def held_out_rules(found: Sequence[Figure]) -> dict[str, RangeRule]:
    """By group, the rule that the groups of other folds ask for."""
    groups = sorted({each.line.group for each in found})
    rules, least = {}, inference_calibration().ranges.log_least
    for fold in range(N_FOLDS):
        out = set(groups[fold::N_FOLDS])
        some = [each.line for each in found if each.line.group not in out]
        rule = learned(some, log_least=least)
        rules |= dict.fromkeys(out, rule)
    return rules


def held_out_recipes(found: Sequence[Figure]) -> dict[str, Recipe]:
    """By group, the recipe's factors from the groups of other folds."""
    groups = sorted({each.line.group for each in found})
    recipes = {}
    for fold in range(N_FOLDS):
        out = set(groups[fold::N_FOLDS])
        some = [each.stated for each in found if each.line.group not in out]
        recipes |= dict.fromkeys(out, recipe(some))
    return recipes


class Compared(NamedTuple):
    """Figures with the rules and recipes of other folds."""

    found: Sequence[Figure]
    rules: dict[str, RangeRule]
    recipes: dict[str, Recipe]


def ranges() -> str:
    """Coverage, width and interval score by figure and by novelty, then and now."""
    found = figures()
    rules = held_out_rules(found)
    of = Compared(found, rules, held_out_recipes(found))
    head = {"n": len(found), "groups": len(rules), "folds": N_FOLDS}
    by_cell = _table(of, lambda each: each.line.cell.replace("|", ", "))
    by_novelty = _table(of, lambda each: each.line.novelty)
    between = "\n| novelty | figures | groups | then | recipe | now | mean of groups |\n"
    between += "|---|---:|---:|---:|---:|---:|---:|"
    return "\n".join([RANGES.format(what="figure", **head), *by_cell, between, *by_novelty, ""])


def _table(of: Compared, name: Callable[[Figure], str]) -> Iterator[str]:
    groups: dict[str, list[Figure]] = defaultdict(list)
    for each in of.found:
        groups[name(each)].append(each)
    for label, some in (*sorted(groups.items()), ("**all**", list(of.found))):
        error = np.array([each.line.log_ratio for each in some])
        then = np.array([[each.low, each.high] for each in some]).T
        half = np.array([of.rules[each.line.group].half(each.line.keys) for each in some])
        other = np.array([of.recipes[each.line.group].half(each.stated) for each in some])
        names = [each.line.group for each in some]
        inside = np.abs(error) <= half
        low, high = bootstrap(inside, names)
        mean = np.mean([inside[[n == group for n in names]].mean() for group in set(names)])
        yield (
            f"| {label} | {len(some)} | {len(set(names))} | {_figures(error, *then)} "
            f"| {_figures(error, -other, other)} | {_figures(error, -half, half)} "
            f"({low:.0f} to {high:.0f}) | {100 * mean:.0f} |"
        )


def _figures(error: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    """Coverage in percent, mean width and interval score."""
    inside = (error >= low) & (error <= high)
    score = interval_score(error, low, high)
    return f"{100 * inside.mean():.0f}, {np.mean(high - low):.2f}, {score:.2f}"


def interval_score(error: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """Width and ten times what lies outside [Gneiting2007]."""
    outside = np.maximum(0, low - error) + np.maximum(0, error - high)
    return float(np.mean(high - low + 10 * outside))


def bootstrap(inside: np.ndarray, groups: Sequence[str]) -> tuple[float, float]:
    """The 90 % interval of the coverage, groups drawn anew."""
    names = sorted(set(groups))
    place = np.array([names.index(group) for group in groups])
    n, hit = np.bincount(place), np.bincount(place, inside)
    draws = np.random.default_rng(0).integers(len(names), size=(N_BOOTSTRAP, len(names)))
    coverage = 100 * hit[draws].sum(axis=1) / n[draws].sum(axis=1)
    low, high = np.quantile(coverage, (0.05, 0.95))
    return float(low), float(high)


class Probed(NamedTuple):
    """A figure of a site before and after a refit to k of its other rows."""

    site: str
    cell: str
    k: int
    before: float  # log errors
    after: float
    half: float  # of the range before
    ratio: float  # of half-widths, by the conditions of the runs and how far off they were


def probed_sites() -> list[Probed]:
    """What `tools/judge_probes.py` found, MLPerf aside: its lengths are those of its rules."""
    return [
        Probed(
            row["site"],
            f"{row['metric']}|{row['regime']}",
            int(row["n_measured"]),
            *(float(row[name]) for name in PROBED_COLUMNS),
        )
        for row in rows_of(FOLDER / "probed_sites.csv")
        if row["regime"] in REGIMES
    ]


def narrowed(made: Sequence[Probed], k: int, *, metric: str, without: str = "") -> float:
    """The factor on half-widths after k rows of a site, from other sites."""
    some = [p for p in made if p.k == k and p.cell.startswith(f"{metric}|") and p.site != without]
    return _asked([abs(p.after) / (p.half * p.ratio) for p in some], some)


def scaled(made: Sequence[Probed], k: int, *, metric: str, without: str) -> float:
    """The factor that ranges without a run ask for on the same figures, from other sites."""
    some = [p for p in made if p.k == k and p.cell.startswith(f"{metric}|") and p.site != without]
    return _asked([abs(p.before) / p.half for p in some], some)


def _asked(ratios: Sequence[float], some: Sequence[Probed]) -> float:
    counts = Counter(p.site for p in some)
    weights = np.array([counts[p.site] ** -0.5 for p in some])
    return float(weighted_quantiles(np.array(ratios), weights, at=(LEVEL_FRAC,))[0])


FORWARD = """\
## Ranges of the next year

Rows of engines released in a year, predicted by constants of engines of earlier years alone
(`tools/judge_forward.py`). `past` ranges are learned from such predictions of the years before;
`shipped` are today's, whose ledger holds rows of every year. Nothing of the year is known to
constants or `past` ranges; the form of the model was chosen with all rows in sight. Median errors
and coverage in percent, with the 90 % interval of drawing groups anew.

| year | ranges | figure | figures | groups | median | coverage | mean of groups | width | score |
|---|---|---|---:|---:|---:|---:|---:|---:|---:|"""


def forward() -> str:
    """What ranges hold of rows of the next year, as it is stored."""
    lines = [
        f"| {row['year']} | {row['rule']} | {row['figure']} | {row['figures']} | {row['groups']} "
        f"| {row['median_ape']} | {float(row['coverage']):.0f} ({float(row['low']):.0f} to "
        f"{float(row['high']):.0f}) | {float(row['groups_coverage']):.0f} | {row['width']} "
        f"| {row['score']} |"
        for row in rows_of(FOLDER / "forward.csv")
    ]
    return "\n".join([FORWARD, *lines, ""])


def probes() -> str:
    """What one and three measured rows of a site leave of the error of the others."""
    made, lines, scores = probed_sites(), [PROBES], []
    for cell in sorted({each.cell for each in made}):
        some = [each for each in made if each.cell == cell]
        if len({each.site for each in some}) < LEAST_SITES:
            continue
        found = [_scored(some, made, k) for k in PROBED]
        scores.append([(each.shown, each.fair, each.after) for each in found])
        n_sites = len({each.site for each in some})
        for k, each in zip(PROBED, found, strict=True):
            lines.append(f"| {cell.replace('|', ', ')} | {n_sites} | {k} | {each.columns} |")
    mean = np.mean(scores, axis=0)
    falls = " and ".join(
        f"{100 * (1 - after / shown):.0f} % after {k} (fair: {100 * (1 - after / fair):.0f} %)"
        for k, (shown, fair, after) in zip(PROBED, mean, strict=True)
    )
    return "\n".join([*lines, "", f"The mean interval score falls by {falls} measured rows.", ""])


class Scored(NamedTuple):
    """Interval scores of a cell, and the figures that its line shows."""

    shown: float
    fair: float
    after: float
    columns: str


def _scored(some: Sequence[Probed], made: Sequence[Probed], k: int) -> Scored:
    mine = [each for each in some if each.k == k]
    metric = mine[0].cell.partition("|")[0]
    sites = {p.site for p in mine}
    left = {site: narrowed(made, k, metric=metric, without=site) for site in sites}
    fair = {site: scaled(made, k, metric=metric, without=site) for site in sites}
    before, after, wide = (np.array([each[i] for each in mine]) for i in (3, 4, 5))
    even = np.array([max(LEAST_LOG, p.half * fair[p.site]) for p in mine])
    half = np.array([max(LEAST_LOG, p.half * p.ratio * left[p.site]) for p in mine])
    scores = (
        interval_score(before, -wide, wide),
        interval_score(before, -even, even),
        interval_score(after, -half, half),
    )
    columns = (
        f"{np.median(np.abs(before)):.2f} -> {np.median(np.abs(after)):.2f} "
        f"| {wide.mean():.2f} -> {half.mean():.2f} "
        f"| {scores[0]:.2f}, {scores[1]:.2f} -> {scores[2]:.2f} "
        f"| {100 * np.mean(np.abs(after) <= half):.0f}"
    )
    return Scored(*scores, columns)


def store_narrowing() -> None:
    """Store how far ranges narrow: by metric, after one row and after three."""
    document, made = json.loads(STORED.read_text("utf-8")), probed_sites()
    rule = document["ranges"]["log_half"]
    for metric in sorted({each.cell.partition("|")[0] for each in made}):
        for k in PROBED:
            rule[f"probed|{k}|{metric}"] = round(log(narrowed(made, k, metric=metric)), 2)
    for k in PROBED:  # a percentile is as far off as its mean, and its ratio stays unknown
        for what in ("ttft", "tpot"):
            rule[f"probed|{k}|{what}_p99_ms"] = round(0.5 * rule[f"probed|{k}|{what}_mean_ms"], 2)
    STORED.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
